package tools

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// schema is a compiled JSON Schema of a tool's arguments, or of what it gives.
type schema struct{ compiled *jsonschema.Schema }

// compile compiles a JSON Schema of draft 2020-12 that stands on its own.
func compile(name string, source ijson.Raw) (*schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	// An absolute location of no known scheme: a relative reference then leads to noLoader, not to a file.
	location := "govern:///" + name + ".json"
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(location)
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		return nil, fmt.Errorf("not valid against metaschema: %s", leaves(invalid.Err))
	}
	if err != nil {
		return nil, err
	}
	if compiled.DraftVersion != 2020 {
		return nil, fmt.Errorf("the schema is of draft %d; only draft 2020-12 is supported", compiled.DraftVersion)
	}
	return &schema{compiled}, nil
}

// leaves gives in one line what stands at the leaves of a validator's report, which is a tree of indented lines.
func leaves(report error) string {
	depth := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	lines := strings.Split(report.Error(), "\n")
	var said []string
	for i, line := range lines {
		if i > 0 && (i == len(lines)-1 || depth(lines[i+1]) <= depth(line)) {
			said = append(said, strings.TrimPrefix(strings.TrimSpace(line), "- "))
		}
	}
	return strings.Join(said, "; ")
}

// noLoader keeps the compiler from opening what a schema refers to.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema may refer to nothing outside itself")
}

// check gives the ways in which a canonical value breaks the schema, or nil.
func (s *schema) check(raw ijson.Raw) []dispatch.Violation {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return []dispatch.Violation{{Message: "must be one JSON value"}}
	}
	err = s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []dispatch.Violation{{Message: "could not be compared with the schema"}}
	}
	return violations(invalid)
}
