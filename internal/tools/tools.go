// Package tools makes the tools that can be run from their definitions, and runs them. It never decides whether a call
// is allowed.
//
// Nothing here reaches a file or a process, and a network only for tools that are outside. No other tool keeps an effect of its
// own: a write gives the record to create as a value, and the store commits it together with the decision.
package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// New makes the tools of definitions, by name. Those that read documents read from docs, and those outside send the values of
// headers that secrets has. A definition that leaves out its effect is a write, and a write that leaves out its approval asks
// for a person always; one outside has to say.
//
// Everything that is wrong with the definitions is one DefinitionErrors.
func New(definitions map[string]dispatch.Definition, docs Documents, secrets Secrets) (map[string]dispatch.Tool, error) {
	docs = maps.Clone(docs)
	tools := map[string]dispatch.Tool{}
	var wrong DefinitionErrors
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		def := withDefaults(name, definitions[name])
		t, problems := build(def, docs, secrets[name])
		for _, p := range problems {
			p.Tool = name
			wrong = append(wrong, p)
		}
		tools[name] = Guarded(t)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	if err := docs.reachable(tools); err != nil {
		return nil, err
	}
	return tools, nil
}

func withDefaults(name string, def dispatch.Definition) dispatch.Definition {
	def.Name = name
	if def.Effect == "" {
		def.Effect = dispatch.Write
	}
	outside := def.Outside != nil
	if def.Approval == "" && !(outside && def.Effect == dispatch.Write) {
		def.Approval = dispatch.ByRule
		if def.Effect == dispatch.Write {
			def.Approval = dispatch.Always
		}
	}
	if outside && def.Limits.Time == 0 {
		def.Limits.Time = dispatch.Millis(DefaultOutsideTime.Milliseconds())
	}
	if outside && def.Limits.OutputBytes == 0 {
		def.Limits.OutputBytes = DefaultOutsideBytes
	}
	return def
}

// inOrder sorts what has no order, so that how it is written changes no digest.
func inOrder(def dispatch.Definition) dispatch.Definition {
	def.Scopes = append([]string{}, def.Scopes...)
	slices.Sort(def.Scopes)
	for _, list := range []*[]string{&def.Labels, &def.Drop, &def.Sensitive, &def.SensitiveOutput} {
		*list = slices.Sorted(slices.Values(*list))
	}
	return def
}

// build makes one tool, or says everything that is wrong with its definition.
func build(def dispatch.Definition, docs Documents, secrets map[string]string) (dispatch.Tool, []DefinitionError) {
	problems := check(def)
	ordered := inOrder(def)
	var arguments, output *schema
	var err error
	// The canonical bytes are advertised and compiled alike, so that how a file is laid out changes nothing.
	if ordered.Schema, arguments, err = readSchema(def.Name, def.Schema); err != nil {
		problems = append(problems, DefinitionError{Field: "/schema", Problem: err.Error()})
	} else {
		problems = append(problems, checkPointers(def)...)
		problems = append(problems, checkSensitive(def)...)
		problems = append(problems, checkKeywords("/schema", ordered.Schema)...)
	}
	if def.Output != nil {
		if ordered.Output, output, err = readSchema(def.Name, def.Output); err != nil {
			problems = append(problems, DefinitionError{Field: "/output", Problem: err.Error()})
		}
		problems = append(problems, checkKeywords("/output", ordered.Output)...)
	}
	problems = append(problems, checkSensitiveOutput(def)...)
	if def.Outside != nil {
		return buildOutside(ordered, arguments, output, secrets, problems, def)
	}
	t := local{definition: ordered, arguments: arguments, output: output}
	if len(problems) == 0 {
		op := operations[def.Local]
		t.needs, t.prepare = op.needs, op.prepare(def, docs)
	}
	return t, problems
}

// buildOutside makes a tool outside of a definition in order, beside which stands how it was written.
func buildOutside(ordered dispatch.Definition, arguments, output *schema, secrets map[string]string, problems []DefinitionError, written dispatch.Definition) (dispatch.Tool, []DefinitionError) {
	o, err := readOutside(written)
	if err == nil {
		ordered.Outside, err = ijson.Marshal(o)
	}
	if err != nil {
		return outside{}, append(problems, DefinitionError{Field: "/http", Problem: err.Error()})
	}
	if problems = append(problems, checkOutside(written, o, secrets)...); len(problems) > 0 {
		return outside{definition: ordered}, problems
	}
	t, err := outsideTool(outside{definition: ordered, arguments: arguments, output: output}, o, secrets)
	if err != nil {
		return outside{definition: ordered}, []DefinitionError{{Field: "/http", Problem: err.Error()}}
	}
	return t, nil
}

func readSchema(name string, source ijson.Raw) (ijson.Raw, *schema, error) {
	canonical, err := ijson.Canonical(source, ijson.DefaultLimits)
	if err != nil {
		return nil, nil, fmt.Errorf("the schema is not strict JSON: %w", err)
	}
	compiled, err := compile(name, canonical)
	return canonical, compiled, err
}

// DefinitionError says what is wrong with one tool's definition.
type DefinitionError struct {
	Tool string
	// Field is a JSON Pointer into the definition.
	Field string
	// Problem says what is wrong and what to do.
	Problem string
}

func (e DefinitionError) Error() string {
	return "tool " + e.Tool + ": " + strings.TrimPrefix(e.Field, "/") + ": " + e.Problem
}

// DefinitionErrors is everything that is wrong with some definitions.
type DefinitionErrors []DefinitionError

// Unwrap gives each as an error of its own.
func (e DefinitionErrors) Unwrap() []error {
	var all []error
	for _, one := range e {
		all = append(all, one)
	}
	return all
}

func (e DefinitionErrors) Error() string {
	lines := make([]string, 0, len(e))
	for _, one := range e {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}
