package ijson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// FuzzCanonical takes two texts. Whatever they are, each is refused with a rule and a place or has a canonical form: one
// that is its own, that means the same to another reader of JSON, that another canonicaliser gives too, and that the other
// text has if and only if it means the same.
func FuzzCanonical(f *testing.F) {
	for _, pattern := range []string{"parsing/*.json", "jcs/input/*.json"} {
		files, err := filepath.Glob(shared + pattern)
		require.NoError(f, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(f, err)
			if len(text) < 4096 {
				f.Add(text, []byte(`[]`))
			}
		}
	}
	for _, pair := range [][2]string{
		{`1`, `1.0`}, {`1`, `10e-1`}, {`0`, `-0.0e5`}, {`0.1`, `0.10000000000000000001`}, {`0.1`, `0.10000000000000001`}, {`0.3`, `0.30000000000000004`},
		{`9007199254740992`, `9007199254740994`}, {`1e21`, `1000000000000000000000`}, {`1E30`, `1e+30`}, {`5e-324`, `4e-324`}, {`1e-7`, `0.0000001`},
		{`"a"`, `"\u0061"`}, {`"\u2028"`, "\"\u2028\""}, {`"\ud834\udd1e"`, `"𝄞"`}, {`"é"`, "\"e\u0301\""}, {`"\/"`, `"/"`}, {`"\u0000"`, `""`},
		{`{"a":1,"b":2}`, ` { "b" : 2 , "a" : 1 } `}, {`{"a":1}`, `{"A":1}`}, {`{"a":null}`, `{}`}, {`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5}`, `{}`},
		{`[1,2]`, `[2,1]`}, {`[[]]`, `[]`}, {`1`, `"1"`}, {`true`, `"true"`}, {`null`, `false`}, {`{"a":1,"a":2}`, `{"a":2}`}, {`9007199254740993`, `9007199254740992`},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, text, other []byte) {
		form, accepted := canonicalOf(t, text)
		form2, accepted2 := canonicalOf(t, other)
		if accepted && accepted2 {
			assert.Equal(t, same(t, read(t, text), read(t, other)), bytes.Equal(form, form2), "%q and %q", text, other)
		}
	})
}

// canonicalOf holds one text against all that is promised of one.
func canonicalOf(t *testing.T, text []byte) (ijson.Raw, bool) {
	t.Helper()
	before := bytes.Clone(text)
	form, err := ijson.Canonical(text, ijson.DefaultLimits)
	require.Equal(t, before, text, "the text is left alone")
	if err != nil {
		var e *ijson.Error
		require.ErrorAs(t, err, &e)
		assert.NotEmpty(t, e.Rule)
		assert.True(t, 0 <= e.Offset && e.Offset <= int64(len(text)), "byte %d of %d", e.Offset, len(text))
		assert.Less(t, len(err.Error()), 1500)
		assert.NotContains(t, err.Error(), "\n")
		return nil, false
	}
	again, err := ijson.Canonical(form, ijson.Limits{Bytes: len(form), Depth: ijson.DefaultLimits.Depth})
	require.NoError(t, err)
	assert.Equal(t, string(form), string(again))
	require.True(t, json.Valid(text), "nothing is accepted that encoding/json refuses")
	assert.True(t, same(t, read(t, text), read(t, form)), "%q is not %q", text, form)

	theirs, err := jcs.Transform(text)
	require.NoError(t, err)
	assert.Equal(t, string(theirs), string(form))
	return form, true
}

// read reads a text as encoding/json does, numbers as they are written.
func read(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	_, err := d.Token()
	require.True(t, errors.Is(err, io.EOF))
	return v
}

// same says whether two values are one in I-JSON: numbers are what the nearest doubles are.
func same(t *testing.T, a, b any) bool {
	t.Helper()
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && double(t, a) == double(t, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, func(x, y any) bool { return same(t, x, y) })
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, func(x, y any) bool { return same(t, x, y) })
	}
	return a == b
}

// double rounds exactly, without the code that the package itself rounds with.
func double(t *testing.T, n json.Number) float64 {
	t.Helper()
	mantissa, _, _ := strings.Cut(strings.ToLower(string(n)), "e")
	if strings.Trim(mantissa, "-0.") == "" {
		return 0 // big.Rat would write out the exponent
	}
	r, ok := new(big.Rat).SetString(string(n))
	require.True(t, ok, n)
	f, _ := r.Float64()
	return f
}
