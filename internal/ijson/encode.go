package ijson

import "github.com/go-json-experiment/json"

// Encode writes a Go value as JSON for people and programs to read: struct members in their order, map members
// sorted, nothing escaped for HTML. What is signed, compared or recorded is written by Marshal instead.
func Encode(v any) (Raw, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, marshalError(err)
	}
	return b, nil
}
