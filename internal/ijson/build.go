package ijson

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Builder makes values of another kind out of JSON.
type Builder[T any] struct {
	// Literal makes something of null, true or false.
	Literal func(string) T
	// Number is given a number as it is written, which a double can hold.
	Number func(string) T
	// String is given a string or a name without its quotes and escapes.
	String func(string) T
	// Array is given the elements in their order, in a slice that it may not keep.
	Array func([]T) T
	// Object is given the members in their order, each as its name and then its value, in a slice that it may not keep.
	Object func([]T) T
}

// Build reads exactly one I-JSON value and makes another of it, from the leaves up, in one pass. It refuses what
// Unmarshal refuses, with an *Error.
func Build[T any](b []byte, make Builder[T]) (built T, err error) {
	w := walkers.Get().(*walker)
	defer w.release()
	w.reset(b)
	whole := string(b) // every string is a part of it
	var space [64]T
	stack, open := space[:0], []int(nil) // the values that are not yet part of another, and where the open ones begin
	for {
		kind, value, err := w.next(deepest)
		if err != nil {
			return built, err
		}
		switch kind {
		case jsontext.KindBeginObject, jsontext.KindBeginArray:
			open = append(open, len(stack))
			continue
		case jsontext.KindEndObject, jsontext.KindEndArray:
			first := open[len(open)-1]
			join := make.Array
			if kind == jsontext.KindEndObject {
				join = make.Object
			}
			stack, open = append(stack[:first], join(stack[first:])), open[:len(open)-1]
		default:
			end := int(w.InputOffset())
			text := whole[end-len(value) : end]
			switch {
			case kind == jsontext.KindNumber:
				stack = append(stack, make.Number(text))
			case kind != jsontext.KindString:
				stack = append(stack, make.Literal(text))
			case strings.IndexByte(text, '\\') < 0:
				stack = append(stack, make.String(text[1:len(text)-1]))
			default:
				s, _ := String(value)
				stack = append(stack, make.String(s))
			}
		}
		if len(open) == 0 {
			return stack[0], w.end(b)
		}
	}
}
