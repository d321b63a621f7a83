package tools

import (
	"fmt"
	"slices"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// checkSensitive says what is wrong with the arguments that a definition calls sensitive.
func checkSensitive(def dispatch.Definition) (problems []DefinitionError) {
	for i, p := range def.Sensitive {
		overlaps := func(other string) bool { return within(p, other) || within(other, p) }
		why := ""
		switch {
		case !pointerForm.MatchString(p):
			why = fmt.Sprintf("%q is no JSON Pointer to an argument, such as /password", p)
		case def.Target != "" && overlaps(def.Target):
			why = "the target is what rules, records and people know the call by; it cannot be sensitive"
		case def.Key != "" && overlaps(def.Key):
			why = "the key is what operations are known by; it cannot be sensitive"
		case slices.ContainsFunc(def.Drop, overlaps):
			why = "it is dropped; what is dropped reaches nobody, and what is sensitive must reach the tool as it was signed"
		case slices.ContainsFunc(def.Sensitive[:i], overlaps):
			why = fmt.Sprintf("%s is named twice, or lies in another that is named; keep the outer one", p)
		default:
			why = caught(def.Schema, p)
		}
		if why != "" {
			problems = append(problems, DefinitionError{Field: fmt.Sprintf("/sensitive/%d", i), Problem: why})
		}
	}
	return problems
}

// checkSensitiveOutput says what is wrong with what a definition calls sensitive in what the tool gives.
func checkSensitiveOutput(def dispatch.Definition) (problems []DefinitionError) {
	for i, p := range def.SensitiveOutput {
		overlaps := func(other string) bool { return within(p, other) || within(other, p) }
		why := ""
		switch {
		case !pointerForm.MatchString(p):
			why = fmt.Sprintf("%q is no JSON Pointer into what the tool gives, such as /token", p)
		case def.Output == nil:
			why = "add output, the schema of what the tool gives: without one, what is sensitive could be given under any name"
		case slices.ContainsFunc(def.SensitiveOutput[:i], overlaps):
			why = fmt.Sprintf("%s is named twice, or lies in another that is named; keep the outer one", p)
		case typeOf(def.Output) != "object":
			why = "output must say that what the tool gives is of type object; anything else has no members"
		default:
			why = caught(def.Output, p)
		}
		if why != "" {
			problems = append(problems, DefinitionError{Field: fmt.Sprintf("/sensitive_output/%d", i), Problem: why})
		}
	}
	return problems
}

// caught says why a value that belongs at a pointer could pass the schema under a mistyped name, where nobody would know
// that it is sensitive, or nothing if it could not.
func caught(schema ijson.Raw, pointer string) string {
	_, why := descend(schema, pointer, func(object ijson.Raw, required bool) string {
		others, _ := ijson.Lookup(object, "/additionalProperties")
		_, patterns := ijson.Lookup(object, "/patternProperties")
		if required || string(others) == "false" && !patterns {
			return ""
		}
		return fmt.Sprintf("it could come under a mistyped name, which the schema would let pass and nobody would know as sensitive; "+
			"name what leads to %s in required, or say additionalProperties: false beside it, without patternProperties", pointer)
	})
	return why
}
