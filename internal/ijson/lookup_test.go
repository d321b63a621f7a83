package ijson_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestMembers(t *testing.T) {
	object := ijson.Raw(`{"":0,"a":{"b":[1,2]},"\u001f":"x"}`)
	members, ok := ijson.Members(object)
	assert.True(t, ok)
	assert.Equal(t, []ijson.Member{
		{Name: "", Value: ijson.Raw(`0`)},
		{Name: "a", Value: ijson.Raw(`{"b":[1,2]}`)},
		{Name: "\x1f", Value: ijson.Raw(`"x"`)},
	}, members)

	// An append to a part copies it.
	_ = append(members[1].Value, "!!!!!"...)
	assert.Equal(t, `{"":0,"a":{"b":[1,2]},"\u001f":"x"}`, string(object))

	members, ok = ijson.Members(ijson.Raw(`{}`))
	assert.True(t, ok)
	assert.Empty(t, members)
	for _, text := range []string{"", "null", "[]", `"{}"`, "1", `{"a"`, `{"a":}`, `{"a":1`, "}"} {
		_, ok := ijson.Members(ijson.Raw(text))
		assert.False(t, ok, text)
	}
}

func TestLookup(t *testing.T) {
	// The document and the pointers of RFC 6901, section 5, and a few more.
	document := ijson.Raw(`{"":0," ":7,"a/b":1,"c%d":2,"e^f":3,"foo":["bar","baz",{"x":[]}],"g|h":4,"i\\j":5,"k\"l":6,"m~n":8,"~1":9}`)
	found := map[string]string{
		"":         string(document),
		"/foo":     `["bar","baz",{"x":[]}]`,
		"/foo/0":   `"bar"`,
		"/foo/2/x": `[]`,
		"/":        `0`,
		"/a~1b":    `1`,
		"/c%d":     `2`,
		"/e^f":     `3`,
		"/g|h":     `4`,
		"/i\\j":    `5`,
		"/k\"l":    `6`,
		"/ ":       `7`,
		"/m~0n":    `8`,
		"/~01":     `9`,
	}
	for pointer, want := range found {
		got, ok := ijson.Lookup(document, pointer)
		assert.True(t, ok, pointer)
		assert.Equal(t, want, string(got), pointer)
	}
	missing := []string{"/Foo", "/foo/3", "/foo/00", "/foo/01", "/foo/+1", "/foo/-1", "/foo/-", "/foo/x", "/foo/2/x/0",
		"/foo/18446744073709551616", "/foo/", "foo", "#/foo", "/m~n", "/m~2n", "/m~", "/foo/0/0", "/a~1b/c", "/\xff"}
	for _, pointer := range missing {
		_, ok := ijson.Lookup(document, pointer)
		assert.False(t, ok, pointer)
	}
	for _, text := range []string{"", "}", `{"a"`, `{"a":`, `{"b":1,`} {
		_, ok := ijson.Lookup(ijson.Raw(text), "/a")
		assert.False(t, ok, text)
	}
}

func TestString(t *testing.T) {
	for text, want := range map[string]string{`""`: "", `"a\n\u001f"`: "a\n\x1f", `"null"`: "null", `"𝄞"`: "𝄞"} {
		got, ok := ijson.String(ijson.Raw(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "null", "1", "true", "{}", `["a"]`, `"a`, `"\x"`, `"a" "b"`} {
		got, ok := ijson.String(ijson.Raw(text))
		assert.False(t, ok, text)
		assert.Empty(t, got, text)
	}
}
