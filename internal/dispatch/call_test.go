package dispatch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestDecode(t *testing.T) {
	const good = `{"call_id":"c-1","tool":"calculate","arguments":{"a":1}}`
	long := strings.Repeat("é", 41)
	for _, row := range []struct {
		name, proposal string
		malformed      string // a part of the reason; empty for a proposal
		id             string
		hasID          bool
	}{
		{"a proposal", good, "", "c-1", true},
		{"members in another order", `{"tool":"calculate","arguments":{"a":1},"call_id":"c-1"}`, "", "c-1", true},
		{"forty characters", strings.Replace(good, "c-1", strings.Repeat("a", 40), 1), "", strings.Repeat("a", 40), true},
		{"empty arguments", `{"call_id":"c-1","tool":"calculate","arguments":{}}`, "", "c-1", true},
		{"an empty tool", `{"call_id":"c-1","tool":"","arguments":{}}`, "", "c-1", true},
		{"nothing", ``, "not I-JSON", "", false},
		{"a blank line", ` `, "not I-JSON", "", false},
		{"text", `hello`, "not I-JSON", "", false},
		{"cut off", good[:len(good)-1], "not I-JSON", "", false},
		{"two values", good + good, "not I-JSON", "", false},
		{"a byte order mark", "\ufeff" + good, "not I-JSON", "", false},
		{"a repeated name", `{"call_id":"c-1","tool":"a","tool":"b","arguments":{}}`, "/tool", "", false},
		{"a repeated name after unescaping", `{"call_id":"c-1","tool":"a","t\u006fol":"b","arguments":{}}`, "/tool", "", false},
		{"a repeated name in the arguments", `{"call_id":"c-1","tool":"a","arguments":{"x":[{"y":1,"y":2}]}}`, "/arguments/x/0/y", "", false},
		{"an integer that no double holds", `{"call_id":"c-1","tool":"a","arguments":{"n":9007199254740993}}`, "/arguments/n", "", false},
		{"null", `null`, "not an object", "", false},
		{"a list", `[` + good + `]`, "not an object", "", false},
		{"a string", `"call"`, "not an object", "", false},
		{"a member more", `{"call_id":"c-1","tool":"a","arguments":{},"approved":true}`, "beside call_id, tool and arguments", "c-1", true},
		{"a name in another case", `{"call_id":"c-1","Tool":"a","arguments":{}}`, "beside call_id, tool and arguments", "c-1", true},
		{"a long s", `{"call_id":"c-1","tool":"a","argumentſ":{}}`, "beside call_id, tool and arguments", "c-1", true},
		{"no call id", `{"tool":"a","arguments":{}}`, "has no call_id", "", false},
		{"no tool", `{"call_id":"c-1","arguments":{}}`, "has no tool", "c-1", true},
		{"no arguments", `{"call_id":"c-1","tool":"a"}`, "has no arguments", "c-1", true},
		{"a number as call id", `{"call_id":7,"tool":"a","arguments":{}}`, "call_id that is not a string", "", false},
		{"null as call id", `{"call_id":null,"tool":"a","arguments":{}}`, "call_id that is not a string", "", false},
		{"an empty call id", `{"call_id":"","tool":"a","arguments":{}}`, "letters, digits or hyphens", "", true},
		{"a space in the call id", `{"call_id":"c 1","tool":"a","arguments":{}}`, "letters, digits or hyphens", "c 1", true},
		{"a newline after the call id", `{"call_id":"c1\n","tool":"a","arguments":{}}`, "letters, digits or hyphens", "c1\n", true},
		{"forty-one characters", `{"call_id":"` + long + `","tool":"a","arguments":{}}`, "letters, digits or hyphens", strings.Repeat("é", 40) + "…", true},
		{"a list as tool", `{"call_id":"c-1","tool":["a"],"arguments":{}}`, "tool that is not a string", "c-1", true},
		{"null as tool", `{"call_id":"c-1","tool":null,"arguments":{}}`, "tool that is not a string", "c-1", true},
		{"a list as arguments", `{"call_id":"c-1","tool":"a","arguments":[]}`, "arguments that are not an object", "c-1", true},
		{"null as arguments", `{"call_id":"c-1","tool":"a","arguments":null}`, "arguments that are not an object", "c-1", true},
		{"text as arguments", `{"call_id":"c-1","tool":"a","arguments":"{}"}`, "arguments that are not an object", "c-1", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := decode([]byte(row.proposal), 0, ijson.DefaultLimits)
			assert.Equal(t, row.id, c.ID)
			assert.Equal(t, row.hasID, c.HasID)
			assert.EqualValues(t, len(row.proposal), c.Length)
			if row.malformed == "" {
				assert.Empty(t, c.Malformed)
				assert.NotEmpty(t, c.Proposal)
				return
			}
			assert.Contains(t, c.Malformed, row.malformed)
			assert.Empty(t, c.Tool)
			assert.Nil(t, c.Arguments)
			assert.Nil(t, c.Proposal)
		})
	}
}

// What is too long is not parsed, whatever its beginning looks like; its whole length is kept.
func TestDecodeTooLong(t *testing.T) {
	lim := ijson.Limits{Bytes: 60, Depth: 64}
	proposal := `{"call_id":"c-1","tool":"calculate","arguments":{"a":1}}`
	require.Empty(t, decode([]byte(proposal+"    "), 0, lim).Malformed)
	for _, length := range []int64{61, 10 << 30} {
		c := decode([]byte(proposal), length, lim)
		assert.Contains(t, c.Malformed, "the limit is 60")
		assert.Equal(t, length, c.Length)
		assert.False(t, c.HasID)
	}
}

// The signature is an equality key over everything that makes a call this call, and over nothing else.
func TestSignature(t *testing.T) {
	sign := func(key string, task TaskKey, actor, proposal string) string {
		c := decode([]byte(proposal), 0, ijson.DefaultLimits)
		require.Empty(t, c.Malformed)
		require.NoError(t, c.sign([]byte(key), task, actor))
		return c.Signature
	}
	task := TaskKey{"default", "labels-1"}
	const proposal = `{"call_id":"c1","tool":"a","arguments":{"x":1,"y":[true,null]}}`
	base := sign("k", task, "learner", proposal)
	assert.Len(t, base, 64)
	assert.Equal(t, base, sign("k", task, "learner", `{"arguments":{"y":[true,null],"x":1.0},"tool":"a","call_id":"c2"}`))
	for name, other := range map[string]string{
		"store's key": sign("K", task, "learner", proposal),
		"tenant":      sign("k", TaskKey{"other", "labels-1"}, "learner", proposal),
		"task":        sign("k", TaskKey{"default", "labels-2"}, "learner", proposal),
		"actor":       sign("k", task, "maya", proposal),
		"tool":        sign("k", task, "learner", strings.Replace(proposal, `"a"`, `"A"`, 1)),
		"arguments":   sign("k", task, "learner", strings.Replace(proposal, "1", "2", 2)),
		"null member": sign("k", task, "learner", strings.Replace(proposal, `"x":1`, `"x":1,"z":null`, 1)),
		// A border between fields that moves must not give the same text.
		"shifted border": sign("k", TaskKey{"default", "labels-1learner"}, "", proposal),
	} {
		assert.NotEqual(t, base, other, name)
	}
}

// FuzzDecode: whatever arrives is a call, and what is accepted is canonical and is itself again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"call_id":"c-1","tool":"calculate","arguments":{"a":1}}`, `{"call_id":"c","tool":"t","arguments":{"x":[{"y":1e2}]}}`,
		`{"call_id":7}`, `[]`, ``, `{"call_id":"\ud800","tool":"t","arguments":{}}`, `{"call_id":"c","tool":"t","arguments":{"a":1,"a":2}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := decode(b, 0, ijson.DefaultLimits)
		if c.Malformed != "" {
			assert.Nil(t, c.Arguments)
			return
		}
		again := decode(c.Proposal, 0, ijson.DefaultLimits)
		again.Length = c.Length
		assert.Equal(t, c, again)
		assert.True(t, callIDForm.MatchString(c.ID))
	})
}
