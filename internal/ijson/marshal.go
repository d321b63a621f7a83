package ijson

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Marshal gives the canonical form (RFC 8785) of a Go value, by its json tags. Equal values give equal bytes: a nil
// slice is [], a nil map {}, a time.Time is RFC 3339, and nothing is escaped for HTML.
//
// It refuses, with an *Error, Go values that JSON does not have and results that break a rule of Canonical; an
// int64 that is no double is one. It bounds neither length nor, short of thousands of levels, depth.
func Marshal(v any) (Raw, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, marshalError(err)
	}
	if !plain(b) {
		if err := check(b, deepest); err != nil {
			return nil, err
		}
	}
	return canonicalize(b[:0], b)
}

// plain says, without reading b as JSON once more, that check has nothing to refuse in it. What writes b has seen to
// everything but the depth and the numbers.
func plain(b []byte) bool {
	depth, digits := 0, 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c >= '0' && c <= '9':
			if digits++; digits > exactDigits {
				return false
			}
			continue
		case c == '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case c == '.', digits > 0 && (c == 'e' || c == 'E'):
			return false
		case c == '{', c == '[':
			if depth++; depth > deepest {
				return false
			}
		case c == '}', c == ']':
			depth--
		}
		digits = 0
	}
	return true
}

// Unmarshal reads exactly one I-JSON value into a Go value, by its json tags. Names match exactly, case included.
//
// It refuses what Canonical refuses, apart from its limits, and a value of the wrong type with an *Error; a member
// that a struct does not have with an *UnknownMemberError. A null gives the zero value: whether a member was null or
// there at all, only a map of Raw tells.
func Unmarshal(b []byte, v any) error {
	if err := check(b, deepest); err != nil {
		return err
	}
	if err := json.Unmarshal(b, v, json.RejectUnknownMembers(true)); err != nil {
		return unmarshalError(err)
	}
	return nil
}

func marshalError(err error) error {
	var syntax *jsontext.SyntacticError // of a Raw, or of a Go string that is not UTF-8
	var s *json.SemanticError
	if errors.As(err, &syntax) || !errors.As(err, &s) {
		return syntaxError(err)
	}
	return &Error{Pointer: string(s.JSONPointer), Offset: s.ByteOffset,
		Rule: fmt.Sprintf("a Go %v cannot be written as JSON", s.GoType), cause: s.Err}
}

func unmarshalError(err error) error {
	var s *json.SemanticError
	if !errors.As(err, &s) {
		return syntaxError(err)
	}
	pointer := string(s.JSONPointer)
	if s.Err == json.ErrUnknownName {
		return &UnknownMemberError{Pointer: pointer, Offset: s.ByteOffset,
			Name: s.JSONPointer.LastToken(), Known: memberNames(s.GoType)}
	}
	// A type's own decoder may have come back here with a part of the text.
	var unknown *UnknownMemberError
	if errors.As(s.Err, &unknown) {
		return &UnknownMemberError{Pointer: pointer + unknown.Pointer, Offset: s.ByteOffset + unknown.Offset,
			Name: unknown.Name, Known: unknown.Known}
	}
	var inner *Error
	if errors.As(s.Err, &inner) {
		return &Error{Pointer: pointer + inner.Pointer, Offset: s.ByteOffset + inner.Offset,
			Rule: inner.Rule, cause: inner.cause}
	}
	return &Error{Pointer: pointer, Offset: s.ByteOffset, Rule: typeRule(s), cause: s.Err}
}

// memberNames are the names by which a struct is read.
func memberNames(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-", f.Anonymous && name == "", !f.IsExported():
		case name == "":
			names = append(names, f.Name)
		default:
			names = append(names, name)
		}
	}
	return names
}

// typeRule says in JSON's words what a Go type wants.
func typeRule(s *json.SemanticError) string {
	if s.GoType == nil {
		return "cannot be read"
	}
	wanted := wantedBy(s.GoType)
	switch {
	case errors.Is(s.Err, strconv.ErrRange):
		return fmt.Sprintf("out of range for a Go %v", s.GoType)
	case s.JSONKind == jsontext.KindNumber && errors.Is(s.Err, strconv.ErrSyntax):
		return fmt.Sprintf("wants %s, without fraction or exponent", wanted)
	case s.GoType == reflect.TypeFor[time.Time]():
		return "wants " + wanted
	case s.Err != nil || s.JSONKind == jsontext.KindInvalid:
		return fmt.Sprintf("not accepted as a Go %v", s.GoType)
	}
	return fmt.Sprintf("wants %s, not %s", wanted, kindNames[s.JSONKind])
}

var kindNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindTrue: "true", jsontext.KindFalse: "false",
	jsontext.KindString: "a string", jsontext.KindNumber: "a number",
	jsontext.KindBeginObject: "an object", jsontext.KindEndObject: "an object",
	jsontext.KindBeginArray: "an array", jsontext.KindEndArray: "an array",
}

func wantedBy(t reflect.Type) string {
	if t == reflect.TypeFor[time.Time]() {
		return "a time as RFC 3339 writes it"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0 up"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return fmt.Sprintf("a Go %v", t)
}
