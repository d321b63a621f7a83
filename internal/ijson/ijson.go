// Package ijson reads I-JSON (RFC 7493) strictly and writes its canonical form (RFC 8785).
package ijson

import "github.com/go-json-experiment/json/jsontext"

// Raw is one JSON value as bytes.
type Raw = jsontext.Value
