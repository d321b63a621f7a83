package strictyaml_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/strictyaml"
)

type config struct {
	Profiles map[string]profile `json:"profiles"`
	MaxSteps int                `json:"max_steps"`
	Small    int8               `json:"small"`
	Ratio    float64            `json:"ratio"`
	Name     string             `json:"name"`
	On       bool               `json:"on"`
	Start    string             `json:"start"`
	Until    time.Time          `json:"until"`
	Window   window             `json:"window"`
	Tasks    []struct {
		ID string `json:"id"`
	} `json:"tasks"`
	Schema ijson.Raw `json:"schema"`
	Empty  struct{}  `json:"empty"`
}

type profile struct {
	Tools    []string `json:"tools"`
	Readable string   `json:"readable"`
	Writable string   `json:"writable"`
}

// window takes a duration with its unit.
type window time.Duration

func (w *window) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil {
		return errors.New(`not a duration; write it like "24h"`)
	}
	*w = window(d)
	return nil
}

func TestUnmarshal(t *testing.T) {
	var got config
	require.NoError(t, strictyaml.Unmarshal("config.yaml", []byte(`# a comment
profiles:
  warehouse:
    tools: [calculate, "read_document"]
    readable: warehouse
  Warehouse: {tools: [], "writable": 'x'}
max_steps: 12
small: -3
ratio: 2.50
name: on
on: true
start: 2026-07-01
until: 2026-07-01T12:00:00Z
window: 24h
tasks:
- id: "1"
- id: null
schema:
  additionalProperties: false
  maximum: 1E+30
  pattern: |
    ^a"\$
  yes: [no, off, ~, 1.10, "0x1f", 12:30:00, 2026-07-01 00:00:00, 1.2.3.4]
`), &got))
	assert.Equal(t, config{
		Profiles: map[string]profile{
			"warehouse": {Tools: []string{"calculate", "read_document"}, Readable: "warehouse"},
			"Warehouse": {Tools: []string{}, Writable: "x"},
		},
		MaxSteps: 12, Small: -3, Ratio: 2.5, Name: "on", On: true,
		Start: "2026-07-01", Until: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), Window: window(24 * time.Hour),
		Tasks: []struct {
			ID string `json:"id"`
		}{{"1"}, {""}},
		Schema: ijson.Raw(`{"additionalProperties":false,"maximum":1E+30,"pattern":"^a\"\\$\n",` +
			`"yes":["no","off",null,1.10,"0x1f","12:30:00","2026-07-01 00:00:00","1.2.3.4"]}`),
	}, got)
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	for _, literal := range []string{"0", "-0", "12", "12.0", "1e2", "1E+30", "0.1000000000000000000000001", "9007199254740992", "-1.5e-3"} {
		var got ijson.Raw
		require.NoError(t, strictyaml.Unmarshal("n.yaml", []byte("- "+literal+"\n"), &got))
		assert.Equal(t, "["+literal+"]", string(got))
	}
}

func TestRefusals(t *testing.T) {
	const (
		notDecimal = "a number that is not decimal; write it in decimal, or put it in quotes if it is a string"
		notJSON    = "a number that JSON does not have; write it in decimal like 12, -3 or 0.5, or put it in quotes if it is a string"
		notString  = "a key is a string; put it in quotes"
		anchors    = "anchors and aliases are not used here; write the value out"
		emptyText  = "the document is empty; write its keys, or remove it"
		inexact    = "integer that a double cannot hold; put it in quotes if it is a name, or write one below 2^53"
	)
	tests := []struct{ name, text, want string }{
		{"unknown key", "profiles:\n  warehouse:\n    redable: x\n", `f.yaml:3: profiles.warehouse.redable: unknown key; did you mean "readable"?`},
		{"unknown key in another case", "NAME: x\n", `f.yaml:1: NAME: unknown key; did you mean "name"?`},
		{"unknown key near nothing", "profiles:\n  w: {colour: red}\n", `f.yaml:2: profiles.w.colour: unknown key; known keys are tools, readable, writable`},
		{"unknown key in a list", "tasks:\n- id: a\n- ids: b\n", `f.yaml:3: tasks[1].ids: unknown key; did you mean "id"?`},
		{"unknown key where none is known", "empty: {a: 1}\n", `f.yaml:1: empty.a: unknown key; there are no keys here; remove it`},
		{"unknown key that looks like a path", `{"a.b/c~d": 1}`, `f.yaml:1: "a.b/c~d": unknown key; known keys are profiles, max_steps, small, ratio, name, on, start, until, window, tasks, schema, empty`},
		{"unknown key under such a key", "profiles:\n  \"a.b/~1\":\n    \"\\e[31m\": 1\n", `f.yaml:3: profiles."a.b/~1"."\x1b[31m": unknown key; known keys are tools, readable, writable`},

		{"string for a number", "profiles: {}\nmax_steps: \"3\"\n", "f.yaml:2: max_steps: wants a whole number, not a string; write digits alone, without quotes"},
		{"fraction for an integer", "max_steps: 1.5\n", "f.yaml:1: max_steps: wants a whole number, without fraction or exponent; write digits alone, without quotes"},
		{"integer out of range", "small: 128\n", "f.yaml:1: small: out of range for a Go int8; write a smaller number"},
		{"number for a string", "name: 1.10\n", "f.yaml:1: name: wants a string, not a number; put it in quotes"},
		{"boolean for a string", "name: true\n", "f.yaml:1: name: wants a string, not true; put it in quotes"},
		{"word for a boolean", "on: yes\n", "f.yaml:1: on: wants true or false, not a string; write one of the two, without quotes"},
		{"scalar for a list", "profiles:\n  w:\n    tools: calculate\n", "f.yaml:3: profiles.w.tools: wants an array, not a string; write a list in brackets, like [a, b]"},
		{"list for a mapping", "profiles:\n- w\n", "f.yaml:1: profiles: wants an object, not an array; write keys with their values, like {key: value}"},
		{"element of the wrong type", "profiles:\n  w:\n    tools:\n    - a\n    - 2\n", "f.yaml:5: profiles.w.tools[1]: wants a string, not a number; put it in quotes"},
		{"scalar for the document", "hello\n", "f.yaml:1: wants an object, not a string; write keys with their values, like {key: value}"},
		{"date for a time", "until: 2026-07-01\n", "f.yaml:1: until: wants a time as RFC 3339 writes it; write it like 2026-01-31T09:00:00Z"},
		{"what a type's own decoder wants", "window: 2 days\n", `f.yaml:1: window: not a duration; write it like "24h"`},

		{"repeated key", "name: a\non: true\nname: b\n", "f.yaml:3: name: repeated key, already on line 1; keep one"},
		{"repeated key in quotes", "schema:\n  x:\n  - {a: 1, \"\\x61\": 1}\n", "f.yaml:3: schema.x[0].a: repeated key, already on line 3; keep one"},
		{"number as a key", "schema:\n  1: a\n", "f.yaml:2: schema.1: " + notString},
		{"boolean as a key", "schema:\n  true: a\n", "f.yaml:2: schema.true: " + notString},
		{"null as a key", "schema:\n  ~: a\n", `f.yaml:2: schema."~": ` + notString},
		{"huge number as a key", "schema:\n  1e400: a\n", "f.yaml:2: schema.1e400: " + notString},
		{"list as a key", "schema:\n  [a]: b\n", "f.yaml:2: schema: a list or mapping as a key; a key is a string"},
		{"merge key", "schema:\n  <<: {a: b}\n", "f.yaml:2: schema: merge keys are not used here; write the keys out"},
		{"merge as a value", "name: <<\n", "f.yaml:1: name: merge keys are not used here; put << in quotes if it is a string"},
		{"anchor", "schema: &a {b: c}\n", "f.yaml:1: schema: " + anchors},
		{"alias", "schema:\n  a: &x 1\n  b: *x\n", "f.yaml:2: schema.a: " + anchors},
		{"anchor at a key", "schema:\n  &x a: b\n", "f.yaml:2: schema: " + anchors},
		{"own tag", "name: !secret x\n", `f.yaml:1: name: tags such as "!secret" are not used here; remove it, and quote a value that is to be a string`},
		{"tag of YAML", "name: !!binary aGk=\n", `f.yaml:1: name: tags such as "!!binary" are not used here; remove it, and quote a value that is to be a string`},
		{"tag at a key", "!!str name: x\n", `f.yaml:1: tags such as "!!str" are not used here; remove it, and quote a value that is to be a string`},
		{"tag at a mapping", "schema: !!set {a}\n", `f.yaml:1: schema: tags such as "!!set" are not used here; remove it, and quote a value that is to be a string`},

		{"hexadecimal", "max_steps: 0x1F\n", "f.yaml:1: max_steps: " + notDecimal},
		{"hexadecimal beyond 64 bits", "name: 0xffffffffffffffffffff\n", "f.yaml:1: name: " + notDecimal},
		{"octal", "max_steps: 0o17\n", "f.yaml:1: max_steps: " + notDecimal},
		{"octal of YAML 1.1", "max_steps: 017\n", "f.yaml:1: max_steps: " + notJSON},
		{"binary", "max_steps: -0b11\n", "f.yaml:1: max_steps: " + notDecimal},
		{"underscores", "max_steps: 1_000\n", "f.yaml:1: max_steps: " + notJSON},
		{"plus sign", "max_steps: +1\n", "f.yaml:1: max_steps: " + notJSON},
		{"no digit before the point", "ratio: .5\n", "f.yaml:1: ratio: " + notJSON},
		{"no digit after the point", "ratio: 5.\n", "f.yaml:1: ratio: " + notJSON},
		{"not a number", "ratio: .nan\n", "f.yaml:1: ratio: " + notJSON},
		{"infinity", "ratio: -.inf\n", "f.yaml:1: ratio: " + notJSON},
		{"overflow", "ratio: 1e400\n", "f.yaml:1: ratio: number too large for a double; write a smaller one"},
		{"underflow", "ratio: 1e-400\n", "f.yaml:1: ratio: number too close to zero for a double; write 0"},
		{"exponent without end", "ratio: 1e999999999\n", "f.yaml:1: ratio: exponent out of range; write the number without an exponent"},
		{"integer that would be rounded", "name: x\nschema:\n  maximum: 9007199254740993\n", "f.yaml:3: schema.maximum: " + inexact},
		{"integer beyond 64 bits", "schema: [28857836529306024611912]\n", "f.yaml:1: schema[0]: " + inexact},

		{"nothing", "", "f.yaml: " + emptyText},
		{"comments alone", "# nothing\n", "f.yaml: " + emptyText},
		{"a marker alone", "\n---\n", "f.yaml:3: " + emptyText},
		{"null", "null\n", "f.yaml:1: " + emptyText},
		{"two documents", "name: a\n---\nname: b\n", "f.yaml:3: a second document; put one document into this file"},
		{"an empty second document", "name: a\n---\n", "f.yaml:3: " + emptyText},
		{"too deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), "f.yaml:1: " + strings.Repeat("[0]", 64) + ": nested deeper than 64 levels; flatten it"},
		{"syntax", "name: a\n  on: true\n", "f.yaml:2: not YAML: mapping values are not allowed in this context"},
		{"tab", "name:\n\ton: true\n", "f.yaml:2: not YAML: found character that cannot start any token"},
		{"not UTF-8", "name: \"\xff\"\n", "f.yaml: not YAML: invalid leading UTF-8 octet"},
		{"unknown alias", "name: *x\n", "f.yaml: not YAML: unknown anchor 'x' referenced"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := strictyaml.Unmarshal("f.yaml", []byte(tt.text), new(config))
			assert.EqualError(t, err, tt.want)
			var e *strictyaml.Error
			assert.ErrorAs(t, err, &e)
		})
	}
}

func TestLimits(t *testing.T) {
	var got any
	deep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	require.NoError(t, strictyaml.Unmarshal("f.yaml", []byte(deep), &got))
	require.NoError(t, strictyaml.UnmarshalJSON("f.jsonl", 1, []byte(deep), &got))
	assert.EqualError(t, strictyaml.UnmarshalJSON("f.jsonl", 1, []byte("["+deep+"]"), &got),
		"f.jsonl:1: "+strings.Repeat("[0]", 64)+": nested deeper than 64 levels; flatten it")
	assert.Error(t, strictyaml.Unmarshal("f.yaml", []byte(strings.Repeat("[", 100_000)), &got))
	assert.Error(t, strictyaml.Unmarshal("f.yaml", []byte(strings.Repeat("- ", 100_000)), &got))

	long := []byte(strings.Repeat("#", 16<<20+1))
	assert.EqualError(t, strictyaml.Unmarshal("f.yaml", long, &got), "f.yaml: longer than 16777216 bytes; split the file")
	assert.EqualError(t, strictyaml.Unmarshal("f.json", long, &got), "f.json: longer than 16777216 bytes; split the file")
	assert.EqualError(t, strictyaml.UnmarshalJSON("f.jsonl", 3, long, &got), "f.jsonl:3: longer than 16777216 bytes; split the file")
}

func TestDocuments(t *testing.T) {
	documents, err := strictyaml.Documents("s.yaml", []byte("# first\nname: a\n---\n\n# second\nname: b\n...\n---\nnam: c\n"))
	require.NoError(t, err)
	var names []string
	var lines []int
	for _, d := range documents[:2] {
		var c config
		require.NoError(t, d.Decode(&c))
		names = append(names, c.Name)
		lines = append(lines, d.Line)
	}
	assert.Equal(t, []string{"a", "b"}, names)
	assert.Equal(t, []int{2, 6}, lines)
	require.Len(t, documents, 3)
	assert.EqualError(t, documents[2].Decode(new(config)), `s.yaml:9: nam: unknown key; did you mean "name"?`)

	_, err = strictyaml.Documents("s.yaml", []byte("name: a\n---\nname: b\nname: c\n"))
	assert.EqualError(t, err, "s.yaml:4: name: repeated key, already on line 3; keep one")
}

func TestJSON(t *testing.T) {
	t.Run("a file", func(t *testing.T) {
		documents, err := strictyaml.Documents("f.json", []byte("\n {\n\t\"name\": \"\\ud834\\udd1e\"\n}\n"))
		require.NoError(t, err)
		require.Len(t, documents, 1)
		assert.Equal(t, 2, documents[0].Line)
		var got config
		require.NoError(t, documents[0].Decode(&got))
		assert.Equal(t, "𝄞", got.Name)
	})
	tests := []struct{ text, want string }{
		{"{\n \"profiles\": {\n  \"w\": {\"redable\": 1}}}", `f.jsonl:9: profiles.w.redable: unknown key; did you mean "readable"?`},
		{`{"tasks":[{"id":"a"},{"id":2}]}`, "f.jsonl:7: tasks[1].id: wants a string, not a number; put it in quotes"},
		{`{"profiles":{"0":{"tools":1}}}`, "f.jsonl:7: profiles.0.tools: wants an array, not a number; write a list in brackets, like [a, b]"},
		{`{"name":"a","name":"b"}`, "f.jsonl:7: name: repeated name; keep one"},
		{`{"name":"a"} x`, "f.jsonl:7: more after the value; put one value here"},
		{`{name: a}`, "f.jsonl:7: not JSON; look for a missing quote, comma or bracket"},
		{`{"name":"a"`, "f.jsonl:7: the text ends early; look for a missing quote or bracket"},
		{``, "f.jsonl:7: no value; write one"},
		{`{"schema":9007199254740993}`, "f.jsonl:7: schema: integer that a double cannot hold; put it in quotes if it is a name, or write one below 2^53"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			assert.EqualError(t, strictyaml.UnmarshalJSON("f.jsonl", 7, []byte(tt.text), new(config)), tt.want)
		})
	}
}

// FuzzUnmarshal: whatever a file holds, it is refused in one line with its place and what to do, or means what another
// reader of YAML reads in it, and means that again when it is written anew.
func FuzzUnmarshal(f *testing.F) {
	for _, text := range []string{
		"a: 1\n", "a: {b: [1, 2.5, null, yes, 2026-07-01]}\n", "- 'x'\n- \"\\u00e9\"\n- |\n  y\n", "a: &x 1\nb: *x\n",
		"!!str 1", "<<: a", "0x1f", ".inf", "1e400", "---\na\n---\nb\n", "? [a]\n: b\n", "a: 1\na: 2\n", "%YAML 1.2\n---\na\n",
		`{"a":"\ud834\udd1e"}`, "a: >-\n  b\n\n  c\n# d\n", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "a: 010\nb: 1_000\nc: 0o17\nd: +1\ne: .5\nf: 1e3\n",
		"\"\\e[31m\\u202e\": 1\n\"\\e[31m\\u202e\": 2\n", "a: \"\\x1b\\n\\0\"\n", "a: True\nb: no\nc: ~\nd: Null\n", "\xef\xbb\xbfa: 1\n", "a: 9007199254740993\n", "'': ''\n",
		"- - - - 1\n", "a:\n  b\n  : c\n", "a: 12:30:45\n", "{a, b: , c: [,]}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, file := range []string{"f.yaml", "f.json"} {
			var raw ijson.Raw
			err := strictyaml.Unmarshal(file, text, &raw)
			for _, err := range []error{err, strictyaml.Unmarshal(file, text, new(config))} {
				if err == nil {
					continue
				}
				var e *strictyaml.Error
				require.True(t, errors.As(err, &e), "%T", err)
				assert.Equal(t, file, e.File)
				assert.NotEmpty(t, e.Problem)
				assert.True(t, 0 <= e.Line && e.Line <= lines(text)+1, "line %d", e.Line) // the parser sees the end of the file as a line
			}
			if err != nil {
				continue
			}
			form, err := ijson.Canonical(raw, ijson.Limits{Bytes: 32 << 20, Depth: ijson.DefaultLimits.Depth})
			require.NoError(t, err)
			var value any
			require.NoError(t, strictyaml.Unmarshal(file, text, &value))
			if file == "f.yaml" {
				var theirs any
				require.NoError(t, yaml.Unmarshal(text, &theirs))
				assert.True(t, alike(theirs, value), "%#v and %#v", theirs, value)
			}
			anew, err := yaml.Marshal(value)
			require.NoError(t, err)
			var again ijson.Raw
			require.NoError(t, strictyaml.Unmarshal("again.yaml", anew, &again), "%s", anew)
			again, err = ijson.Canonical(again, ijson.Limits{Bytes: 32 << 20, Depth: ijson.DefaultLimits.Depth})
			require.NoError(t, err)
			assert.Equal(t, string(form), string(again))
		}
	})
}

// lines counts lines as YAML breaks them.
func lines(text []byte) int {
	n := 1
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		n += bytes.Count(text, []byte(end))
	}
	return n
}

// alike says whether two readers of YAML read one value: ours reads JSON's types alone, so a time stays a text.
func alike(theirs, ours any) bool {
	switch v := theirs.(type) {
	case []any:
		o, ok := ours.([]any)
		return ok && slices.EqualFunc(v, o, alike)
	case map[string]any:
		o, ok := ours.(map[string]any)
		return ok && maps.EqualFunc(v, o, alike)
	case int:
		return float64(v) == ours
	case int64:
		return float64(v) == ours
	case uint64:
		return float64(v) == ours
	case time.Time:
		_, ok := ours.(string)
		return ok
	}
	return theirs == ours
}
