package opa

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

func failed(format string, args ...any) *dispatch.PolicyError {
	return &dispatch.PolicyError{Code: "policy_failed", Detail: cut(fmt.Sprintf(format, args...))}
}

func malformed(format string, args ...any) *dispatch.PolicyError {
	return &dispatch.PolicyError{Code: "policy_malformed", Detail: cut(fmt.Sprintf(format, args...))}
}

// cut bounds what an error may quote of a policy's values.
func cut(detail string) string {
	const most = 2000
	if r := []rune(detail); len(r) > most {
		return string(r[:most]) + "…"
	}
	return detail
}

// policyError sorts what can go wrong in an evaluation.
func (p *Policy) policyError(err error) *dispatch.PolicyError {
	if own, ok := errors.AsType[*dispatch.PolicyError](err); ok {
		return own
	}
	e, ok := errors.AsType[*topdown.Error](err)
	switch {
	case !ok:
		return failed("%v", err)
	case e.Code == topdown.ConflictErr:
		return &dispatch.PolicyError{Code: "policy_conflict", Detail: cut(p.conflict(e))}
	}
	return failed("%v", e)
}

// conflict says which rules disagree. OPA itself lists those of a complete rule, each with its value, but of a rule
// that gives an object in parts it names one place alone.
func (p *Policy) conflict(e *topdown.Error) string {
	summary, values, listed := strings.Cut(e.Message, "\n")
	if listed {
		return summary + " " + strings.Join(strings.Fields(values), " ")
	}
	if e.Location == nil {
		return summary
	}
	places := p.siblings(e.Location)
	if len(places) == 0 {
		places = []string{place(e.Location)}
	}
	return summary + ": " + strings.Join(places, ", ")
}

// siblings are the places of every rule that makes the same document as the rule at a location.
func (p *Policy) siblings(at *ast.Location) []string {
	var all []*ast.Rule
	var document ast.Ref
	for _, module := range p.compiler.Modules {
		for _, rule := range module.Rules {
			all = append(all, rule)
			if place(rule.Location) == place(at) {
				document = rule.Ref().GroundPrefix()
			}
		}
	}
	var places []string
	for _, rule := range all {
		if document != nil && rule.Ref().GroundPrefix().Equal(document) {
			places = append(places, place(rule.Location))
		}
	}
	slices.Sort(places)
	return places
}
