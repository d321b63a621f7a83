package opa

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkReferences looks for what a compiler lets pass, and what would then decide nothing, or everything: values that a
// field never has, data that is not there, and the input of the other question.
func checkReferences(c *ast.Compiler, s Source, found *Findings) {
	w := world{rules: c.RuleTree.Child(ast.DefaultRootDocument.Value), data: map[string]any{}}
	for _, b := range s.bundles() {
		maps.Copy(w.data, b.data.root)
	}
	w.given = given(s)
	for _, m := range c.Modules {
		for _, rule := range m.Rules {
			w.checkData(rule, found)
			checkValues(c, rule, found)
		}
	}
	checkStages(c, found)
	checkAsked(c, found)
}

// shape is a document that govern puts in: its names, or any name. Without either it may hold anything.
type shape struct {
	names map[string]shape
	any   *shape
}

func holding(names ...string) shape {
	s := shape{names: map[string]shape{}}
	for _, n := range names {
		s.names[n] = shape{}
	}
	return s
}

// putIn is what govern adds to the data that comes with a policy. What layers contribute is there without a layer too.
var putIn = func() shape {
	profile := holding("tools", "readable", "writable", "scopes", "budgets")
	s := shape{names: map[string]shape{
		"profiles": {any: &profile}, "readable": {}, "writable": {}, "govern": holding("version"),
	}}
	for _, l := range Layers {
		s.names[string(l)] = holding(contributionNames...)
	}
	return s
}()

// given is what govern adds to the data of a source: where that has sets of targets, there are no others.
func given(s Source) shape {
	all := shape{names: maps.Clone(putIn.names)}
	for kind, sets := range map[string][]string{"readable": s.ReadableSets(), "writable": s.WritableSets()} {
		if len(sets) > 0 {
			all.names[kind] = holding(sets...)
		}
	}
	return all
}

// world is everything under data that a policy can find.
type world struct {
	rules *ast.TreeNode
	data  map[string]any
	given shape
}

// checkData finds references to data that nothing gives.
func (w world) checkData(rule *ast.Rule, found *Findings) {
	ast.WalkTerms(rule, func(t *ast.Term) bool {
		ref, ok := t.Value.(ast.Ref)
		if !ok || !ref.HasPrefix(ast.DefaultRootRef) {
			return false
		}
		if at, known, ok := w.lacks(ref); ok {
			found.add(locate(rule, t), fmt.Sprintf("%s has no %s: no rule and no data gives it", ref[:at], ref[at]), advice(plain(ref[at]), known))
		}
		return false
	})
}

// lacks says at which step a reference leaves what is there, and what it could have gone to.
func (w world) lacks(ref ast.Ref) (int, []string, bool) {
	rules, given := w.rules, &w.given
	data, hasData := any(w.data), true
	for i, step := range ref[1:] {
		name, ok := step.Value.(ast.String)
		if !ok {
			if given == nil || given.any == nil {
				return 0, nil, false // which one it is comes out only when it is asked
			}
			rules, hasData, given = nil, false, given.any
			continue
		}
		above := world{rules: rules}
		if rules != nil {
			if rules = rules.Child(name); rules != nil && len(rules.Values) > 0 {
				return 0, nil, false // inside the value of a rule
			}
		}
		if hasData {
			above.data, _ = data.(map[string]any)
			data, hasData = above.data[string(name)]
		}
		if given != nil {
			above.given = *given
			if given = given.at(string(name)); given != nil && given.names == nil && given.any == nil {
				return 0, nil, false
			}
		}
		if rules == nil && !hasData && given == nil {
			return i + 1, above.names(), true
		}
	}
	return 0, nil, false
}

// names are what there is at the top of a world.
func (w world) names() []string {
	known := slices.Concat(slices.Collect(maps.Keys(w.data)), slices.Collect(maps.Keys(w.given.names)))
	if w.rules != nil {
		known = append(known, childrenOf(w.rules)...)
	}
	slices.Sort(known)
	return slices.Compact(known)
}

func (s shape) at(name string) *shape {
	if inner, ok := s.names[name]; ok {
		return &inner
	}
	return s.any
}

func childrenOf(n *ast.TreeNode) []string {
	var names []string
	for key := range n.Children {
		names = append(names, plain(ast.NewTerm(key)))
	}
	return names
}

// checkStages keeps the two questions apart: the input of a decision has no gate, and the gate's has nothing else.
func checkStages(c *ast.Compiler, found *Findings) {
	var asked []*ast.Rule
	for _, m := range c.Modules {
		for _, l := range Layers {
			if within(m.Package.Path.String(), l.packageOf()) {
				asked = append(asked, m.Rules...)
			}
		}
	}
	asked = append(asked, c.GetRulesExact(ast.MustParseRef(entrypoint))...)
	eachInput(c, asked, func(at *ast.Location, field string) {
		if field == "gate" {
			found.add(at, "input.gate is there for data.policy.gate alone, and this rule decides on a call", "read input.call, input.tool or input.task")
		}
	})
	eachInput(c, c.GetRulesExact(ast.MustParseRef(gateRule)), func(at *ast.Location, field string) {
		if field != "gate" {
			found.add(at, fmt.Sprintf("data.policy.gate is asked about a name alone, and its input has no %s", field), "read input.gate")
		}
	})
}

// checkAsked refuses a layer over a policy that does not ask it: its rules would hold nothing back, in silence.
func checkAsked(c *ast.Compiler, found *Findings) {
	asked := reach(c, c.GetRulesExact(ast.MustParseRef(entrypoint)))
	for _, l := range Layers {
		for _, name := range contributionNames {
			set := l.packageOf() + "." + name
			for _, rule := range c.GetRulesExact(ast.MustParseRef(set)) {
				if !asked[rule] {
					found.add(rule.Location, fmt.Sprintf("the policy never asks %s, so the rule would hold nothing back", set),
						"let data.policy.decision ask it, as the built-in policy does: govern policy export writes that one")
				}
			}
		}
	}
}

// reach is every rule that rules ask, themselves or through others.
func reach(c *ast.Compiler, rules []*ast.Rule) map[*ast.Rule]bool {
	seen := map[*ast.Rule]bool{}
	for len(rules) > 0 {
		rule := rules[len(rules)-1]
		rules = rules[:len(rules)-1]
		if rule == nil || seen[rule] {
			continue
		}
		seen[rule] = true
		rules = append(rules, rule.Else)
		for dependency := range c.Graph.Dependencies(rule) {
			rules = append(rules, dependency.(*ast.Rule))
		}
	}
	return seen
}

// eachInput calls f for each field of the input that rules read, themselves or through others.
func eachInput(c *ast.Compiler, rules []*ast.Rule, f func(at *ast.Location, field string)) {
	for rule := range reach(c, rules) {
		ast.WalkTerms(rule, func(t *ast.Term) bool {
			if ref, ok := t.Value.(ast.Ref); ok && len(ref) > 1 && ref.HasPrefix(ast.InputRootRef) {
				if field, ok := ref[1].Value.(ast.String); ok {
					f(locate(rule, t), string(field))
				}
			}
			return false
		})
	}
}
