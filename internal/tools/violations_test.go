package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// secret draws a text that appears in no schema and in none of our messages.
func secret() *rapid.Generator[string] {
	return rapid.StringMatching(`[\n "'/~]?Q[A-Z]{7,100}[\n "'/~]?`)
}

// secretValue draws JSON whose every string and number is recognisable, and tells which they are.
func secretValue(t *rapid.T, depth int) (value any, secrets []string) {
	kinds := 3
	if depth > 0 {
		kinds = 5
	}
	switch rapid.IntRange(1, kinds).Draw(t, "kind") {
	case 1:
		s := secret().Draw(t, "text")
		return s, []string{s}
	case 2:
		n := rapid.IntRange(10_000_000, 99_999_999).Draw(t, "number")
		return n, []string{fmt.Sprint(n)}
	case 3:
		n := rapid.IntRange(10_000_000, 99_999_999).Draw(t, "fraction")
		return float64(-n) / 1000, []string{fmt.Sprint(n / 1000)}
	case 4:
		item, secrets := secretValue(t, depth-1)
		return []any{item}, secrets
	default:
		name := secret().Draw(t, "name")
		member, secrets := secretValue(t, depth-1)
		return map[string]any{name: member}, append(secrets, name)
	}
}

// Whatever is proposed, what is said of it is made of the schema, and of the names of properties in paths alone.
func TestViolationsNeverEchoValues(t *testing.T) {
	tools := lab(t)
	properties := map[string][]string{
		ReadDocument: {"path"},
		Calculate:    {"op", "a", "b"},
		RecordDraft:  {"draft_id", "purpose", "body", "idempotency_key"},
	}
	rapid.Check(t, func(t *rapid.T) {
		tool := rapid.SampledFrom([]string{ReadDocument, Calculate, RecordDraft}).Draw(t, "tool")
		proposed := map[string]any{}
		var values, names []string
		for _, property := range properties[tool] {
			if rapid.Bool().Draw(t, "has "+property) {
				value, secrets := secretValue(t, 2)
				proposed[property] = value
				values = append(values, secrets...)
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "unexpected") {
			name := secret().Draw(t, "unexpected name")
			value, secrets := secretValue(t, 2)
			proposed[name] = value
			names, values = append(names, name), append(values, secrets...)
		}
		text, err := json.Marshal(proposed)
		require.NoError(t, err)
		raw, err := ijson.Canonical(text, ijson.DefaultLimits)
		require.NoError(t, err)

		found := tools[tool].Check(raw)
		require.NotEmpty(t, found)
		require.LessOrEqual(t, len(found), maxViolations)
		require.Equal(t, found, tools[tool].Check(raw), "the same call gets the same answer")
		require.True(t, slices.IsSortedFunc(found, func(a, b dispatch.Violation) int { return strings.Compare(a.Path, b.Path) }))
		require.Len(t, slices.Compact(slices.Clone(found)), len(found))
		for _, v := range found {
			for _, s := range names {
				require.NotContains(t, v.Message, s)
			}
			for _, s := range values {
				require.NotContains(t, v.Message, s)
				if !slices.Contains(names, s) {
					require.NotContains(t, v.Path, s)
				}
			}
		}
	})
}

// Rules that no tool of the Lab uses are named without the values that broke them, and without names out of the arguments.
func TestViolationsOfOtherRules(t *testing.T) {
	tests := []struct {
		name, schema, arguments string
		want                    []dispatch.Violation
	}{
		{"one of several types", `{"properties":{"a":{"type":["integer","null","object"]}}}`, `{"a":"secret"}`,
			[]dispatch.Violation{{Path: "/a", Message: "must be null, an integer or an object"}}},
		{"constant", `{"properties":{"a":{"const":{"b":[1]}}}}`, `{"a":"secret"}`,
			[]dispatch.Violation{{Path: "/a", Message: `must be {"b":[1]}`}}},
		{"minimum that is a fraction", `{"properties":{"a":{"minimum":0.5}}}`, `{"a":0.25}`,
			[]dispatch.Violation{{Path: "/a", Message: "must be at least 0.5"}}},
		{"either", `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"secret":1}`,
			[]dispatch.Violation{{Path: "", Message: "breaks the schema's rule anyOf"}}},
		{"all", `{"allOf":[{"required":["a"]},{"required":["a","b"]}]}`, `{}`,
			[]dispatch.Violation{{Path: "/a", Message: "is required"}, {Path: "/b", Message: "is required"}}},
		{"reference within", `{"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`, `{"a":"secret"}`,
			[]dispatch.Violation{{Path: "/a", Message: "must be an integer"}}},
		{"names of properties", `{"propertyNames":{"pattern":"^[a-z]$"}}`, `{"SECRET":1}`,
			[]dispatch.Violation{{Path: "", Message: "breaks the schema's rule propertyNames"}}},
		{"dependent on another", `{"dependentRequired":{"a":["b"]}}`, `{"a":"secret"}`,
			[]dispatch.Violation{{Path: "", Message: "breaks the schema's rule dependentRequired"}}},
		{"property that may not be", `{"properties":{"a":false}}`, `{"a":"secret"}`,
			[]dispatch.Violation{{Path: "/a", Message: "is not allowed by the schema"}}},
		{"item of a list", `{"properties":{"a":{"items":{"type":"integer"}}}}`, `{"a":[1,"secret",2,null]}`,
			[]dispatch.Violation{{Path: "/a/1", Message: "must be an integer"}, {Path: "/a/3", Message: "must be an integer"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := compile("test", []byte(tt.schema))
			require.NoError(t, err)
			assert.Equal(t, tt.want, s.check(arguments(t, tt.arguments)))
		})
	}
}

func TestViolationsOfVeryLongNames(t *testing.T) {
	long := strings.Repeat("n", maxNameLength)
	got := lab(t)[ReadDocument].Check(arguments(t, `{"path":"/a.txt","`+long+`":0,"`+long+`o":0,"`+long+`p":0}`))
	assert.Equal(t, []dispatch.Violation{
		{Path: "", Message: "has a property with a very long name, which is not a property of this tool"},
		{Path: "/" + long, Message: "is not a property of this tool"},
	}, got)
}

// FuzzCheck looks for a proposal that makes the schema's library panic, answer differently the second time, or say too much.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{readLabels, recordLabel, `{"op":"add","a":12.0,"b":true}`, `{"a/b~":[{}]}`, `[]`, `"x"`, `null`} {
		f.Add([]byte(seed))
	}
	tools := lab(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		raw, err := ijson.Canonical(b, ijson.DefaultLimits)
		if err != nil {
			return
		}
		for name, tool := range tools {
			found := tool.Check(raw)
			if len(found) > maxViolations {
				t.Errorf("%s: %d violations of %s", name, len(found), b)
			}
			if again := tool.Check(raw); !slices.Equal(found, again) {
				t.Errorf("%s: first %v, then %v of %s", name, found, again, b)
			}
			if found != nil {
				continue
			}
			if outcome := tool.Run(t.Context(), callOf(tool, raw)); outcome.Status == dispatch.StatusInternalError {
				t.Errorf("%s: accepted %s and then broke: %s", name, b, outcome.Detail)
			}
		}
	})
}
