package strictyaml

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// Nearest gives the known name that a mistyped one most likely stands for. Case does not count. It is false if none
// is within a third of the name's length, or two letters if that is more. Of equally near ones it takes the first in
// the order of the alphabet, so that the order of known does not matter.
func Nearest(name string, known []string) (string, bool) {
	length := utf8.RuneCountInString(name)
	limit := max(2, length/3)
	best, distance := "", min(limit, length-1)+1 // something of the name must be left
	for _, candidate := range known {
		if abs(utf8.RuneCountInString(candidate)-length) > limit {
			continue
		}
		d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(candidate))
		if d < distance || d == distance && best != "" && candidate < best {
			best, distance = candidate, d
		}
	}
	return best, best != ""
}

func abs(n int) int { return max(n, -n) }

// adviceOnName says what a reader could have meant by a key.
func adviceOnName(name string, known []string) string {
	if near, ok := Nearest(name, known); ok {
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
