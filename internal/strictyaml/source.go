package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// source is JSON with what is needed to say where it was written.
type source struct {
	file string
	json []byte
	// line finds the line of a value by its pointer or by its offset in the JSON, whichever it can use.
	line func(pointer string, offset int64) int
}

func jsonSource(file string, first int, b []byte) source {
	return source{file: file, json: b, line: func(_ string, offset int64) int {
		return first + bytes.Count(b[:min(int(offset), len(b))], []byte("\n"))
	}}
}

func yamlSource(file string, root *yaml.Node, json []byte) source {
	return source{file: file, json: json, line: func(pointer string, _ int64) int { return lineOf(root, pointer) }}
}

func (s source) decode(v any) error {
	if _, err := ijson.Canonical(s.json, limits); err != nil {
		return s.explain(err)
	}
	if err := ijson.Unmarshal(s.json, v); err != nil {
		return s.explain(err)
	}
	return nil
}

// explain turns an error about JSON into one about the file.
func (s source) explain(err error) error {
	var unknown *ijson.UnknownMemberError
	if errors.As(err, &unknown) {
		return s.fault(unknown.Pointer, unknown.Offset, "unknown key; "+adviceOnName(unknown.Name, unknown.Known))
	}
	var broken *ijson.Error
	if !errors.As(err, &broken) {
		return &Error{File: s.file, Problem: err.Error()}
	}
	problem := broken.Rule
	if cause := errors.Unwrap(broken); cause != nil && strings.HasPrefix(problem, "not accepted") {
		problem = cause.Error() // a type's own decoder knows better what it wants
	} else if advice := adviceOnRule(problem); advice != "" {
		problem += "; " + advice
	}
	return s.fault(broken.Pointer, broken.Offset, problem)
}

func (s source) fault(pointer string, offset int64, problem string) *Error {
	return &Error{File: s.file, Line: s.line(pointer, offset), Path: s.path(pointer), Problem: problem}
}

// path writes a pointer as people read it, like profiles.warehouse.tools[0].
func (s source) path(pointer string) string {
	var path, parent string
	for _, token := range ijson.Tokens(pointer) {
		container, _ := ijson.Lookup(s.json, parent)
		if i, err := strconv.Atoi(token); err == nil && bytes.HasPrefix(container, []byte("[")) {
			path = index(path, i)
		} else {
			path = Member(path, token)
		}
		parent += "/" + ijson.EscapeToken(token)
	}
	return path
}

// lineOf gives the line of the key or element that a pointer ends at.
func lineOf(n *yaml.Node, pointer string) int {
	line := n.Line
	for _, token := range ijson.Tokens(pointer) {
		var next *yaml.Node
		if n.Kind == yaml.SequenceNode {
			if i, err := strconv.Atoi(token); err == nil && i < len(n.Content) {
				next = n.Content[i]
				line = next.Line
			}
		} else {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == token {
					next = n.Content[i+1]
					line = n.Content[i].Line
				}
			}
		}
		if next == nil {
			return line
		}
		n = next
	}
	return line
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Member writes the path of a member as people read it, like profiles.warehouse.
func Member(path, name string) string {
	if !bareKey.MatchString(name) {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
