package opa

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
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

// readOutcomes collects the rules whose METADATA has a custom code, message, remedy or effect. Each needs all four, and
// a code of its own: whoever looks a code up must find one rule. Of a layer they are its contributions, which need all but
// the effect.
func readOutcomes(s Source, modules map[string]*ast.Module, found *Findings) []Outcome {
	notes, errs := ast.BuildAnnotationSet(slices.Collect(maps.Values(modules)))
	if len(errs) > 0 {
		found.addErrors(errs)
		return nil
	}
	var outcomes []Outcome
	places := map[string]string{}
	for _, b := range s.bundles() {
		for _, rule := range rulesInOrder(b.parsed(modules)) {
			o, ok := b.outcome(rule, notes, found)
			if !ok {
				continue
			}
			o.Place = place(rule.Location)
			if first, taken := places[o.Code]; taken {
				found.add(rule.Location, fmt.Sprintf("the code %s is taken by the rule at %s", o.Code, first), "each outcome needs one of its own")
				continue
			}
			places[o.Code] = o.Place
			outcomes = append(outcomes, o)
		}
	}
	return outcomes
}

// outcome is what a rule's METADATA says, if the rule is an outcome.
func (s Source) outcome(rule *ast.Rule, notes *ast.AnnotationSet, found *Findings) (Outcome, bool) {
	name := plain(ast.NewTerm(rule.Head.Ref()[0].Value))
	contributed := dispatch.Effect("")
	if s.layer != "" && rule.Module.Package.Path.String() == s.layer.packageOf() {
		contributed = contributions[name]
	}
	if s.layer != "" && (contributed == "" || noSet(rule) != "") {
		return Outcome{}, false
	}
	for _, note := range notes.GetRuleScope(rule) {
		if !isOutcome(note.Custom) {
			continue
		}
		o, err := outcomeOf(note, contributed)
		if err == nil && contributed != "" {
			err = agrees(rule, note, &o)
		}
		if err != nil {
			found.add(rule.Location, fmt.Sprintf("the METADATA of %s: %v", rule.Head.Ref(), err), "")
			return Outcome{}, false
		}
		return o, true
	}
	if contributed != "" {
		found.add(rule.Location, fmt.Sprintf("%s has no METADATA that says what it means", name),
			"put custom.code, custom.message and custom.remedy above the rule: people are shown them")
	}
	return Outcome{}, false
}

var wordForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// agrees holds what a contribution's member says, where it is written out, against its METADATA.
func agrees(rule *ast.Rule, note *ast.Annotations, o *Outcome) error {
	if !wordForm.MatchString(o.Code) {
		return fmt.Errorf("custom.code is %q; it must be a word in lower case, such as outside_window", o.Code)
	}
	if o.Retryable {
		return errors.New("custom.retryable is true, and a layer's denial cannot say it; leave it out")
	}
	if code, ok := textOf(rule, "code"); ok && code != o.Code {
		return fmt.Errorf("custom.code is %q, and the member's code %q; make them one", o.Code, code)
	}
	if o.Effect == dispatch.RequireApproval {
		o.Status = dispatch.StatusApprovalRequired
		return nil
	}
	if status, ok := textOf(rule, "status"); ok {
		if stated, _ := note.Custom["status"].(string); stated != "" && stated != status {
			return fmt.Errorf("custom.status is %q, and the member's status %q; make them one", stated, status)
		}
		o.Status = dispatch.Status(status)
	}
	return dispatch.CheckDenial(o.Status)
}

func rulesInOrder(modules []*ast.Module) []*ast.Rule {
	var rules []*ast.Rule
	for _, m := range modules {
		rules = append(rules, m.Rules...)
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

// outcomeOf reads METADATA. Where the effect follows from the rule's name it need not be said again.
func outcomeOf(note *ast.Annotations, given dispatch.Effect) (Outcome, error) {
	text := make(map[string]string)
	for _, name := range []string{"code", "message", "remedy", "effect", "status"} {
		s, _ := note.Custom[name].(string)
		text[name] = strings.TrimSpace(s)
		if name == "effect" && text[name] == "" {
			text[name] = string(given)
		}
		if text[name] == "" && name != "status" {
			return Outcome{}, fmt.Errorf("custom.%s must say something", name)
		}
	}
	if text["status"] == "" {
		text["status"] = text["code"]
	}
	effect := dispatch.Effect(text["effect"])
	switch effect {
	case dispatch.Allow, dispatch.Deny, dispatch.RequireApproval, dispatch.Replay, dispatch.Resume, dispatch.Simulate:
	default:
		return Outcome{}, fmt.Errorf("custom.effect is %q; it must be allow, simulate, deny, require_approval, replay or resume", effect)
	}
	if given != "" && effect != given {
		return Outcome{}, fmt.Errorf("custom.effect is %q, and the rule's name says %q; leave it out", effect, given)
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
