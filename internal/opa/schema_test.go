package opa

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func readSchema(t *testing.T) map[string]any {
	t.Helper()
	b, err := os.ReadFile("../../policy/schemas/input.json")
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(b, &schema))
	return schema
}

// What the schema says is what Go puts in: the same names at every depth, none more and none less.
func TestSchemaIsWhatGoPutsIn(t *testing.T) {
	schema := readSchema(t)
	properties := schema["properties"].(map[string]any)
	require.Contains(t, properties, "gate")
	delete(properties, "gate") // the gate's question; a decision has none
	compareSchema(t, "input", schema, reflect.TypeFor[dispatch.Input]())

	gate := readSchema(t)["properties"].(map[string]any)["gate"].(map[string]any)
	compareSchema(t, "input.gate", gate, reflect.TypeFor[Question]())
}

func compareSchema(t *testing.T, at string, schema map[string]any, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		assert.Contains(t, schema["type"], "null", "%s can be null in Go", at)
		typ = typ.Elem()
	}
	if typ.Kind() == reflect.Slice && typ != reflect.TypeFor[ijson.Raw]() {
		compareSchema(t, at+"[]", schema["items"].(map[string]any), typ.Elem())
		return
	}
	properties, _ := schema["properties"].(map[string]any)
	if typ.Kind() != reflect.Struct {
		assert.Empty(t, properties, at)
		return
	}
	var names, required []string
	for i := range typ.NumField() {
		name, rest, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
		if !strings.Contains(rest, "omitzero") {
			required = append(required, name)
		}
		field := typ.Field(i).Type
		if strings.Contains(rest, "omitzero") && field.Kind() == reflect.Pointer {
			field = field.Elem() // left out rather than null
		}
		if p, ok := properties[name].(map[string]any); assert.True(t, ok, "%s.%s is not in the schema", at, name) {
			compareSchema(t, at+"."+name, p, field)
		}
	}
	for name := range properties {
		assert.Contains(t, names, name, "%s.%s is in the schema, and Go never puts it in", at, name)
	}
	var said []string
	listed, _ := schema["required"].([]any)
	for _, r := range listed {
		said = append(said, r.(string))
	}
	assert.ElementsMatch(t, required, said, "%s: what is always there", at)
	assert.Equal(t, false, schema["additionalProperties"], "%s is closed", at)
}

// The policy reads no field that its input never has; and a misspelt one is noticed.
func TestPolicyReadsWhatTheSchemaHas(t *testing.T) {
	check := func(edit func(string) string) error {
		s := shippedSource(t)
		for i := range s.modules {
			s.modules[i].text = edit(s.modules[i].text)
		}
		modules, err := parse(s.modules)
		require.NoError(t, err)
		schemas := ast.NewSchemaSet()
		schemas.Put(ast.SchemaRootRef, any(readSchema(t)))
		c := newCompiler().WithSchemas(schemas)
		if c.Compile(modules); c.Failed() {
			return c.Errors
		}
		return nil
	}
	require.NoError(t, check(func(s string) string { return s }))
	for _, misspelt := range [][2]string{
		{"input.state.cancelled", "input.state.canceled"}, {"input.call.malformed", "input.calls.malformed"},
		{"input.tool.approval", "input.tool.aproval"}, {"input.state.approval.expires_at_step", "input.state.approval.expires_step"},
		{"input.gate.confirmed", "input.gate.confirm"}, {"input.state.unsettled", "input.state.unsetled"},
		{"input.state.write_started", "input.state.writes_started"}, {"input.state.operation.repeatable", "input.state.operation.repeatabel"},
	} {
		found := false
		err := check(func(s string) string {
			found = found || strings.Contains(s, misspelt[0])
			return strings.ReplaceAll(s, misspelt[0], misspelt[1])
		})
		assert.True(t, found, misspelt[0])
		assert.ErrorContains(t, err, "undefined ref: input.", misspelt[1])
	}
}
