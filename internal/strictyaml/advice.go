package strictyaml

import (
	"fmt"
	"strings"

	"github.com/policy-dispatch/govern/internal/nearest"
)

// adviceOnName says what a reader could have meant by a key.
func adviceOnName(name string, known []string) string {
	if near, ok := nearest.Name(name, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "there are no keys here; remove it"
	}
	return "known keys are " + strings.Join(known, ", ")
}

// advice is what to do about a rule of ijson, by how the rule starts.
var advice = []struct{ rule, remedy string }{
	{"wants a string, not a number", "put it in quotes"},
	{"wants a string, not true", "put it in quotes"},
	{"wants a string, not false", "put it in quotes"},
	{"wants a string, not null", `write "" for an empty one`},
	{"wants a string", "write one value"},
	{"wants a whole number", "write digits alone, without quotes"},
	{"wants a number", "write a number, without quotes"},
	{"wants true or false", "write one of the two, without quotes"},
	{"wants an array", "write a list in brackets, like [a, b]"},
	{"wants an object", "write keys with their values, like {key: value}"},
	{"wants a time", "write it like 2026-01-31T09:00:00Z"},
	{"integer that a double cannot hold", "put it in quotes if it is a name, or write one below 2^53"},
	{"number too large", "write a smaller one"},
	{"number too close to zero", "write 0"},
	{"exponent out of range", "write the number without an exponent"},
	{"out of range", "write a smaller number"},
	{"nested deeper", "flatten it"},
	{"longer than", "split the file"},
	{"repeated name", "keep one"},
	{"lone surrogate", "write the character itself"},
	{"not UTF-8", "write the file in UTF-8"},
	{"more after the value", "put one value here"},
	{"no value", "write one"},
	{"not JSON", "look for a missing quote, comma or bracket"},
	{"the text ends early", "look for a missing quote or bracket"},
	{"no such escape", `write a backslash as \\`},
	{"a name must be a string", "put it in quotes"},
}

func adviceOnRule(rule string) string {
	for _, a := range advice {
		if strings.HasPrefix(rule, a.rule) {
			return a.remedy
		}
	}
	return ""
}
