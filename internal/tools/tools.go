// Package tools makes the tools that can be run from their definitions, and runs them. It never decides whether a call
// is allowed.
//
// Nothing here reaches a file, a process or a network. No tool keeps an effect of its own: a write gives the
// record to create as a value, and the store commits it together with the decision.
package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// New makes the tools of definitions, by name. Those that read documents read from docs. A definition that leaves out
// its effect is a write, and a write that leaves out its approval asks for a person always.
//
// Everything that is wrong with the definitions is one DefinitionErrors.
func New(definitions map[string]dispatch.Definition, docs Documents) (map[string]dispatch.Tool, error) {
	docs = maps.Clone(docs)
	tools := map[string]dispatch.Tool{}
	var wrong DefinitionErrors
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		def := withDefaults(name, definitions[name])
		t, problems := build(def, docs)
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
	if def.Approval == "" {
		def.Approval = dispatch.ByRule
		if def.Effect == dispatch.Write {
			def.Approval = dispatch.Always
		}
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
func build(def dispatch.Definition, docs Documents) (local, []DefinitionError) {
	problems := check(def)
	t := local{definition: inOrder(def)}
	var err error
	// The canonical bytes are advertised and compiled alike, so that how a file is laid out changes nothing.
	if t.definition.Schema, t.arguments, err = readSchema(def.Name, def.Schema); err != nil {
		problems = append(problems, DefinitionError{Field: "/schema", Problem: err.Error()})
	} else {
		problems = append(problems, checkPointers(def)...)
		problems = append(problems, checkSensitive(def)...)
		problems = append(problems, checkKeywords("/schema", t.definition.Schema)...)
	}
	if def.Output != nil {
		if t.definition.Output, t.output, err = readSchema(def.Name, def.Output); err != nil {
			problems = append(problems, DefinitionError{Field: "/output", Problem: err.Error()})
		}
		problems = append(problems, checkKeywords("/output", t.definition.Output)...)
	}
	problems = append(problems, checkSensitiveOutput(def)...)
	if len(problems) == 0 {
		op := operations[def.Local]
		t.needs, t.prepare = op.needs, op.prepare(def, docs)
	}
	return t, problems
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
