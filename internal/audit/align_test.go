package audit

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// Whatever was done to the entries beside a tree, the places of it are found, and not the places of all that comes after.
func TestAlign(t *testing.T) {
	const n = 3000
	numbers := func() []int {
		var out []int
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	for name, c := range map[string]struct {
		entries func(l []int) []int
		want    []string
	}{
		"nothing":                      {func(l []int) []int { return l }, []string{}},
		"one changed":                  {func(l []int) []int { l[5] = -1; return l }, []string{"5 changed"}},
		"the last changed":             {func(l []int) []int { l[n-1] = -1; return l }, []string{"2999 changed"}},
		"two changed":                  {func(l []int) []int { l[5], l[6] = -1, -2; return l }, []string{"5 changed", "6 changed"}},
		"two changed far apart":        {func(l []int) []int { l[5], l[2500] = -1, -2; return l }, []string{"5 changed", "2500 changed"}},
		"one dropped":                  {func(l []int) []int { return slices.Delete(l, 5, 6) }, []string{"5 dropped"}},
		"some dropped":                 {func(l []int) []int { return slices.Delete(l, 5, 105) }, []string{"5 dropped"}},
		"some dropped twice":           {func(l []int) []int { return slices.Delete(slices.Delete(l, 2000, 2001), 5, 6) }, []string{"5 dropped", "2000 dropped"}},
		"the first three dropped":      {func(l []int) []int { return l[3:] }, []string{"0 dropped"}},
		"the last three cut":           {func(l []int) []int { return l[:n-3] }, []string{"2997 cut"}},
		"all cut":                      {func(l []int) []int { return nil }, []string{"0 cut"}},
		"one inserted":                 {func(l []int) []int { return slices.Insert(l, 5, -1) }, []string{"5 inserted"}},
		"some at the end":              {func(l []int) []int { return append(l, -1, -2) }, []string{"3000 inserted", "3001 inserted"}},
		"one in place of two":          {func(l []int) []int { return slices.Replace(l, 5, 7, -1) }, []string{"5 changed", "6 dropped"}},
		"neighbours swapped":           {func(l []int) []int { l[5], l[6] = l[6], l[5]; return l }, []string{"5 swapped"}},
		"two swapped":                  {func(l []int) []int { l[5], l[500] = l[500], l[5]; return l }, []string{"5 swapped"}},
		"two swapped far apart":        {func(l []int) []int { l[5], l[2500] = l[2500], l[5]; return l }, []string{"5 swapped"}},
		"one moved on":                 {func(l []int) []int { return slices.Insert(slices.Delete(l, 5, 6), 50, 5) }, []string{"5 swapped"}},
		"one moved to the end":         {func(l []int) []int { return append(slices.Delete(l, 5, 6), 5) }, []string{"5 swapped"}},
		"dropped and inserted":         {func(l []int) []int { return slices.Insert(slices.Delete(l, 5, 6), 50, -1) }, []string{"5 dropped", "50 inserted"}},
		"dropped, and the end changed": {func(l []int) []int { l[n-1] = -1; return slices.Delete(l, 5, 6) }, []string{"5 dropped", "2998 changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			have, want := c.entries(numbers()), numbers()
			var l aligner
			for i := range max(len(have), len(want)) {
				if i < len(have) && i < len(want) && l.same(number(have[i]), number(want[i])) {
					continue
				}
				if i < len(have) {
					l.have = append(l.have, leafAt{leaf: int64(i), hash: number(have[i])})
				}
				if i < len(want) {
					l.want = append(l.want, leafAt{leaf: int64(i), hash: number(want[i])})
				}
				l.meet(false)
			}
			var f findings
			l.explain(&f, int64(len(have)))
			assert.Equal(t, c.want, found(Report{Findings: f.sorted()}))
		})
	}
}

func number(n int) merkle.Hash { return merkle.Leaf(fmt.Append(nil, n)) }
