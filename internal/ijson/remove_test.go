package ijson_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestRemove(t *testing.T) {
	document := `{"":0,"a":{"b":{"c":1},"d":2},"a/b":1,"list":[{"x":1,"y":2},7],"m~n":8,"~1":9}`
	removed := map[string]string{
		"/":         `{"a":{"b":{"c":1},"d":2},"a/b":1,"list":[{"x":1,"y":2},7],"m~n":8,"~1":9}`,
		"/a":        `{"":0,"a/b":1,"list":[{"x":1,"y":2},7],"m~n":8,"~1":9}`,
		"/a/b":      `{"":0,"a":{"d":2},"a/b":1,"list":[{"x":1,"y":2},7],"m~n":8,"~1":9}`,
		"/a/b/c":    `{"":0,"a":{"b":{},"d":2},"a/b":1,"list":[{"x":1,"y":2},7],"m~n":8,"~1":9}`,
		"/a/d":      `{"":0,"a":{"b":{"c":1}},"a/b":1,"list":[{"x":1,"y":2},7],"m~n":8,"~1":9}`,
		"/a~1b":     `{"":0,"a":{"b":{"c":1},"d":2},"list":[{"x":1,"y":2},7],"m~n":8,"~1":9}`,
		"/list":     `{"":0,"a":{"b":{"c":1},"d":2},"a/b":1,"m~n":8,"~1":9}`,
		"/list/0/x": `{"":0,"a":{"b":{"c":1},"d":2},"a/b":1,"list":[{"y":2},7],"m~n":8,"~1":9}`,
		"/m~0n":     `{"":0,"a":{"b":{"c":1},"d":2},"a/b":1,"list":[{"x":1,"y":2},7],"~1":9}`,
		"/~01":      `{"":0,"a":{"b":{"c":1},"d":2},"a/b":1,"list":[{"x":1,"y":2},7],"m~n":8}`,
	}
	for pointer, want := range removed {
		given := ijson.Raw(document)
		got, ok := ijson.Remove(given, pointer)
		assert.True(t, ok, pointer)
		assert.Equal(t, want, string(got), pointer)
		assert.Equal(t, document, string(given), "%s: what was given is left alone", pointer)
	}
	kept := []string{"", "/none", "/A", "/a/none", "/a/b/c/d", "/list/0", "/list/1", "/list/2/x", "/list/00/x", "/list/-", "/m~1n",
		"a", "#/a", "/m~n", "/m~2n", "/a/", "/\xff"}
	for _, pointer := range kept {
		got, ok := ijson.Remove(ijson.Raw(document), pointer)
		assert.False(t, ok, pointer)
		assert.Equal(t, document, string(got), pointer)
	}
	for _, text := range []string{"", "}", "[]", "7", `"a"`, `{"a"`, `{"a":`, `{"a":}`, `{"a":1`, `{"a":true`, `{"b":1,`, `{"b":1,"a":"x"`} {
		got, ok := ijson.Remove(ijson.Raw(text), "/a")
		assert.False(t, ok, text)
		assert.Equal(t, text, string(got), text)
	}
}

// without removes a member that is there from a value as encoding/json decodes it.
func without(value any, tokens []string) any {
	switch v := value.(type) {
	case map[string]any:
		if len(tokens) == 1 {
			delete(v, tokens[0])
		} else if inner, ok := v[tokens[0]]; ok {
			v[tokens[0]] = without(inner, tokens[1:])
		}
	case []any:
		if i, err := strconv.Atoi(tokens[0]); err == nil {
			v[i] = without(v[i], tokens[1:])
		}
	}
	return value
}

// FuzzRemove holds Remove against decoding, deleting and writing anew.
func FuzzRemove(f *testing.F) {
	for _, pointer := range []string{"/a", "/a~1b", "/m~0n/0/x", "", "/", "//", "/0"} {
		f.Add([]byte(`{"":{"":1},"0":2,"a":{"b":1},"a/b":[{"a":1}],"m~n":[{"x":"\u2028"},{}],"z":"é"}`), pointer)
	}
	f.Add([]byte(`[{"a":1,"a":2}]`), "/0/a")
	f.Fuzz(func(t *testing.T, text []byte, pointer string) {
		_, _ = ijson.Remove(text, pointer) // whatever it is given, it does not panic
		given, err := ijson.Canonical(text, ijson.DefaultLimits)
		if err != nil {
			return
		}
		got, changed := ijson.Remove(given, pointer)
		again, err := ijson.Canonical(got, ijson.Limits{Bytes: len(given), Depth: ijson.DefaultLimits.Depth})
		require.NoError(t, err)
		assert.Equal(t, string(again), string(got), "what is left is canonical")
		assert.Equal(t, changed, string(got) != string(given))
		_, there := ijson.Lookup(got, pointer)
		assert.False(t, changed && there)
		if !changed {
			return
		}
		var value any
		require.NoError(t, json.Unmarshal(given, &value))
		tokens := strings.Split(pointer, "/")[1:]
		for i, token := range tokens {
			tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		}
		want, err := ijson.Marshal(without(value, tokens))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got))
	})
}
