package opa

import (
	"fmt"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/policy-dispatch/govern"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// schemaFile describes the input; every policy is checked against it.
const schemaFile = "policy/schemas/input.json"

// schemaNode is the part of JSON Schema in which the input is described.
type schemaNode map[string]any

var inputSchema = sync.OnceValue(func() schemaNode {
	var root schemaNode
	content, err := govern.Files.ReadFile(schemaFile)
	if err == nil {
		err = ijson.Unmarshal(content, &root)
	}
	if err != nil {
		panic(fmt.Sprintf("the built-in %s: %v", schemaFile, err)) // a fault of the build
	}
	return root
})

// inputSchemas is the schema in the form in which a compiler takes it.
func inputSchemas() *ast.SchemaSet {
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, map[string]any(inputSchema()))
	return schemas
}

// at is what stands under a step of a reference; nil if the schema does not say.
func (n schemaNode) at(step ast.Value) schemaNode {
	if name, ok := step.(ast.String); ok {
		properties, _ := n["properties"].(map[string]any)
		if inner, ok := properties[string(name)].(map[string]any); ok {
			return inner
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if inner, ok := n[keyword].(map[string]any); ok {
			return inner
		}
	}
	return nil
}

// types are the JSON types that a value can have; nil if the schema does not say.
func (n schemaNode) types() []string {
	switch t := n["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var all []string
		for _, one := range t {
			all = append(all, fmt.Sprint(one))
		}
		return all
	}
	return nil
}

// eachWord calls f for the names of fields and the words that they can have as values, wherever the schema has any.
func (n schemaNode) eachWord(f func(string)) {
	properties, _ := n["properties"].(map[string]any)
	for name := range properties {
		f(name)
		n.at(ast.String(name)).eachWord(f)
	}
	if elements := n.at(ast.Number("0")); elements != nil {
		elements.eachWord(f)
	}
	values, _ := n["enum"].([]any)
	for _, value := range values {
		if word, ok := value.(string); ok {
			f(word)
		}
	}
}

// flags says that a value is an object of names, each true: whoever looks for a name among its values finds none.
func (n schemaNode) flags() bool {
	_, named := n["properties"]
	return !named && slices.Equal(n.at(ast.String("")).types(), []string{"boolean"})
}

// dataSchema describes what govern puts in of names that are true.
var dataSchema = func() schemaNode {
	names := map[string]any{"additionalProperties": map[string]any{"type": "boolean"}}
	sets := map[string]any{"additionalProperties": names}
	profile := map[string]any{"properties": map[string]any{"tools": names, "readable": names, "writable": names, "scopes": names}}
	return schemaNode{"properties": map[string]any{
		"readable": sets, "writable": sets, "profiles": map[string]any{"additionalProperties": profile},
	}}
}()
