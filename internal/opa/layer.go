package opa

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/nearest"
)

// Layer names what a site puts over the core: a package of its own, whose rules can only narrow. The zero value is the
// core itself.
type Layer string

// The layers: the organisation's and the site's.
const (
	Org  Layer = "org"
	Site Layer = "site"
)

// Layers are all that there are, in the order in which the policy asks them.
var Layers = []Layer{Org, Site}

// contributions are the rules of a layer that the core asks, and the effect that a member of each leads to.
var contributions = map[string]dispatch.Effect{
	"forbid": dispatch.Deny, "deny": dispatch.Deny, "require_approval": dispatch.RequireApproval,
}

var contributionNames = slices.Sorted(maps.Keys(contributions))

// With puts layers over a source; they replace those that it had.
func (s Source) With(layers ...Source) Source {
	s.layers = nil
	for _, l := range layers {
		if l.layer != "" {
			s.layers = append(s.layers, l)
		}
	}
	return s
}

// bundles are the core and its layers.
func (s Source) bundles() []Source { return append([]Source{s}, s.layers...) }

// allData is the data of the core and its layers, each under roots of its own.
func (s Source) allData() document {
	d := s.data.clone()
	for _, l := range s.layers {
		maps.Copy(d.root, l.data.root)
	}
	return d
}

// packageOf is where a layer's contributions stand, and libraryOf where its helpers do.
func (l Layer) packageOf() string { return "data." + string(l) }

func (l Layer) libraryOf() string { return l.packageOf() + ".lib" }

func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+".") }

// checkPackage holds a file's package against the bundle that it came with: nothing may add to another's rules.
func (s Source) checkPackage(m *ast.Module, found *Findings) {
	path := m.Package.Path.String()
	name := strings.TrimPrefix(path, "data.")
	at := m.Package.Location
	if s.layer != "" {
		if path != s.layer.packageOf() && !within(path, s.layer.libraryOf()) {
			found.add(at, fmt.Sprintf("the file is package %s, in the layer %s", name, s.layer),
				fmt.Sprintf("make it package %[1]s, which holds forbid, deny and require_approval alone, or package %[1]s.lib for helpers", s.layer))
		}
		return
	}
	if path == "data.policy" {
		return
	}
	what := fmt.Sprintf("the file is package %s; every file of the policy must be package policy", name)
	for _, l := range Layers {
		if within(path, l.packageOf()) {
			found.add(at, what, fmt.Sprintf("a layer is no part of the core's folder: put it in one of its own, and name that with --%s", l))
			return
		}
	}
	found.add(at, what, "")
}

// checkTestPackage refuses a test file that adds rules to the policy: tests would see them, and decisions would not.
func checkTestPackage(m *ast.Module, found *Findings) {
	path := m.Package.Path.String()
	inside := path == entrypointPackage
	for _, l := range Layers {
		inside = inside || within(path, l.packageOf())
	}
	if inside {
		root, _, _ := strings.Cut(strings.TrimPrefix(path, "data."), ".")
		found.add(&ast.Location{File: m.Package.Location.File}, "a file named …_test.rego is no part of the policy",
			fmt.Sprintf("make it package %s_test, or give it another name", root))
	}
}

// checkAnnotations refuses what would switch the check against the input's schema off.
func checkAnnotations(m *ast.Module, found *Findings) {
	for _, note := range m.Annotations {
		if len(note.Schemas) > 0 {
			found.add(note.Location, "the METADATA has schemas, which would take the place of the input's own schema",
				"remove it: every rule is checked against policy/schemas/input.json")
		}
	}
}

// checkRules refuses what stands among a layer's contributions and is none: the core would pass it over in silence, or
// fail on every call.
func (l Layer) checkRules(m *ast.Module, found *Findings) {
	if m.Package.Path.String() != l.packageOf() {
		l.checkLibrary(m, found)
		return
	}
	for _, rule := range m.Rules {
		head := rule.Head
		name := plain(ast.NewTerm(head.Ref()[0].Value))
		at := rule.Location
		if contributions[name] == "" {
			remedy := fmt.Sprintf("helpers belong in package %s.lib", l)
			if near, ok := nearest.Name(name, contributionNames); ok {
				remedy = fmt.Sprintf("did you mean %s? %s", near, strings.ToUpper(remedy[:1])+remedy[1:])
			}
			found.add(at, fmt.Sprintf("package %s has the rule %s, and may have forbid, deny and require_approval alone", l, name), remedy)
			continue
		}
		if is := noSet(rule); is != "" {
			found.add(at, fmt.Sprintf("%s is %s, and must be a set", name, is),
				fmt.Sprintf(`write %s contains {"code": …, "message": …} if { … }`, name))
			continue
		}
		checkMember(rule, name, found)
	}
}

// noSet says what a rule is that is no set by itself; empty for one that is.
func noSet(rule *ast.Rule) string {
	switch head := rule.Head; {
	case rule.Default:
		return "a default"
	case len(head.Args) > 0:
		return "a function"
	case len(head.Ref()) > 1:
		return "a part of an object"
	case head.RuleKind() != ast.MultiValue:
		return "a single value"
	}
	return ""
}

// checkLibrary refuses among a layer's helpers what looks like a contribution: nothing asks for it there.
func (l Layer) checkLibrary(m *ast.Module, found *Findings) {
	path := m.Package.Path.String()
	if !within(path, l.libraryOf()) {
		return
	}
	name, remedy := strings.TrimPrefix(path, "data."), fmt.Sprintf("move the rule to package %s", l)
	for _, rule := range m.Rules {
		if set := plain(rule.Head.Ref()[0]); contributions[set] != "" && len(rule.Head.Args) == 0 {
			found.add(rule.Location, fmt.Sprintf("package %s has the rule %s, and nothing asks for it there", name, set), remedy)
		}
	}
	for _, note := range m.Annotations {
		if _, ok := note.Custom["code"]; ok {
			found.add(note.Location, fmt.Sprintf("the METADATA has custom.code, and no rule of package %s is an outcome", name), remedy+", or remove custom.code")
		}
	}
}

// checkReads refuses a layer that reads the policy, which asks it, and says whether it does.
func (l Layer) checkReads(m *ast.Module, found *Findings) bool {
	does := false
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if ref, ok := t.Value.(ast.Ref); ok && ref.HasPrefix(ast.MustParseRef(entrypointPackage)) {
			does = true
			found.add(t.Location, "a layer cannot read data.policy, which asks the layer", fmt.Sprintf("read the input, or put what it needs into package %s.lib", l))
		}
		return false
	})
	return does
}

// checkData refuses data of a layer where one of its rules stands, or could: the two would be one document.
func (s Source) checkData(modules []*ast.Module, found *Findings) {
	if s.layer == "" {
		return
	}
	taken := map[string]string{}
	for _, name := range contributionNames {
		taken["/"+string(s.layer)+"/"+name] = "its rules alone may give data." + string(s.layer) + "." + name
	}
	for _, m := range modules {
		for _, rule := range m.Rules {
			path := m.Package.Path.Extend(rule.Head.Ref().GroundPrefix())
			pointer := ""
			for _, t := range path[1:] {
				pointer += "/" + plain(t)
			}
			taken[pointer] = "the rule at " + place(rule.Location) + " gives it"
		}
	}
	for _, pointer := range slices.Sorted(maps.Keys(taken)) {
		// The value itself, or what is no object on the way to it.
		at, clash := s.data.reaches(pointer)
		if clash {
			*found = append(*found, Finding{File: s.data.giver(at), What: fmt.Sprintf("data conflict at %s: %s", at, taken[pointer]), Remedy: "remove it from the file"})
		}
	}
}
