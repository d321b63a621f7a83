package ijson

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one name and value of an object.
type Member struct {
	Name  string
	Value Raw
}

// Members gives the members of a canonical object in order, without those inside them. The values are parts of
// object, not copies. It is false if object is not a JSON object.
func Members(object Raw) ([]Member, bool) {
	w := walkers.Get().(*walker)
	defer w.release()
	w.reset(object)
	if !w.enter(jsontext.KindBeginObject) {
		return nil, false
	}
	members := []Member{}
	for w.PeekKind() != jsontext.KindEndObject {
		name, ok := w.name()
		if !ok {
			return nil, false
		}
		value, err := w.ReadValue()
		if err != nil {
			return nil, false
		}
		members = append(members, Member{Name: name, Value: clip(value)})
	}
	return members, true
}

// Lookup gives the value that a JSON Pointer (RFC 6901) refers to, as a part of value, not a copy. It is false if
// there is none: a missing member, an index past the end or written with a leading zero, a pointer that is none.
func Lookup(value Raw, pointer string) (Raw, bool) {
	if !jsontext.Pointer(pointer).IsValid() {
		return nil, false
	}
	w := walkers.Get().(*walker)
	defer w.release()
	w.reset(value)
	for token := range jsontext.Pointer(pointer).Tokens() {
		if !w.descend(token) {
			return nil, false
		}
	}
	found, err := w.ReadValue()
	if err != nil {
		return nil, false
	}
	return clip(found), true
}

var (
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")
)

// EscapeToken gives a member's name the form that it has in a JSON Pointer.
func EscapeToken(name string) string { return escapeToken.Replace(name) }

// Tokens gives the names in a JSON Pointer; none for that of the whole.
func Tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range tokens {
		tokens[i] = unescapeToken.Replace(t)
	}
	return tokens
}

// String gives the Go string of a JSON string, and false for any other value.
func String(value Raw) (string, bool) {
	if value.Kind() != jsontext.KindString {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "", false
	}
	return string(b), true
}

// descend moves to just before the member or element that token names.
func (w *walker) descend(token string) bool {
	switch w.PeekKind() {
	case jsontext.KindBeginObject:
		w.enter(jsontext.KindBeginObject)
		for w.PeekKind() != jsontext.KindEndObject {
			name, ok := w.name()
			if !ok {
				return false
			}
			if name == token {
				return true
			}
			if w.SkipValue() != nil {
				return false
			}
		}
	case jsontext.KindBeginArray:
		index, err := strconv.ParseUint(token, 10, 63)
		if err != nil || strconv.FormatUint(index, 10) != token {
			return false
		}
		w.enter(jsontext.KindBeginArray)
		for ; index > 0; index-- {
			if w.SkipValue() != nil {
				return false
			}
		}
		return w.PeekKind() != jsontext.KindEndArray
	}
	return false
}

func (w *walker) enter(kind jsontext.Kind) bool {
	token, err := w.ReadToken()
	return err == nil && token.Kind() == kind
}

func (w *walker) name() (string, bool) {
	token, err := w.ReadToken()
	if err != nil {
		return "", false
	}
	return token.String(), true
}

// clip keeps an append to a part from writing over what follows it.
func clip(part Raw) Raw { return part[:len(part):len(part)] }
