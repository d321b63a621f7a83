package ijson

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Canonical reads exactly one I-JSON value (RFC 7493) and gives its canonical form (RFC 8785) in a slice of its own.
//
// It refuses, with an *Error: a text longer or deeper than the limits, or whose canonical form would be longer (1e20 has
// 21 digits there); anything but white space around the value;
// what is not UTF-8; lone surrogates; names that are equal after unescaping, at any depth; an integer, by its exact
// decimal value, whose canonical form denotes another decimal; and numbers beyond the range of a double, also
// towards zero, or with an exponent of more than five digits. A fraction becomes the nearest double.
func Canonical(b []byte, lim Limits) (Raw, error) {
	if len(b) > lim.Bytes {
		return nil, &Error{Offset: int64(lim.Bytes), Rule: fmt.Sprintf("longer than %d bytes", lim.Bytes)}
	}
	if err := check(b, min(lim.Depth, deepest)); err != nil {
		return nil, err
	}
	canonical, err := canonicalize(make([]byte, 0, len(b)), b)
	if err == nil && len(canonical) > lim.Bytes {
		// Whatever accepts the text has to accept its canonical form too: that is what is stored, and proposed again.
		return nil, &Error{Offset: int64(len(b)), Rule: fmt.Sprintf("longer than %d bytes in its canonical form", lim.Bytes)}
	}
	return canonical, err
}

var rfc8785 = json.JoinOptions(
	jsontext.CanonicalizeRawInts(true),
	jsontext.CanonicalizeRawFloats(true),
	jsontext.ReorderRawObjects(true),
)

// canonicalize appends the canonical form of a checked text to dst, which may overlap it.
func canonicalize(dst, b []byte) (Raw, error) {
	out, err := jsontext.AppendFormat(dst, b, rfc8785)
	if err != nil {
		return nil, syntaxError(err)
	}
	return out, nil
}

// deepest bounds the recursion whatever the limits are.
const deepest = 5000

func tooDeep(depth int) string { return fmt.Sprintf("nested deeper than %d levels", depth) }

// check holds a text against every rule. It has to come before canonicalising, which rounds 2^53+1 and saturates
// 1e400.
func check(b []byte, depth int) error {
	w := walkers.Get().(*walker)
	defer w.release()
	w.reset(b)
	for {
		if _, _, err := w.next(depth); err != nil {
			return err
		}
		if w.StackDepth() == 0 {
			return w.end(b)
		}
	}
}

// end holds what follows the value against the rules.
func (w *walker) end(b []byte) error {
	end := w.InputOffset()
	if rest := bytes.TrimLeft(b[end:], " \t\r\n"); len(rest) > 0 {
		return &Error{Offset: int64(len(b) - len(rest)), Rule: "more after the value"}
	}
	return nil
}

// walker is a token decoder that reads in place and can be used again.
type walker struct {
	jsontext.Decoder
	src bytes.Buffer
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

func (w *walker) reset(b []byte) {
	w.src = *bytes.NewBuffer(b)
	w.Decoder.Reset(&w.src)
}

func (w *walker) release() {
	w.reset(nil) // do not keep the text alive
	walkers.Put(w)
}

// next reads and checks one bracket, name, literal, string or number. It gives the kind and, except of brackets, the text.
func (w *walker) next(depth int) (jsontext.Kind, Raw, error) {
	kind := w.PeekKind()
	switch kind {
	case jsontext.KindBeginObject, jsontext.KindBeginArray, jsontext.KindEndObject, jsontext.KindEndArray:
		if _, err := w.ReadToken(); err != nil {
			return kind, nil, syntaxError(err)
		}
		if w.StackDepth() > depth {
			return kind, nil, w.fault(1, tooDeep(depth))
		}
		return kind, nil, nil
	}
	value, err := w.ReadValue()
	if err != nil {
		return kind, nil, syntaxError(err)
	}
	if kind == jsontext.KindNumber {
		if rule := numberRule(value); rule != "" {
			return kind, nil, w.fault(len(value), rule)
		}
	}
	return kind, value, nil
}

// fault is about the last n bytes read.
func (w *walker) fault(n int, rule string) error {
	return &Error{Pointer: string(w.StackPointer()), Offset: w.InputOffset() - int64(n), Rule: rule}
}
