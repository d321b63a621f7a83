package opa

import (
	"fmt"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/policy-dispatch/govern"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/nearest"
)

// schemaFile describes the input; every policy is checked against it.
const schemaFile = "policy/schemas/input.json"

// schemaNode is the part of JSON Schema in which the input is described.
type schemaNode map[string]any

var inputSchema = sync.OnceValue(func() schemaNode {
	var root schemaNode
	content, err := govern.Files.ReadFile(schemaFile)
	if err == nil {
		err = ijson.Unmarshal(content, &root)
	}
	if err != nil {
		panic(fmt.Sprintf("the built-in %s: %v", schemaFile, err)) // a fault of the build
	}
	return root
})

// inputSchemas is the schema in the form in which a compiler takes it.
func inputSchemas() *ast.SchemaSet {
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, map[string]any(inputSchema()))
	return schemas
}

// at is what stands under a step of a reference; nil if the schema does not say.
func (n schemaNode) at(step ast.Value) schemaNode {
	if name, ok := step.(ast.String); ok {
		properties, _ := n["properties"].(map[string]any)
		if inner, ok := properties[string(name)].(map[string]any); ok {
			return inner
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if inner, ok := n[keyword].(map[string]any); ok {
			return inner
		}
	}
	return nil
}

// checkValues finds comparisons of a field of the input with a value that the field never has: they hold never, or
// always.
func checkValues(rule *ast.Rule, found *Findings) {
	fields := fieldsOf(rule)
	ast.WalkExprs(rule, func(e *ast.Expr) bool {
		if !e.IsCall() || len(e.Operands()) < 2 {
			return false
		}
		a, b := e.Operand(0), e.Operand(1)
		switch {
		case e.IsEquality(), e.Operator().Equal(ast.NotEqual.Ref()), e.Operator().Equal(ast.Equal.Ref()):
			fields.compare(e, a, b, found)
			fields.compare(e, b, a, found)
		case e.Operator().Equal(ast.Member.Ref()):
			each(b, func(member *ast.Term) { fields.compare(e, a, member, found) })
		}
		return false
	})
}

// each calls f for the members of a list or a set that is written out.
func each(t *ast.Term, f func(*ast.Term)) {
	switch v := t.Value.(type) {
	case *ast.Array:
		v.Foreach(f)
	case ast.Set:
		v.Foreach(f)
	}
}

// field is a part of the input: what it is called, and what the schema says of it.
type field struct {
	path string
	node schemaNode
}

// at is what stands under a step of a reference.
func (f field) at(step ast.Value) field {
	if f.node == nil {
		return f
	}
	if name, ok := step.(ast.String); ok {
		return field{f.path + "." + string(name), f.node.at(step)}
	}
	return field{f.path + "[_]", f.node.at(step)}
}

// fields are the variables of a rule that stand for a part of the input.
type fields map[ast.Var]field

// fieldsOf follows assignments, `some x in …` and `every x in …`, which the compiler has made assignments of, until
// they say nothing new.
func fieldsOf(rule *ast.Rule) fields {
	f := fields{}
	for before := -1; before < len(f); {
		before = len(f)
		ast.WalkExprs(rule, func(e *ast.Expr) bool {
			if every, ok := e.Terms.(*ast.Every); ok {
				f.bind(every.Value, f.of(every.Domain).at(ast.Number("0")))
			}
			if e.IsEquality() && len(e.Operands()) == 2 {
				f.bind(e.Operand(0), f.of(e.Operand(1)))
				f.bind(e.Operand(1), f.of(e.Operand(0)))
			}
			return false
		})
	}
	return f
}

func (f fields) bind(t *ast.Term, to field) {
	if name, ok := t.Value.(ast.Var); ok && to.node != nil && f[name].node == nil {
		f[name] = to
	}
}

// of is the part of the input that a term stands for, if it does.
func (f fields) of(t *ast.Term) field {
	switch v := t.Value.(type) {
	case ast.Var:
		return f[v]
	case ast.Ref:
		head, _ := v[0].Value.(ast.Var)
		part := f[head]
		if v.HasPrefix(ast.InputRootRef) {
			part = field{"input", inputSchema()}
		}
		for _, step := range v[1:] {
			part = part.at(step.Value)
		}
		return part
	}
	return field{}
}

// compare finds fault with a field that is held against what it never is.
func (f fields) compare(e *ast.Expr, compared, value *ast.Term, found *Findings) {
	part := f.of(compared)
	values, _ := part.node["enum"].([]any)
	if values == nil || !ast.IsConstant(value.Value) || value.Equal(ast.NullTerm()) {
		return
	}
	var known []string
	for _, v := range values {
		known = append(known, fmt.Sprint(v))
	}
	said, isText := value.Value.(ast.String)
	if isText && slices.Contains(known, string(said)) {
		return
	}
	remedy := fmt.Sprintf("it is one of %q", known)
	if near, ok := nearest.Name(string(said), known); ok {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	found.add(e.Location, fmt.Sprintf("%s is never %s", part.path, value), remedy)
}
