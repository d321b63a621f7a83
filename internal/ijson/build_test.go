package ijson

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goValues builds what Unmarshal gives for an any, with numbers as they are written.
var goValues = Builder[any]{
	Literal: func(s string) any {
		switch s {
		case "true":
			return true
		case "false":
			return false
		}
		return nil
	},
	Number: func(s string) any { return Raw(s) },
	String: func(s string) any { return s },
	Array:  func(elements []any) any { return append([]any{}, elements...) },
	Object: func(members []any) any {
		object := map[string]any{}
		for i := 0; i < len(members); i += 2 {
			object[members[i].(string)] = members[i+1]
		}
		return object
	},
}

func TestBuild(t *testing.T) {
	for text, want := range map[string]any{
		` null `:                          nil,
		`"a\u00e9\n\ud83d\ude00b"`:        "aé\n😀b",
		`[]`:                              []any{},
		`{}`:                              map[string]any{},
		`[1,[true,[{}]],"",-0.50e1]`:      []any{Raw("1"), []any{true, []any{map[string]any{}}}, "", Raw("-0.50e1")},
		`{"a":{"b":[null]},"\u0062":"c"}`: map[string]any{"a": map[string]any{"b": []any{nil}}, "b": "c"},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := Build([]byte(text), goValues)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}

// Build refuses what Unmarshal refuses, and says the same of it.
func FuzzBuild(f *testing.F) {
	for _, text := range []string{``, ` `, `{"a":1,"\u0061":2}`, `[1`, `[1]]`, `1 2`, `9007199254740993`, `1e400`, `1e999999999`, `"\ud800"`, "\"\xff\"", `{"a"}`, `nul`, `{"a":[{"b":"\/"}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var kept Raw
		want := Unmarshal(text, &kept)
		built, err := Build(text, goValues)
		require.Equal(t, want, err)
		if err != nil {
			return
		}
		again, err := Marshal(built)
		require.NoError(t, err)
		canonical, err := Marshal(kept)
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(again))
	})
}

func TestAppendString(t *testing.T) {
	got, err := AppendString([]byte("x"), "a\"\\<é\u0000\u2028")
	require.NoError(t, err)
	assert.Equal(t, "x\"a\\\"\\\\<é\\u0000\u2028\"", string(got))
	_, err = AppendString(nil, "\xc3")
	var e *Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "not UTF-8", e.Rule)
}
