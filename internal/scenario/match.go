package scenario

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// unlimited is for values of our own and of a scenario's author.
var unlimited = ijson.Limits{Bytes: 64 << 20, Depth: 256}

// match compares a value with what is expected of it: objects match as subsets, lists and scalars exactly.
func match(want, got ijson.Raw, pointer string) []string {
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
			if i < 0 {
				out = append(out, fmt.Sprintf("%s/%s: want %s, and there is none in %s", pointer, m.Name, m.Value, got))
				continue
			}
			out = append(out, match(m.Value, have[i].Value, pointer+"/"+m.Name)...)
		}
		return out
	}
	if !slices.Equal(want, got) {
		return []string{fmt.Sprintf("%s: want %s, got %s", cmp.Or(pointer, "the result"), want, got)}
	}
	return nil
}
