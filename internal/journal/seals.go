package journal

import "github.com/policy-dispatch/govern/internal/dispatch"

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
	for pointer, seal := range dispatch.SealsIn(e.Body) {
		found = append(found, Sealed{Kind: e.Kind, N: e.N, Pointer: pointer, Seal: seal})
	}
	return found
}
