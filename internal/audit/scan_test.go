package audit

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// FuzzScan holds the scanner against the package that knows the rules: it takes exactly what is its own canonical form
// there, and finds the same values in it.
func FuzzScan(f *testing.F) {
	for _, text := range []string{
		``, ` `, `null`, `nul`, `true`, `false`, `0`, `-0`, `-1`, `01`, `1.5`, `1e5`, `1e+21`, `1e21`, `123456789012345`, `9007199254740993`, `9007199254740992`, `-`, `.5`, `1.`, `5e-324`,
		`""`, `"a"`, `"abcdefgh"`, `"abcdefg\"hij"`, `"\u0000"`, `"\u001f"`, `"\u001F"`, `"\b\f\n\r\t"`, `"\u0008"`, `"\u0009"`, `"\u000b"`, `"\/"`, `"\u0061"`, "\"\x7f\"", "\"\x01\"", `"é😀"`, "\"\xff\"", "\"\xed\xa0\x80\"", `"`, `"\`, `"\u00`, "\"\u2028\"",
		`[]`, `{}`, `[`, `{`, `[]]`, `[1,2]`, `[1,]`, `[,1]`, `[1 ,2]`, `[1}`, `{"a":1}`, `{"a":1,"b":2}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{1:2}`, `{"a":{"b":[{}]},"c":[[]]}`,
		`{"\r":1,"1":2,"€":3,"😀":4,"דּ":5}`, `{"😀":4,"דּ":5}`, `{"דּ":5,"😀":4}`, `{"a":1,"a\"":2}`, `{"a\\":1,"ab":2}`, strings.Repeat("[", 1001) + strings.Repeat("]", 1001), strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
	} {
		f.Add([]byte(text))
	}
	var d doc
	f.Fuzz(func(t *testing.T, text []byte) {
		canonical, err := ijson.Canonical(text, ijson.Limits{Bytes: len(text), Depth: deepest})
		want := err == nil && bytes.Equal(canonical, text)
		err = d.scan(text)
		require.Equal(t, want, err == nil, "%q: %v", text, err)
		if err == nil {
			end := same(t, &d, 1, text)
			require.EqualValues(t, len(d.nodes), end)
		}
	})
}

// same holds the value n against the same bytes as ijson reads them. It gives the value after it.
func same(t *testing.T, d *doc, n int32, want ijson.Raw) int32 {
	t.Helper()
	require.Equal(t, string(want), string(d.raw(n)))
	switch d.kind(n) {
	case '{':
		members, ok := ijson.Members(want)
		require.True(t, ok)
		i, end := d.inside(n)
		for _, m := range members {
			require.Equal(t, m.Name, plainText(d.str(i)))
			i = same(t, d, i+1, m.Value)
		}
		require.Equal(t, end, i)
	case '[':
		i, end := d.inside(n)
		var elements []ijson.Raw
		require.NoError(t, ijson.Unmarshal(want, &elements))
		for _, element := range elements {
			i = same(t, d, i, element)
		}
		require.Equal(t, end, i)
	case '"':
		s, ok := ijson.String(want)
		require.True(t, ok)
		require.Equal(t, s, plainText(d.str(n)))
	}
	return d.nodes[n].next
}

func TestPick(t *testing.T) {
	var d doc
	require.NoError(t, d.scan([]byte(`{"a":1,"aa":"x","b":{"a":7},"d":true,"e":-3}`)))
	var at [6]int32
	d.pick(1, []string{"a", "aaa", "b", "c", "d", "f"}, at[:])
	assert.Equal(t, []string{"1", "", `{"a":7}`, "", "true", ""}, []string{string(d.raw(at[0])), string(d.raw(at[1])), string(d.raw(at[2])), string(d.raw(at[3])), string(d.raw(at[4])), string(d.raw(at[5]))})
	assert.True(t, d.isTrue(at[4]))
	assert.EqualValues(t, 1, d.count(at[0]))
	var inner [1]int32
	d.pick(at[2], []string{"a"}, inner[:])
	assert.EqualValues(t, 7, d.count(inner[0]))
	d.pick(at[0], []string{"a"}, inner[:])
	assert.Zero(t, inner[0], "a number has no members")
	d.pick(1, []string{"e"}, inner[:])
	_, ok := d.number(inner[0])
	assert.False(t, ok, "negative")
}

// Every table of names is in the order in which pick walks.
func TestNamesAreInOrder(t *testing.T) {
	for _, names := range [][]string{entryNames[:], decisionNames[:], inputNames[:], callNames[:], stateNames[:], taskNames[:], toolNames[:], standNames[:], termNames[:], stageNames[:], voteNames[:]} {
		assert.IsIncreasing(t, names)
	}
}
