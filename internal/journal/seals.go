package journal

import (
	"fmt"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Sealed is a place in an entry at which a seal stands.
type Sealed struct {
	Kind dispatch.Kind `json:"kind"`
	N    int           `json:"n"`
	// Pointer is a JSON Pointer into the entry.
	Pointer string        `json:"pointer"`
	Seal    dispatch.Seal `json:"-"`
}

// Seals finds the seals in an entry.
func Seals(e dispatch.Entry) (found []Sealed) {
	var look func(value ijson.Raw, pointer string)
	look = func(value ijson.Raw, pointer string) {
		if seal, ok := dispatch.ReadSeal(value); ok {
			found = append(found, Sealed{Kind: e.Kind, N: e.N, Pointer: pointer, Seal: seal})
			return
		}
		members, _ := ijson.Members(value)
		for _, m := range members {
			look(m.Value, pointer+"/"+ijson.EscapeToken(m.Name))
		}
		var elements []ijson.Raw
		if value.Kind() == '[' && ijson.Unmarshal(value, &elements) == nil {
			for i, v := range elements {
				look(v, fmt.Sprintf("%s/%d", pointer, i))
			}
		}
	}
	look(e.Body, "")
	return found
}
