package ijson

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Encode writes a Go value as JSON for people and programs to read: struct members in their order, map members
// sorted, nothing escaped for HTML. What is signed, compared or recorded is written by Marshal instead.
func Encode(v any) (Raw, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, marshalError(err)
	}
	return b, nil
}

// Indent lays a JSON value out over several lines, its members in their order.
func Indent(value Raw) (Raw, error) {
	out := slices.Clone(value)
	if err := out.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, syntaxError(err)
	}
	return out, nil
}

// AppendString appends a Go string as a JSON string. It refuses what is not UTF-8.
func AppendString(dst []byte, s string) ([]byte, error) {
	dst, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		return dst, syntaxError(err)
	}
	return dst, nil
}
