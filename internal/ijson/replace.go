package ijson

import "github.com/go-json-experiment/json/jsontext"

// Replace gives a canonical value with another in place of the one that a JSON Pointer (RFC 6901) refers to, in a slice
// of its own. With a canonical replacement it is canonical as well. It is false, and gives the value itself, if there is
// nothing at the pointer.
func Replace(value Raw, pointer string, with Raw) (Raw, bool) {
	if !jsontext.Pointer(pointer).IsValid() {
		return value, false
	}
	w := walkers.Get().(*walker)
	defer w.release()
	w.reset(value)
	for token := range jsontext.Pointer(pointer).Tokens() {
		if !w.descend(token) {
			return value, false
		}
	}
	old, err := w.ReadValue()
	if err != nil {
		return value, false
	}
	end := int(w.InputOffset())
	start := end - len(old)
	out := make(Raw, 0, len(value)-len(old)+len(with))
	return append(append(append(out, value[:start]...), with...), value[end:]...), true
}
