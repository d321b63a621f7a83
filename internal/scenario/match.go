package scenario

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// unlimited is for values of our own and of a scenario's author.
var unlimited = ijson.Limits{Bytes: 64 << 20, Depth: 256}

// match compares a value with what is expected of it: objects match as subsets, lists and scalars exactly. What it says
// holds nothing of the value but what may be shown of it, and where that is less, nothing of what was expected either.
func match(want, got, shown ijson.Raw, pointer string) []string {
	if want == nil {
		return nil
	}
	want, err := ijson.Canonical(want, unlimited)
	if err != nil {
		return []string{err.Error()}
	}
	members, isObject := ijson.Members(want)
	if have, ok := ijson.Members(got); isObject && ok {
		var out []string
		for _, m := range members {
			i := slices.IndexFunc(have, func(h ijson.Member) bool { return h.Name == m.Name })
			inner, visible := ijson.Lookup(shown, "/"+ijson.EscapeToken(m.Name))
			switch {
			case i >= 0:
				out = append(out, match(m.Value, have[i].Value, inner, pointer+"/"+m.Name)...)
			case !visible && !slices.Equal(got, shown):
				out = append(out, hidden(pointer))
			default:
				out = append(out, fmt.Sprintf("%s/%s: want %s, and there is none in %s", pointer, m.Name, m.Value, shown))
			}
		}
		return out
	}
	switch {
	case slices.Equal(want, got):
		return nil
	case !slices.Equal(got, shown):
		return []string{hidden(pointer)}
	default:
		return []string{fmt.Sprintf("%s: want %s, got %s", cmp.Or(pointer, "the result"), want, got)}
	}
}

func hidden(pointer string) string {
	return cmp.Or(pointer, "the result") + ": something else than is expected; there is something sensitive in it, and neither is shown"
}
