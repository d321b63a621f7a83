// Package strictyaml reads YAML and JSON that people write: the configuration and scenarios.
//
// A document is first turned into JSON that says the same and is then read by ijson, so that a file is held to the
// same rules as a proposal. What YAML could mean in two ways, or differently to another reader, is refused with
// advice: repeated keys, keys that are no strings, anchors and merge keys, tags, numbers that JSON does not have.
// A plain scalar that looks like a time stays a string, and a number keeps its digits.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/policy-dispatch/govern/internal/ijson"
)

var limits = ijson.Limits{Bytes: 16 << 20, Depth: 64}

// Error is a fault in a file, for the person who writes it. It reads like
//
//	config.yaml:12: profiles.warehouse.redable: unknown key; did you mean "readable"?
type Error struct {
	File string
	// Line counts from 1; 0 is the file as a whole.
	Line int
	// Path is the full dotted path of the key, empty at the top.
	Path string
	// Problem says what is wrong and what to do.
	Problem string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Path != "" {
		b.WriteString(": " + e.Path)
	}
	b.WriteString(": " + e.Problem)
	return b.String()
}

// Document is one document of a file.
type Document struct {
	// Line is where its content starts, from 1.
	Line int

	source source
}

// Decode reads the document into a Go value, by its json tags. Errors are of type *Error.
func (d Document) Decode(v any) error { return d.source.decode(v) }

// JSON gives the JSON that says the same as the document.
func (d Document) JSON() []byte { return d.source.json }

// Fault is an error about the value that a JSON Pointer leads to, or about the nearest that is there.
func (d Document) Fault(pointer, problem string) *Error {
	return d.source.fault(pointer, 0, problem)
}

// Place says where the value that a JSON Pointer leads to was written, like config.yaml:12.
func (d Document) Place(pointer string) string {
	fault := d.source.fault(pointer, 0, "")
	return fmt.Sprintf("%s:%d", fault.File, fault.Line)
}

// Only gives the one document of a file. Errors are of type *Error.
func Only(file string, b []byte) (Document, error) {
	documents, err := Documents(file, b)
	if err != nil {
		return Document{}, err
	}
	if len(documents) > 1 {
		return Document{}, &Error{File: file, Line: documents[1].Line, Problem: "a second document; put one document into this file"}
	}
	return documents[0], nil
}

// Unmarshal reads a file of exactly one document into a Go value, by its json tags. Errors are of type *Error.
func Unmarshal(file string, b []byte, v any) error {
	document, err := Only(file, b)
	if err != nil {
		return err
	}
	return document.Decode(v)
}

// UnmarshalJSON reads one JSON value, such as a line of JSON Lines, into a Go value, by its json tags. Line is the
// one in the file on which b starts. Errors are of type *Error.
func UnmarshalJSON(file string, line int, b []byte, v any) error {
	return jsonSource(file, line, b).decode(v)
}

// Documents gives the documents of a file in order, at least one, each checked as far as it can be without the Go
// value that it is for. A file whose name ends in .json is one JSON value. Errors are of type *Error.
func Documents(file string, b []byte) ([]Document, error) {
	if len(b) > limits.Bytes {
		return nil, &Error{File: file, Problem: fmt.Sprintf("longer than %d bytes; split the file", limits.Bytes)}
	}
	if strings.HasSuffix(file, ".json") {
		start := len(b) - len(bytes.TrimLeft(b, " \t\r\n"))
		return []Document{{Line: 1 + bytes.Count(b[:start], []byte("\n")), source: jsonSource(file, 1, b)}}, nil
	}
	var documents []Document
	for decoder := yaml.NewDecoder(bytes.NewReader(b)); ; {
		var node yaml.Node
		err := decoder.Decode(&node)
		switch {
		case errors.Is(err, io.EOF) && len(documents) == 0:
			return nil, &Error{File: file, Problem: empty}
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, syntaxError(file, err)
		}
		root := node.Content[0]
		json, err := convert(file, root)
		if err != nil {
			return nil, err
		}
		documents = append(documents, Document{Line: root.Line, source: yamlSource(file, root, json)})
	}
}

const empty = "the document is empty; write its keys, or remove it"

var yamlMessage = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

func syntaxError(file string, err error) error {
	e := &Error{File: file, Problem: "not YAML: " + err.Error()}
	if m := yamlMessage.FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Problem = "not YAML: " + m[2]
	}
	return e
}
