package tools

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestCheck(t *testing.T) {
	type violations = []dispatch.Violation
	one := func(path, message string) violations { return violations{{Path: path, Message: message}} }
	path := func(s string) string { return `{"path":"` + s + `"}` }
	badPath := one("/path", `must match ^/(?:[a-z0-9_-]+/)*[a-z0-9_-]+\.txt$`)
	draft := func(id, purpose, body, key string) string {
		return `{"draft_id":"` + id + `","purpose":"` + purpose + `","body":"` + body + `","idempotency_key":"` + key + `"}`
	}
	body := func(s string) string { return draft("labels-note", "inventory-summary", s, "draft-1") }
	longBody := one("/body", "must have at most 400 characters")
	badID := one("/draft_id", "must match ^[a-z][a-z0-9-]{0,31}$")
	badKey := one("/idempotency_key", "must match ^[A-Za-z0-9-]{1,64}$")
	badOp := one("/op", `must be "add", "subtract" or "multiply"`)

	tests := []struct {
		name, tool, arguments string
		want                  violations
	}{
		{"path", ReadDocument, path("/warehouse/labels.txt"), nil},
		{"path at the top", ReadDocument, path("/labels.txt"), nil},
		{"path of every kind of character", ReadDocument, path("/a-b/c_d/9-_.txt"), nil},
		{"path of nothing that exists", ReadDocument, path("/no/such.txt"), nil},
		{"path with traversal", ReadDocument, path("/warehouse/../restricted/planning.txt"), badPath},
		{"path with a dot", ReadDocument, path("/warehouse/./labels.txt"), badPath},
		{"path with a backslash", ReadDocument, path(`/warehouse\\labels.txt`), badPath},
		{"path with two separators", ReadDocument, path("/warehouse//labels.txt"), badPath},
		{"path that starts with two separators", ReadDocument, path("//warehouse/labels.txt"), badPath},
		{"path that is percent-encoded", ReadDocument, path("/warehouse/%2e%2e/planning.txt"), badPath},
		{"path with an encoded separator", ReadDocument, path("/warehouse%2flabels.txt"), badPath},
		{"path with a newline after it", ReadDocument, path(`/warehouse/labels.txt\n`), badPath},
		{"path with a newline before it", ReadDocument, path(`\n/warehouse/labels.txt`), badPath},
		{"path of two lines", ReadDocument, path(`/a.txt\n/b.txt`), badPath},
		{"path with a null character", ReadDocument, path(`/warehouse/labels.txt\u0000`), badPath},
		{"path in upper case", ReadDocument, path("/Warehouse/labels.txt"), badPath},
		{"path with an upper-case ending", ReadDocument, path("/warehouse/labels.TXT"), badPath},
		{"path with a look-alike letter", ReadDocument, path("/warehouse/l\u0430bels.txt"), badPath},
		{"path with a full-width separator", ReadDocument, path("/warehouse\uff0flabels.txt"), badPath},
		{"path that is relative", ReadDocument, path("warehouse/labels.txt"), badPath},
		{"path without an ending", ReadDocument, path("/warehouse/labels"), badPath},
		{"path of another kind", ReadDocument, path("/warehouse/labels.csv"), badPath},
		{"path of an ending alone", ReadDocument, path("/.txt"), badPath},
		{"path with a space", ReadDocument, path("/warehouse/labels.txt "), badPath},
		{"path that is empty", ReadDocument, path(""), badPath},
		{"path that is a URL", ReadDocument, path("file:///warehouse/labels.txt"), badPath},
		{"path that is a number", ReadDocument, `{"path":7}`, one("/path", "must be a string")},
		{"path that is null", ReadDocument, `{"path":null}`, one("/path", "must be a string")},
		{"path that is a list", ReadDocument, `{"path":["/warehouse/labels.txt"]}`, one("/path", "must be a string")},
		{"path that is an object", ReadDocument, `{"path":{"$ref":"/warehouse/labels.txt"}}`, one("/path", "must be a string")},
		{"no path", ReadDocument, `{}`, one("/path", "is required")},
		{"path with something else", ReadDocument, `{"path":"/a.txt","encoding":"utf-8"}`, one("/encoding", "is not a property of this tool")},
		{"path under another case", ReadDocument, `{"Path":"/a.txt"}`, violations{
			{Path: "/Path", Message: "is not a property of this tool"}, {Path: "/path", Message: "is required"}}},
		{"no object", ReadDocument, `["/warehouse/labels.txt"]`, one("", "must be an object")},

		{"add", Calculate, `{"op":"add","a":1,"b":2}`, nil},
		{"the largest and the smallest", Calculate, `{"op":"subtract","a":1000,"b":-1000}`, nil},
		{"an integer written as a fraction", Calculate, `{"op":"multiply","a":12.0,"b":0}`, nil},
		{"an integer with an exponent", Calculate, `{"op":"multiply","a":1e3,"b":-0}`, nil},
		{"divide", Calculate, `{"op":"divide","a":7,"b":0}`, badOp},
		{"op in upper case", Calculate, `{"op":"Add","a":7,"b":0}`, badOp},
		{"op with a newline after it", Calculate, `{"op":"add\n","a":7,"b":0}`, badOp},
		{"op that is a list", Calculate, `{"op":["add"],"a":1,"b":2}`, one("/op", "must be a string")},
		{"op that is an object", Calculate, `{"op":{"add":1},"a":1,"b":2}`, one("/op", "must be a string")},
		{"op that is null", Calculate, `{"op":null,"a":1,"b":2}`, one("/op", "must be a string")},
		{"true as a number", Calculate, `{"op":"multiply","a":true,"b":12}`, one("/a", "must be an integer")},
		{"false as a number", Calculate, `{"op":"multiply","a":7,"b":false}`, one("/b", "must be an integer")},
		{"a number as text", Calculate, `{"op":"multiply","a":"7","b":12}`, one("/a", "must be an integer")},
		{"an expression", Calculate, `{"op":"multiply","a":"7*12","b":12}`, one("/a", "must be an integer")},
		{"null as a number", Calculate, `{"op":"multiply","a":null,"b":12}`, one("/a", "must be an integer")},
		{"a fraction", Calculate, `{"op":"multiply","a":7.5,"b":12}`, one("/a", "must be an integer")},
		{"a small fraction", Calculate, `{"op":"multiply","a":7,"b":1e-7}`, one("/b", "must be an integer")},
		{"a number too large", Calculate, `{"op":"add","a":1001,"b":0}`, one("/a", "must be at most 1000")},
		{"a number too small", Calculate, `{"op":"add","a":0,"b":-1001}`, one("/b", "must be at least -1000")},
		{"a number far too large", Calculate, `{"op":"add","a":9007199254740991,"b":0}`, one("/a", "must be at most 1000")},
		{"no b", Calculate, `{"op":"add","a":1}`, one("/b", "is required")},
		{"nothing", Calculate, `{}`, violations{
			{Path: "/a", Message: "is required"}, {Path: "/b", Message: "is required"}, {Path: "/op", Message: "is required"}}},
		{"a third number", Calculate, `{"op":"add","a":1,"b":2,"c":3}`, one("/c", "is not a property of this tool")},
		{"everything wrong", Calculate, `{"op":"power","a":true,"c":3}`, violations{
			{Path: "/a", Message: "must be an integer"}, {Path: "/b", Message: "is required"},
			{Path: "/c", Message: "is not a property of this tool"}, badOp[0]}},

		{"draft", RecordDraft, body("There are 84 labels."), nil},
		{"draft id of one character", RecordDraft, draft("a", "inventory-summary", "x", "1"), nil},
		{"draft id and key as long as can be", RecordDraft,
			draft("a"+strings.Repeat("9", 31), "inventory-summary", "x", strings.Repeat("A", 64)), nil},
		{"draft id too long", RecordDraft, draft("a"+strings.Repeat("9", 32), "inventory-summary", "x", "1"), badID},
		{"draft id that starts with a digit", RecordDraft, draft("1a", "inventory-summary", "x", "1"), badID},
		{"draft id in upper case", RecordDraft, draft("Labels", "inventory-summary", "x", "1"), badID},
		{"draft id with a newline after it", RecordDraft, draft(`a\n`, "inventory-summary", "x", "1"), badID},
		{"draft id that is empty", RecordDraft, draft("", "inventory-summary", "x", "1"), badID},
		{"another purpose", RecordDraft, draft("a", "payment", "x", "1"), one("/purpose", `must be "inventory-summary"`)},
		{"purpose with a newline after it", RecordDraft, draft("a", `inventory-summary\n`, "x", "1"), one("/purpose", `must be "inventory-summary"`)},
		{"key too long", RecordDraft, draft("a", "inventory-summary", "x", strings.Repeat("A", 65)), badKey},
		{"key that is empty", RecordDraft, draft("a", "inventory-summary", "x", ""), badKey},
		{"key with an underscore", RecordDraft, draft("a", "inventory-summary", "x", "draft_1"), badKey},
		{"key with a newline after it", RecordDraft, draft("a", "inventory-summary", "x", `draft-1\n`), badKey},
		{"body of one character", RecordDraft, body("x"), nil},
		{"body of 400 letters", RecordDraft, body(strings.Repeat("x", 400)), nil},
		{"body of 401 letters", RecordDraft, body(strings.Repeat("x", 401)), longBody},
		{"body of 400 emoji", RecordDraft, body(strings.Repeat("\U0001F4E6", 400)), nil},
		{"body of 400 escaped emoji", RecordDraft, body(strings.Repeat(`\ud83d\udce6`, 400)), nil},
		{"body of 401 emoji", RecordDraft, body(strings.Repeat("\U0001F4E6", 401)), longBody},
		{"body of 200 letters with combining marks", RecordDraft, body(strings.Repeat("e\u0301", 200)), nil},
		{"body of 201 letters with combining marks", RecordDraft, body(strings.Repeat("e\u0301", 201)), longBody},
		{"body of 400 composed letters", RecordDraft, body(strings.Repeat("\u00e9", 400)), nil},
		{"body of newlines", RecordDraft, body(`\n\n`), nil},
		{"body that is empty", RecordDraft, body(""), one("/body", "must have at least 1 character")},
		{"body that is a number", RecordDraft, `{"draft_id":"a","purpose":"inventory-summary","body":84,"idempotency_key":"1"}`,
			one("/body", "must be a string")},
		{"no key", RecordDraft, `{"draft_id":"a","purpose":"inventory-summary","body":"x"}`, one("/idempotency_key", "is required")},
		{"a forged approval", RecordDraft, `{"draft_id":"a","purpose":"inventory-summary","body":"x","idempotency_key":"1","approved":true}`,
			one("/approved", "is not a property of this tool")},
		{"a name that needs escaping", RecordDraft, `{"draft_id":"a","purpose":"inventory-summary","body":"x","idempotency_key":"1","a/b~c":0}`,
			one("/a~1b~0c", "is not a property of this tool")},
	}
	tools := lab(t)
	for _, tt := range tests {
		t.Run(tt.tool+"/"+tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, tools[tt.tool].Check(arguments(t, tt.arguments)))
		})
	}
}

// What a tool gives is compared with its output schema as its arguments are with theirs; without one, anything goes.
func TestCheckOutput(t *testing.T) {
	tool := promising(t, dispatch.Definition{Output: ijson.Raw(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)})["promising"]
	assert.Nil(t, tool.CheckOutput(arguments(t, `{"n":84}`)))
	assert.Equal(t, []dispatch.Violation{{Path: "/n", Message: "must be an integer"}}, tool.CheckOutput(arguments(t, `{"n":"SECRET"}`)))
	assert.Equal(t, []dispatch.Violation{{Path: "", Message: "must be an object"}}, tool.CheckOutput(arguments(t, `"SECRET"`)))
	assert.Nil(t, promising(t, dispatch.Definition{})["promising"].CheckOutput(arguments(t, `"anything"`)))

	_, err := New(map[string]dispatch.Definition{"odd": {Schema: ijson.Raw(`{}`), Output: ijson.Raw(`{"$ref":"https://example.org/schema.json"}`)}}, nil, nil)
	assert.ErrorContains(t, err, "tool odd: output: ")
}

// Before canonicalisation 12.0 is another text than 12; the schema itself must not care.
func TestCheckOfIntegersInAnyForm(t *testing.T) {
	for _, text := range []string{`{"op":"add","a":12.0,"b":-0.0}`, `{"op":"add","a":1e3,"b":120e-1}`} {
		assert.Nil(t, lab(t)[Calculate].Check([]byte(text)), text)
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"a file", `{"properties":{"a":{"$ref":"file:///etc/hostname"}}}`, "nothing outside itself"},
		{"a URL", `{"$ref":"https://example.org/schema.json"}`, "nothing outside itself"},
		{"a neighbour", `{"$ref":"other.json"}`, "nothing outside itself"},
		{"a neighbour by an absolute path", `{"$ref":"/etc/hostname"}`, "nothing outside itself"},
		{"a dynamic reference", `{"$dynamicRef":"https://example.org/schema.json#node"}`, "nothing outside itself"},
		{"another file as its own name", `{"$id":"file:///etc/","$ref":"hostname"}`, "nothing outside itself"},
		{"an unknown dialect", `{"$schema":"https://example.org/dialect"}`, "nothing outside itself"},
		{"an older draft", `{"$schema":"http://json-schema.org/draft-07/schema#"}`, "only draft 2020-12"},
		{"a lookahead", `{"pattern":"^(?=a)"}`, "(?="},
		{"a schema that is none", `{"type":"integral"}`, "not valid against metaschema: at '/type': value must be one of 'array', "},
		{"two faults of a schema", `{"type":7,"minLength":-1}`, "; at '/type': got number, want array"},
		{"no JSON", `{`, "EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := compile("test", []byte(tt.schema))
			assert.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "\n")
			assert.Nil(t, s)
		})
	}
}
