package ijson

import "github.com/go-json-experiment/json/jsontext"

// Remove gives a canonical value without the member of an object that a JSON Pointer (RFC 6901) refers to, canonical
// as well and in a slice of its own. It is false, and gives the value itself, if there is no such member; an element
// of an array is none.
func Remove(value Raw, pointer string) (Raw, bool) {
	if !jsontext.Pointer(pointer).IsValid() || pointer == "" {
		return value, false
	}
	w := walkers.Get().(*walker)
	defer w.release()
	w.reset(value)
	for token := range jsontext.Pointer(pointer).Parent().Tokens() {
		if !w.descend(token) {
			return value, false
		}
	}
	start, end, ok := w.member(jsontext.Pointer(pointer).LastToken())
	if !ok {
		return value, false
	}
	// One comma goes with it: the one before it or, of the first member, the one after it.
	if value[start] != ',' && value[end] == ',' {
		end++
	}
	out := make(Raw, 0, len(value)-(end-start))
	return append(append(out, value[:start]...), value[end:]...), true
}

// member finds a member of the object that comes next: from the end of what is before it to its own.
func (w *walker) member(name string) (start, end int, ok bool) {
	if !w.enter(jsontext.KindBeginObject) {
		return 0, 0, false
	}
	for w.PeekKind() != jsontext.KindEndObject {
		start = int(w.InputOffset())
		found, ok := w.name()
		if !ok || w.SkipValue() != nil {
			return 0, 0, false
		}
		if found == name {
			// Only what is whole has something after it.
			return start, int(w.InputOffset()), w.PeekKind() != jsontext.KindInvalid
		}
	}
	return 0, 0, false
}
