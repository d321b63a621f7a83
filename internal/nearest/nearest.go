// Package nearest finds the right name beside a mistyped one, so that an error can ask "did you mean …?".
package nearest

import (
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// Name gives the known name that a mistyped one most likely stands for. Case does not count. It is false if none
// is within a third of the name's length, or two letters if that is more. Of equally near ones it takes the first in
// the order of the alphabet, so that the order of known does not matter.
func Name(name string, known []string) (string, bool) {
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
