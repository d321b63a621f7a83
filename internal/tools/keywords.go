package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/nearest"
)

// Keywords of JSON Schema 2020-12 that narrow what is valid, by what stands in them.
var (
	ofSchema  = []string{"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	ofSchemas = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	ofNamed   = []string{"$defs", "dependentSchemas", "patternProperties", "properties"}
	narrowing = slices.Concat(ofSchema, ofSchemas, ofNamed, []string{"$dynamicRef", "$ref", "const", "dependentRequired", "enum", "exclusiveMaximum",
		"exclusiveMinimum", "maxContains", "maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength",
		"minProperties", "minimum", "multipleOf", "pattern", "required", "type", "uniqueItems"})
	others = []string{"$anchor", "$comment", "$dynamicAnchor", "$id", "$schema", "$vocabulary", "contentEncoding", "contentMediaType",
		"contentSchema", "default", "deprecated", "description", "examples", "format", "readOnly", "title", "writeOnly"}
)

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

// checkKeywords refuses what looks like a keyword that narrows and is none. The standard lets a schema have any word
// beside its own; a misspelt one would hold nothing back, and nobody would notice.
func checkKeywords(at string, schema ijson.Raw) (problems []DefinitionError) {
	members, _ := ijson.Members(schema)
	for _, m := range members {
		here := at + "/" + ijson.EscapeToken(m.Name)
		switch {
		case m.Name == "$schema":
			if dialect, _ := ijson.String(m.Value); dialect != draft2020 || strings.Count(at, "/") > 1 {
				problems = append(problems, DefinitionError{Field: here, Problem: "another dialect could know fewer keywords, and hold less back; leave $schema out, or write " + draft2020 + " at the top"})
			}
		case slices.Contains(ofSchema, m.Name):
			problems = append(problems, checkKeywords(here, m.Value)...)
		case slices.Contains(ofNamed, m.Name):
			named, _ := ijson.Members(m.Value)
			for _, n := range named {
				problems = append(problems, checkKeywords(here+"/"+ijson.EscapeToken(n.Name), n.Value)...)
			}
		case slices.Contains(ofSchemas, m.Name):
			for i := 0; ; i++ {
				inner, ok := ijson.Lookup(m.Value, fmt.Sprintf("/%d", i))
				if !ok {
					break
				}
				problems = append(problems, checkKeywords(fmt.Sprintf("%s/%d", here, i), inner)...)
			}
		case slices.Contains(narrowing, m.Name), slices.Contains(others, m.Name):
		default:
			if near, ok := nearest.Name(m.Name, narrowing); ok {
				problems = append(problems, DefinitionError{Field: here, Problem: fmt.Sprintf("%s is no keyword of JSON Schema, and would hold nothing back; did you mean %s?", m.Name, near)})
			}
		}
	}
	return problems
}
