package tools

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestURLsOfCalls(t *testing.T) {
	for _, c := range []struct{ template, arguments, want string }{
		{"https://a.example", `{}`, "https://a.example/"},
		{"https://a.example?x=1", `{}`, "https://a.example/?x=1"},
		{"https://a.example:8443/v1/o-{/id}.json?n={/n}&b={/b}&fixed=a%20b", `{"id":"a b","n":12,"b":true}`, "https://a.example:8443/v1/o-a%20b.json?n=12&b=true&fixed=a%20b"},
		{"https://[2606:4700::1111]/{/in/a~1b}", `{"in":{"a/b":"x"}}`, "https://[2606:4700::1111]/x"},
		{"https://a.example/{/id}?n={/n}", `{"id":"x"}`, "https://a.example/x"},
		{"https://a.example/?n={/n}&m={/m}", `{"m":"&n=2#"}`, "https://a.example/?m=%26n%3D2%23"},
		{"https://a.example/{/id}/{key}", `{"id":"%2e%2e?;,"}`, "https://a.example/%252e%252e%3F%3B%2C/k-1"},
		{"https://a.example/{/id}?k={key}", `{"id":"é…"}`, "https://a.example/%C3%A9%E2%80%A6?k=k-1"},
	} {
		parsed, err := parseTemplate(c.template)
		require.NoError(t, err, c.template)
		arguments := ijson.Raw(c.arguments)
		assert.Nil(t, parsed.check(arguments), c.template)
		u, err := parsed.url(arguments, "k-1")
		require.NoError(t, err, c.template)
		assert.Equal(t, c.want, u.String())
	}
}

func TestTemplatesThatAreRefused(t *testing.T) {
	for template, want := range map[string]string{
		"":                                   "it is no URL of a tool",
		"pay.example.com/v1":                 "it is no URL of a tool",
		"ftp://a.example/":                   "it is no URL of a tool",
		"HTTPS://a.example/":                 "it is no URL of a tool",
		"https:///v1":                        "it is no URL of a tool",
		"https://user@a.example/":            "it is no URL of a tool",
		"https://user:secret@a.example/":     "it is no URL of a tool",
		"https://{/host}/v1":                 "it is no URL of a tool",
		"https://a.example{/host}/v1":        "it is no URL of a tool",
		"https://a.example:{/port}/":         "it is no URL of a tool",
		"https://a.example\\@b.example/":     "it is no URL of a tool",
		"https://a.example/#x":               "has no #",
		"https://a.example/?x=1#x":           "has no #",
		"https://a.example/{/id":             "a { without a }",
		"https://a.example/id}":              "a } without a {",
		"https://a.example/{id}":             "{id} is no place for an argument",
		"https://a.example/{}":               "{} is no place",
		"https://a.example/a/../b":           "no . or ..",
		"https://a.example/a/%2e%2E/b":       "no . or ..",
		"https://a.example/./b":              "no . or ..",
		"https://a.example/a%5Cb":            "no \\",
		"https://a.example/a b":              "only have escaped",
		"https://a.example/a%zz":             "only have escaped",
		"https://a.example/?{/name}=1":       "made of name=value",
		"https://a.example/?x":               "made of name=value",
		"https://a.example/?x=1&":            "made of name=value",
		"https://a.example/?=1":              "made of name=value",
		"https://a.example/?x=a{/id}":        "one argument or one text",
		"https://a.example/?x={/id}{/other}": "one argument or one text",
	} {
		_, err := parseTemplate(template)
		assert.ErrorContains(t, err, want, template)
	}
}

func TestArgumentsThatAreNoPartOfAPath(t *testing.T) {
	parsed, err := parseTemplate("https://a.example/{/id}/x?n={/n}")
	require.NoError(t, err)
	for _, id := range []string{``, `.`, `..`, `a/b`, `../a`, `a\\b`, `a\u0000`, `a\nb`, `\u007f`, `\u0085`} {
		arguments, err := ijson.Canonical([]byte(`{"id":"`+id+`"}`), ijson.DefaultLimits)
		require.NoError(t, err)
		found := parsed.check(arguments)
		require.Len(t, found, 1, id)
		assert.Equal(t, "/id", found[0].Path)
	}
	for _, arguments := range []string{`{}`, `{"id":null}`, `{"id":["a"]}`, `{"id":{"a":1}}`} {
		assert.Len(t, parsed.check(ijson.Raw(arguments)), 1, arguments)
		_, err := parsed.url(ijson.Raw(arguments), "")
		assert.Error(t, err, arguments)
	}
	assert.Equal(t, "/n", parsed.check(ijson.Raw(`{"id":"a","n":null}`))[0].Path)
	keyed, err := parseTemplate("https://a.example/{key}")
	require.NoError(t, err)
	_, err = keyed.url(ijson.Raw(`{}`), "")
	assert.Error(t, err, "without a key there is no such URL")
}

// Whatever stands in the arguments, the request goes to the template's host, along its segments, with its query.
func FuzzURL(f *testing.F) {
	parsed, err := parseTemplate("https://a.example/v1/{/a}/x-{/b}?fixed=1&c={/c}")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", ".", "..", "a/../..", "%2e%2e%2f", "?x=1#", "@b.example", "\\b", "a\x00b", "é\u2028", " +&=;,:", "//b.example", "\xff"} {
		f.Add(seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		arguments, err := ijson.Marshal(map[string]string{"a": a, "b": b, "c": c})
		if err != nil || len(parsed.check(arguments)) > 0 {
			return
		}
		u, err := parsed.url(arguments, "")
		require.NoError(t, err)
		// As a server reads it.
		r, err := http.NewRequest("GET", u.String(), nil)
		require.NoError(t, err)
		assert.Equal(t, "a.example", r.URL.Host)
		assert.Nil(t, r.URL.User)
		assert.Empty(t, r.URL.Fragment)
		got, err := url.ParseRequestURI(u.RequestURI())
		require.NoError(t, err)
		segments := strings.Split(got.EscapedPath(), "/")
		require.Len(t, segments, 4)
		first, err := url.PathUnescape(segments[2])
		require.NoError(t, err)
		second, err := url.PathUnescape(segments[3])
		require.NoError(t, err)
		assert.Equal(t, []string{"", "v1", a, "x-" + b}, []string{segments[0], segments[1], first, second})
		assert.Equal(t, url.Values{"fixed": {"1"}, "c": {c}}, got.Query())
		assert.Len(t, strings.Split(strings.Trim(got.Path, "/"), "/"), 3)
	})
}
