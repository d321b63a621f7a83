package tools

import (
	"bytes"
	"errors"
	"fmt"

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
	if err != nil {
		return nil, err
	}
	if compiled.DraftVersion != 2020 {
		return nil, fmt.Errorf("the schema is of draft %d; only draft 2020-12 is supported", compiled.DraftVersion)
	}
	return &schema{compiled}, nil
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
