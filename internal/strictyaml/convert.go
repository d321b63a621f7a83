package strictyaml

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// convert writes the JSON that says the same as a document.
func convert(file string, root *yaml.Node) ([]byte, error) {
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil, &Error{File: file, Line: root.Line, Problem: empty}
	}
	c := converter{file: file}
	if err := c.value(root, ""); err != nil {
		return nil, err
	}
	return c.out, nil
}

type converter struct {
	file  string
	out   []byte
	depth int
}

func (c *converter) fault(n *yaml.Node, path, format string, args ...any) error {
	return &Error{File: c.file, Line: n.Line, Path: path, Problem: fmt.Sprintf(format, args...)}
}

func (c *converter) value(n *yaml.Node, path string) error {
	if err := c.plain(n, path); err != nil {
		return err
	}
	if n.Kind == yaml.ScalarNode {
		return c.scalar(n, path)
	}
	if c.depth++; c.depth > limits.Depth {
		return c.fault(n, path, "nested deeper than %d levels; flatten it", limits.Depth)
	}
	defer func() { c.depth-- }()
	if n.Kind == yaml.SequenceNode {
		return c.sequence(n, path)
	}
	return c.mapping(n, path)
}

// plain refuses the devices of YAML that JSON does not have.
func (c *converter) plain(n *yaml.Node, path string) error {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		return c.fault(n, path, "anchors and aliases are not used here; write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		return c.fault(n, path, "tags such as %q are not used here; remove it, and quote a value that is to be a string", n.Tag)
	}
	return nil
}

func (c *converter) sequence(n *yaml.Node, path string) error {
	c.out = append(c.out, '[')
	for i, element := range n.Content {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		if err := c.value(element, index(path, i)); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	return nil
}

func (c *converter) mapping(n *yaml.Node, path string) error {
	first := map[string]int{}
	c.out = append(c.out, '{')
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if err := c.key(key, path); err != nil {
			return err
		}
		inner := Member(path, key.Value)
		if line, ok := first[key.Value]; ok {
			return c.fault(key, inner, "repeated key, already on line %d; keep one", line)
		}
		first[key.Value] = key.Line
		if i > 0 {
			c.out = append(c.out, ',')
		}
		if err := c.text(key, inner); err != nil {
			return err
		}
		c.out = append(c.out, ':')
		if err := c.value(value, inner); err != nil {
			return err
		}
	}
	c.out = append(c.out, '}')
	return nil
}

// key refuses keys that are no strings, as another reader would see them.
func (c *converter) key(n *yaml.Node, path string) error {
	if err := c.plain(n, path); err != nil {
		return err
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		return c.fault(n, path, "a list or mapping as a key; a key is a string")
	case n.ShortTag() == "!!merge":
		return c.fault(n, path, "merge keys are not used here; write the keys out")
	case !isText(n):
		return c.fault(n, Member(path, n.Value), "a key is a string; put it in quotes")
	}
	return nil
}

var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	// Digits in another base, also those beyond 64 bits, which yaml.v3 takes for strings.
	otherBase = regexp.MustCompile(`^[-+]?0([xX][0-9a-fA-F_]+|[oO][0-7_]+|[bB][01_]+)$`)
)

// isNumber says whether a scalar is a number to any reader of YAML. Numbers beyond its own range are strings to
// yaml.v3.
func isNumber(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!int", "!!float":
		return true
	}
	return unquoted(n) && (jsonNumber.MatchString(n.Value) || otherBase.MatchString(n.Value))
}

func unquoted(n *yaml.Node) bool {
	const quotes = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Style&quotes == 0
}

func isText(n *yaml.Node) bool {
	tag := n.ShortTag()
	return (tag == "!!str" || tag == "!!timestamp") && !isNumber(n)
}

func (c *converter) scalar(n *yaml.Node, path string) error {
	switch {
	case isNumber(n) && jsonNumber.MatchString(n.Value):
		c.out = append(c.out, n.Value...)
	case isNumber(n) && otherBase.MatchString(n.Value):
		return c.fault(n, path, "a number that is not decimal; write it in decimal, or put it in quotes if it is a string")
	case isNumber(n):
		return c.fault(n, path, "a number that JSON does not have; write it in decimal like 12, -3 or 0.5, or put it in quotes if it is a string")
	case isText(n):
		return c.text(n, path)
	case n.ShortTag() == "!!null":
		c.out = append(c.out, "null"...)
	case n.ShortTag() == "!!bool":
		c.out = append(c.out, truth[n.Value]...)
	default: // !!merge
		return c.fault(n, path, "merge keys are not used here; put << in quotes if it is a string")
	}
	return nil
}

var truth = map[string]string{
	"true": "true", "True": "true", "TRUE": "true",
	"false": "false", "False": "false", "FALSE": "false",
}

func (c *converter) text(n *yaml.Node, path string) error {
	quoted, err := ijson.Marshal(n.Value)
	if err != nil {
		return c.fault(n, path, "a string that is not UTF-8; write the file in UTF-8")
	}
	c.out = append(c.out, quoted...)
	return nil
}
