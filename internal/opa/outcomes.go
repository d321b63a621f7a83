package opa

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Outcome is one answer that a policy can give, as the METADATA of its rule describes it.
type Outcome struct {
	// Code is the code of its reason.
	Code string
	// Status is what the caller gets: the code, unless the rule names another.
	Status dispatch.Status
	Effect dispatch.Effect
	// Retryable says that the same call may be sent again.
	Retryable bool
	// Message is for agents.
	Message string
	// Remedy is for people.
	Remedy string
	// Place is the file and line of the rule.
	Place string
}

// readOutcomes collects the rules whose METADATA has a custom code, message, remedy or effect. Each needs all four,
// and a code of its own: whoever looks a code up must find one rule.
func readOutcomes(c *ast.Compiler) ([]Outcome, error) {
	var outcomes []Outcome
	places := map[string]string{}
	for _, rule := range rulesInOrder(c) {
		for _, note := range c.GetAnnotationSet().GetRuleScope(rule) {
			if !isOutcome(note.Custom) {
				continue
			}
			o, err := outcomeOf(note)
			if err != nil {
				return nil, fmt.Errorf("%s: the METADATA of %s: %w", place(rule.Location), rule.Ref(), err)
			}
			o.Place = place(rule.Location)
			if first, taken := places[o.Code]; taken {
				return nil, fmt.Errorf("%s: the code %s is taken by the rule at %s; each outcome needs one of its own", o.Place, o.Code, first)
			}
			places[o.Code] = o.Place
			outcomes = append(outcomes, o)
		}
	}
	return outcomes, nil
}

func rulesInOrder(c *ast.Compiler) []*ast.Rule {
	var rules []*ast.Rule
	for _, module := range c.Modules {
		rules = append(rules, module.Rules...)
	}
	slices.SortFunc(rules, func(a, b *ast.Rule) int { return a.Location.Compare(b.Location) })
	return rules
}

func isOutcome(custom map[string]any) bool {
	for _, name := range []string{"code", "message", "remedy", "effect"} {
		if _, ok := custom[name]; ok {
			return true
		}
	}
	return false
}

func outcomeOf(note *ast.Annotations) (Outcome, error) {
	text := make(map[string]string)
	for _, name := range []string{"code", "message", "remedy", "effect", "status"} {
		s, _ := note.Custom[name].(string)
		text[name] = strings.TrimSpace(s)
		if text[name] == "" && name != "status" {
			return Outcome{}, fmt.Errorf("custom.%s must say something", name)
		}
	}
	if text["status"] == "" {
		text["status"] = text["code"]
	}
	effect := dispatch.Effect(text["effect"])
	switch effect {
	case dispatch.Allow, dispatch.Deny, dispatch.RequireApproval, dispatch.Replay, dispatch.Simulate:
	default:
		return Outcome{}, fmt.Errorf("custom.effect is %q; it must be allow, simulate, deny, require_approval or replay", effect)
	}
	retryable, isBool := note.Custom["retryable"].(bool)
	if _, given := note.Custom["retryable"]; given && !isBool {
		return Outcome{}, fmt.Errorf("custom.retryable must be true or false")
	}
	return Outcome{
		Code: text["code"], Status: dispatch.Status(text["status"]), Effect: effect, Retryable: retryable,
		Message: text["message"], Remedy: text["remedy"],
	}, nil
}
