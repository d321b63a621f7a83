package opa

import "github.com/open-policy-agent/opa/v1/ast"

// field is a part of the input, or of the data that govern puts in: what it is called, and what is known of it.
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

// names are the variables of a rule that stand for a field, and those that stand for a value that is written out.
type names struct {
	compiler  *ast.Compiler
	fields    map[ast.Var]field
	constants map[ast.Var]*ast.Term
}

// namesOf follows assignments, `some x in …` and `every x in …`, which the compiler has made assignments of, until
// they say nothing new.
func namesOf(c *ast.Compiler, rule *ast.Rule) names {
	n := names{compiler: c, fields: map[ast.Var]field{}, constants: map[ast.Var]*ast.Term{}}
	for before := -1; before < len(n.fields); {
		before = len(n.fields)
		ast.WalkExprs(rule, func(e *ast.Expr) bool {
			if every, ok := e.Terms.(*ast.Every); ok {
				n.bind(every.Value, n.field(every.Domain).at(ast.Number("0")))
			}
			if e.IsEquality() && len(e.Operands()) == 2 {
				n.bind(e.Operand(0), n.field(e.Operand(1)))
				n.bind(e.Operand(1), n.field(e.Operand(0)))
			}
			return false
		})
	}
	n.findConstants(rule)
	return n
}

// findConstants takes the variables whose first mention gives them a value. Later ones only compare.
func (n names) findConstants(rule *ast.Rule) {
	seen := map[ast.Var]bool{}
	see := func(v ast.Var) bool { seen[v] = true; return false }
	for _, argument := range rule.Head.Args {
		ast.WalkVars(argument, see)
	}
	ast.WalkExprs(rule, func(e *ast.Expr) bool {
		if e.IsEquality() && len(e.Operands()) == 2 && !e.Negated {
			if name, ok := e.Operand(0).Value.(ast.Var); ok && !seen[name] {
				if value := n.constant(e.Operand(1)); value != nil {
					n.constants[name] = value
				}
			}
		}
		ast.WalkVars(e, see)
		return false
	})
}

func (n names) bind(t *ast.Term, to field) {
	if name, ok := t.Value.(ast.Var); ok && to.node != nil && n.fields[name].node == nil {
		n.fields[name] = to
	}
}

// field is what a term stands for, if it is one.
func (n names) field(t *ast.Term) field {
	switch v := t.Value.(type) {
	case ast.Var:
		return n.fields[v]
	case ast.Ref:
		head, _ := v[0].Value.(ast.Var)
		part := n.fields[head]
		switch {
		case v.HasPrefix(ast.InputRootRef):
			part = field{"input", inputSchema()}
		case v.HasPrefix(ast.DefaultRootRef):
			part = field{"data", dataSchema}
		}
		for _, step := range v[1:] {
			part = part.at(step.Value)
		}
		return part
	}
	return field{}
}

// constant is the value that a term stands for, if it is written out: there, in a variable, or as all that a rule says.
func (n names) constant(t *ast.Term) *ast.Term {
	if ast.IsConstant(t.Value) {
		return t
	}
	switch v := t.Value.(type) {
	case ast.Var:
		return n.constants[v]
	case ast.Ref:
		if rules := n.compiler.GetRulesExact(v); len(rules) == 1 && alwaysTrue(rules[0]) {
			return rules[0].Head.Value
		}
	}
	return nil
}

// alwaysTrue says that a rule is a constant by another name.
func alwaysTrue(rule *ast.Rule) bool {
	return !rule.Default && rule.Else == nil && len(rule.Head.Args) == 0 && rule.Head.RuleKind() == ast.SingleValue &&
		ast.IsConstant(rule.Head.Value.Value) && rule.Body.Equal(ast.NewBody(ast.NewExpr(ast.BooleanTerm(true))))
}
