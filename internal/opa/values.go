package opa

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/nearest"
)

var orders = []string{ast.LessThan.Name, ast.LessThanEq.Name, ast.GreaterThan.Name, ast.GreaterThanEq.Name}

// checkValues finds comparisons of a field with what it never is: they hold never, or always.
func checkValues(c *ast.Compiler, rule *ast.Rule, found *Findings) {
	n := namesOf(c, rule)
	ast.WalkExprs(rule, func(e *ast.Expr) bool {
		if !e.IsCall() || len(e.Operands()) < 2 {
			return false
		}
		a, b := e.Operand(0), e.Operand(1)
		if compares(e) {
			n.numbers(e, found)
		}
		switch {
		case e.IsEquality(), e.Operator().Equal(ast.NotEqual.Ref()), e.Operator().Equal(ast.Equal.Ref()):
			n.compare(e, a, b, found)
			n.compare(e, b, a, found)
		case e.Operator().Equal(ast.Member.Ref()):
			if list := n.constant(b); list != nil {
				b = list
			}
			each(b, func(member *ast.Term) { n.compare(e, a, member, found) })
			n.member(e, a, b, found)
		case slices.Contains(orders, e.Operator().String()):
			n.order(e, a, b, found)
		}
		return false
	})
	ast.WalkTerms(rule, func(t *ast.Term) bool {
		if ref, ok := t.Value.(ast.Ref); ok {
			n.keys(locate(rule, t), ref, found)
		}
		return false
	})
}

func compares(e *ast.Expr) bool {
	operator := e.Operator()
	return e.IsEquality() || operator.Equal(ast.NotEqual.Ref()) || operator.Equal(ast.Equal.Ref()) || operator.Equal(ast.Member.Ref()) ||
		slices.Contains(orders, operator.String())
}

// numbers finds a number that nothing can be equal to: neither a call nor data can have what a double does not hold.
func (n names) numbers(e *ast.Expr, found *Findings) {
	for _, operand := range e.Operands() {
		if value := n.constant(operand); value != nil {
			operand = value
		}
		ast.WalkTerms(operand, func(t *ast.Term) bool {
			number, ok := t.Value.(ast.Number)
			if !ok {
				return false
			}
			var rule *ijson.Error
			if err := ijson.Unmarshal([]byte(number), new(ijson.Raw)); errors.As(err, &rule) {
				found.add(e.Location, fmt.Sprintf("no call and no data can have the number %s: %s", number, rule.Rule), "let it be a string there, and compare it with one")
			}
			return true
		})
	}
}

// keys finds a value that is true or false where a name is looked up.
func (n names) keys(at *ast.Location, ref ast.Ref, found *Findings) {
	for i, step := range ref[1:] {
		if n.field(ast.NewTerm(ref[:i+1])).node == nil {
			return // an object of the policy's own may have such keys
		}
		if part := n.field(step); slices.Equal(part.node.types(), []string{"boolean"}) {
			found.add(at, fmt.Sprintf("%s is true or false, and is looked up as a name", part.path), "take the name: some name, true in …")
		}
	}
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

// compare finds fault with a field that is held against what it never is.
func (n names) compare(e *ast.Expr, compared, value *ast.Term, found *Findings) {
	part := n.field(compared)
	values, _ := part.node["enum"].([]any)
	if values == nil || n.field(value).node != nil {
		return
	}
	if value = n.constant(value); value == nil || value.Equal(ast.NullTerm()) {
		return
	}
	var known []string
	for _, v := range values {
		if v != nil {
			known = append(known, fmt.Sprint(v))
		}
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

// member finds a name that is looked for among the values of an object, which are all true.
func (n names) member(e *ast.Expr, a, b *ast.Term, found *Findings) {
	part := n.field(b)
	if part.node == nil || !part.node.flags() || slices.Contains(n.types(a), "boolean") {
		return
	}
	name := "name"
	if value := n.constant(a); value != nil {
		name = value.String()
	}
	found.add(e.Location, fmt.Sprintf("%s is an object, and `in` looks among its values, which are all true", part.path), fmt.Sprintf("write %s[%s]", strings.ReplaceAll(part.path, "[_]", "[…]"), name))
}

// order finds two sides whose types differ: Rego puts every number before every string.
func (n names) order(e *ast.Expr, a, b *ast.Term, found *Findings) {
	of, other := n.field(a), b
	if of.node == nil {
		of, other = n.field(b), a
	}
	left, right := of.node.types(), n.types(other)
	if left == nil || right == nil || slices.ContainsFunc(right, func(t string) bool { return slices.Contains(left, t) }) {
		return
	}
	found.add(e.Location, fmt.Sprintf("%s is of type %s, and is ordered against type %s: that holds always or never", of.path, strings.Join(left, " or "), strings.Join(right, " or ")),
		"compare it with a value of its own type")
}

// types are those that a term can have, by the schema or by what is written; nil if nothing says.
func (n names) types(t *ast.Term) []string {
	if value := n.constant(t); value != nil {
		name := ast.ValueName(value.Value)
		if name == "number" {
			return []string{name, "integer"}
		}
		return []string{name}
	}
	return n.field(t).node.types()
}
