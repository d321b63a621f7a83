package ijson

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Error says where a text breaks a rule, and which.
type Error struct {
	// Pointer is the JSON Pointer (RFC 6901) of the offending value or, where there is none, of what is around it.
	Pointer string
	// Offset is the number of bytes before the fault.
	Offset int64
	// Rule names the rule. It never holds a value from the text; Pointer holds names.
	Rule string

	cause error
}

// Error reads like "at /arguments/a (byte 31): repeated name".
func (e *Error) Error() string { return place(e.Pointer, e.Offset) + ": " + e.Rule }

// Unwrap gives what a Go type's own decoder said. Unlike Rule it may quote a value.
func (e *Error) Unwrap() error { return e.cause }

// UnknownMemberError says that an object has a member which the Go struct read into does not have.
type UnknownMemberError struct {
	// Pointer is the JSON Pointer of the member.
	Pointer string
	// Offset is the number of bytes before its name.
	Offset int64
	// Name is the member's name.
	Name string
	// Known are the names that the struct has, in its order.
	Known []string
}

// Error reads like "at /limits/max_step (byte 20): unknown name".
func (e *UnknownMemberError) Error() string { return place(e.Pointer, e.Offset) + ": unknown name" }

// place is for people and terminals: control characters in names are escaped, and long pointers are cut.
func place(pointer string, offset int64) string {
	const most = 200
	if len(pointer) > most {
		cut := most
		for !utf8.RuneStart(pointer[cut]) {
			cut--
		}
		pointer = pointer[:cut] + "…"
	}
	if pointer == "" {
		return fmt.Sprintf("at byte %d", offset)
	}
	quoted := strconv.Quote(pointer)
	return fmt.Sprintf("at %s (byte %d)", quoted[1:len(quoted)-1], offset)
}

// syntaxError turns what the tokenizer says into an Error. Its own message quotes the text.
func syntaxError(err error) error {
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) {
		if errors.Is(err, io.EOF) {
			return &Error{Rule: "no value"}
		}
		return &Error{Rule: "not JSON"}
	}
	return &Error{Pointer: string(s.JSONPointer), Offset: s.ByteOffset, Rule: syntaxRule(s.Err)}
}

func syntaxRule(err error) string {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "repeated name"
	case errors.Is(err, jsontext.ErrNonStringName):
		return "a name must be a string"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the text ends early"
	}
	// The rest has no exported names. An unforeseen wording only makes the rule less exact.
	switch text := err.Error(); {
	case strings.HasPrefix(text, "invalid UTF-8"):
		return "not UTF-8"
	case strings.HasPrefix(text, "invalid surrogate"):
		return "lone surrogate"
	case strings.HasPrefix(text, "invalid escape"):
		return "no such escape"
	}
	return "not JSON"
}
