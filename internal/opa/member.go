package opa

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

var (
	denialMembers   = objectOf{known: []string{"code", "message", "status"}, needed: []string{"code", "message", "status"}}
	approvalMembers = objectOf{known: []string{"code", "message", "status", "approval"}, needed: []string{"code", "message"}}
	termsMembers    = objectOf{known: []string{"approvers", "roles", "stages", "distinct_from_actor", "lifetime", "ttl", "reason_required"}}
	stageMembers    = objectOf{known: []string{"name", "approvers", "roles"}}
)

// objectOf names the members that an object may have, and those that it must.
type objectOf struct{ known, needed []string }

// checkMember looks at what a contribution says where it is written out. What is put together by a function is judged
// when it is there, and then denies.
func checkMember(rule *ast.Rule, name string, found *Findings) {
	member := written(rule, rule.Head.Key)
	switch member.Value.(type) {
	case ast.Object:
	case ast.Var, ast.Ref, ast.Call:
		return
	default:
		found.add(rule.Location, fmt.Sprintf("%s contains %s, and its members are objects", name, member), `write {"code": …, "message": …}`)
		return
	}
	wanted := denialMembers
	if name == "require_approval" {
		wanted = approvalMembers
	}
	checkObject(rule, member, "a member of "+name, wanted, found)
	for _, text := range []string{"code", "message", "status"} {
		value := member.Value.(ast.Object).Get(ast.StringTerm(text))
		if value == nil {
			continue
		}
		if s, isString := value.Value.(ast.String); ast.IsConstant(value.Value) && (!isString || strings.TrimSpace(string(s)) == "") {
			found.add(locate(rule, value), fmt.Sprintf("the %s of a member of %s is %s", text, name, value), "it must be a string that says something")
		}
	}
	if terms := member.Value.(ast.Object).Get(ast.StringTerm("approval")); terms != nil && name == "require_approval" {
		checkTerms(rule, written(rule, terms), found)
	}
}

func checkTerms(rule *ast.Rule, terms *ast.Term, found *Findings) {
	object, ok := terms.Value.(ast.Object)
	if !ok {
		return
	}
	known := len(*found)
	checkObject(rule, terms, "approval", termsMembers, found)
	if len(*found) == known {
		checkWritten(rule, object, found)
	}
	stages := object.Get(ast.StringTerm("stages"))
	if stages == nil {
		return
	}
	if list, ok := written(rule, stages).Value.(*ast.Array); ok {
		list.Foreach(func(stage *ast.Term) {
			if _, ok := stage.Value.(ast.Object); ok {
				checkObject(rule, stage, "a stage", stageMembers, found)
			}
		})
	}
}

// checkCoreTerms looks at what the core asks of every approval.
func checkCoreTerms(m *ast.Module, found *Findings) {
	for _, rule := range m.Rules {
		if rule.Head.Name == "_terms" && rule.Head.Value != nil {
			checkTerms(rule, written(rule, rule.Head.Value), found)
		}
	}
}

// checkWritten holds the terms that are written out against what Go takes.
func checkWritten(rule *ast.Rule, terms ast.Object, found *Findings) {
	constant := ast.NewObject()
	terms.Foreach(func(name, value *ast.Term) {
		if ast.IsConstant(value.Value) {
			constant.Insert(name, value)
		}
	})
	raw, err := toJSON(constant)
	if err == nil {
		err = dispatch.CheckTerms(raw)
	}
	if err != nil {
		found.add(locate(rule, ast.NewTerm(terms)), "the terms of the approval: "+strings.TrimPrefix(err.Error(), "policy_malformed: "), "docs/policy.md lists what each term can be")
	}
}

func checkObject(rule *ast.Rule, object *ast.Term, what string, m objectOf, found *Findings) {
	var has []string
	object.Value.(ast.Object).Foreach(func(key, _ *ast.Term) {
		name, ok := key.Value.(ast.String)
		if !ok {
			return
		}
		has = append(has, string(name))
		if !slices.Contains(m.known, string(name)) {
			found.add(locate(rule, key), fmt.Sprintf("%s has no %q", what, string(name)), advice(string(name), m.known))
		}
	})
	for _, name := range m.needed {
		if !slices.Contains(has, name) {
			found.add(locate(rule, object), fmt.Sprintf("%s lacks %q", what, name), "it needs "+strings.Join(m.needed, ", "))
		}
	}
}

// written follows a variable to what the rule's body assigns to it.
func written(rule *ast.Rule, t *ast.Term) *ast.Term {
	name, ok := t.Value.(ast.Var)
	if !ok {
		return t
	}
	for _, e := range rule.Body {
		if (e.IsAssignment() || e.IsEquality()) && len(e.Operands()) == 2 && e.Operand(0).Value.Compare(name) == 0 {
			return e.Operand(1)
		}
	}
	return t
}

// textOf is a string in a contribution's member, if it is written out.
func textOf(rule *ast.Rule, name string) (string, bool) {
	object, ok := written(rule, rule.Head.Key).Value.(ast.Object)
	if !ok {
		return "", false
	}
	value := object.Get(ast.StringTerm(name))
	if value == nil {
		return "", false
	}
	s, ok := value.Value.(ast.String)
	return string(s), ok
}

// locate is where a term stands, or else its rule.
func locate(rule *ast.Rule, t *ast.Term) *ast.Location {
	if t.Location != nil {
		return t.Location
	}
	return rule.Location
}
