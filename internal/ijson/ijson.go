// Package ijson reads I-JSON (RFC 7493) strictly and writes its canonical form (RFC 8785).
//
// Everything that govern signs, shows, stores or compares is a canonical form, so nothing may be lost on the way
// to it: where a canonicaliser alone would round an integer, saturate a large number or take the last of two equal
// names, this package refuses the text and says where. It takes noncharacters such as U+FFFF in strings, which
// RFC 7493 forbids, because they keep their identity in the canonical form.
package ijson

import "github.com/go-json-experiment/json/jsontext"

// Raw is one JSON value as bytes.
type Raw = jsontext.Value

// Limits bound what is read. The zero value refuses everything.
type Limits struct {
	// Bytes is the greatest length of the text, white space included.
	Bytes int
	// Depth is the greatest number of arrays and objects around a value; those at the top count 1.
	Depth int
}

// DefaultLimits are those of a proposal.
var DefaultLimits = Limits{Bytes: 1 << 20, Depth: 64}
