package opa

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestVersion(t *testing.T) {
	bundle := files{
		".manifest":   `{"revision": "lab-1", "roots": ["policy"]}`,
		"a.rego":      "package policy\n\n" + allow,
		"b.rego":      "package policy\n\n_b := 1\n",
		"a_test.rego": "package policy_test\n\ntest_a if true\n",
		"data.json":   `{"readable": {"warehouse": {"/a": true, "/b": true}}}`,
	}
	profiles := map[string]Profile{"x": {Tools: []string{"a", "b"}}, "y": {Readable: []string{"warehouse"}}}
	options := func(o *Options) { o.Profiles, o.Config = profiles, ijson.Raw(`{"a":1}`) }
	version := func(t *testing.T, f files, change ...func(*Options)) string {
		t.Helper()
		p, err := load(t, f, append([]func(*Options){options}, change...)...)
		require.NoError(t, err)
		return p.Version()
	}
	base := version(t, bundle)
	assert.Regexp(t, regexp.MustCompile(`^lab-1@sha256:[0-9a-f]{64}$`), base)
	// Written down, so that another machine, another Go and another map order must agree.
	assert.Equal(t, "lab-1@sha256:13a6b17a7f0b76b445bc406f2c6a0b5c5ff5632f92e32b15d8ba390ee2592b78", base)

	same := map[string]func(t *testing.T) string{
		"again":        func(t *testing.T) string { return version(t, bundle) },
		"another test": func(t *testing.T) string { return version(t, bundle.with("a_test.rego", "package policy_test\n")) },
		"data rearranged": func(t *testing.T) string {
			return version(t, bundle.with("data.json", `{ "readable" : {"warehouse": {"/b": true, "/a": true}}}`))
		},
		"data split": func(t *testing.T) string {
			return version(t, bundle.with("data.json", `{"readable": {"warehouse": {"/b": true}}}`).
				with("more.json", `{"readable": {"warehouse": {"/a": true}}}`))
		},
		"tools in another order": func(t *testing.T) string {
			return version(t, bundle, func(o *Options) {
				o.Profiles = map[string]Profile{"y": {Readable: []string{"warehouse"}}, "x": {Tools: []string{"b", "a"}}}
			})
		},
		"another time-out": func(t *testing.T) string { return version(t, bundle, func(o *Options) { o.Timeout = 7 }) },
		"from a folder": func(t *testing.T) string {
			s, err := ReadPaths([]string{bundle.write(t)}, Source{})
			require.NoError(t, err)
			return version(t, bundle, func(o *Options) { o.Source = s })
		},
	}
	for name, f := range same {
		t.Run("same: "+name, func(t *testing.T) { assert.Equal(t, base, f(t)) })
	}

	other := map[string]func(t *testing.T) string{
		"a comment": func(t *testing.T) string { return version(t, bundle.with("b.rego", bundle["b.rego"]+"# why\n")) },
		"a file's name": func(t *testing.T) string {
			f := bundle.with("c.rego", bundle["b.rego"])
			delete(f, "b.rego")
			return version(t, f)
		},
		"a rule more": func(t *testing.T) string { return version(t, bundle.with("c.rego", "package policy\n")) },
		"a target": func(t *testing.T) string {
			return version(t, bundle.with("data.json", `{"readable": {"warehouse": {"/a": true}}}`))
		},
		"other data":   func(t *testing.T) string { return version(t, bundle.with("more.json", `{"limits": {"n": 3}}`)) },
		"the revision": func(t *testing.T) string { return version(t, bundle.with(".manifest", `{"revision": "lab-2"}`)) },
		"no revision":  func(t *testing.T) string { f := bundle.with("x.txt", ""); delete(f, ".manifest"); return version(t, f) },
		"a profile":    func(t *testing.T) string { return version(t, bundle, func(o *Options) { o.Profiles = nil }) },
		"the config": func(t *testing.T) string {
			return version(t, bundle, func(o *Options) { o.Config = ijson.Raw(`{"a":2}`) })
		},
		"no config": func(t *testing.T) string { return version(t, bundle, func(o *Options) { o.Config = nil }) },
		"text moved over": func(t *testing.T) string {
			return version(t, bundle.with("a.rego", bundle["b.rego"]).with("b.rego", bundle["a.rego"]))
		},
	}
	seen := map[string]string{base: "the first"}
	for name, f := range other {
		t.Run("other: "+name, func(t *testing.T) {
			v := f(t)
			assert.NotContains(t, seen, v, "the same as %s", seen[v])
			seen[v] = name
		})
	}
}
