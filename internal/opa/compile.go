package opa

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// entrypoint is the one rule that is read.
const (
	entrypointPackage = "data.policy"
	entrypoint        = entrypointPackage + ".decision"
)

// byTheClock are built-ins that judge certificates by the machine's clock, though they are not flagged
// nondeterministic.
var byTheClock = []string{
	ast.CryptoX509ParseAndVerifyCertificates.Name,
	ast.CryptoX509ParseAndVerifyCertificatesWithOptions.Name,
}

// Rego reaches the machine's zone in more ways than by "Local": time.parse_ns asks it what an abbreviation such as JST
// means. Both call package time, so it is there that the machine has no zone but UTC, in whatever program decides.
func init() { time.Local = time.UTC }

// unbounded are built-ins whose work grows without bound with the numbers that they are given, or doubles with each edge
// of a graph, and which do not look at the clock meanwhile: a call could choose how much memory one decision takes.
var unbounded = []string{
	ast.BitsShiftLeft.Name, ast.JSONMarshalWithOptions.Name, ast.Product.Name, ast.ReachablePathsBuiltin.Name, ast.RenderTemplate.Name,
}

// capabilities are what Rego may call: nothing whose answer could be another one next time, and no network. That is
// what lets a recorded decision be made again.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		return b.IsNondeterministic() || slices.Contains(byTheClock, b.Name) || slices.Contains(unbounded, b.Name)
	})
	c.AllowNet = []string{} // nil would allow every host
	return c
}

// parse reads modules under their file names: two modules without a name would be taken for one.
func parse(files []file) (map[string]*ast.Module, error) {
	modules := make(map[string]*ast.Module, len(files))
	options := ast.ParserOptions{ProcessAnnotation: true, RegoVersion: ast.RegoV1, Capabilities: capabilities()}
	var found Findings
	for _, f := range files {
		m, err := ast.ParseModuleWithOpts(f.path, f.text, options)
		if err != nil {
			found.addErrors(err)
		}
		if modules[f.path] != nil {
			return nil, fmt.Errorf("%s: the file is given twice", f.path)
		}
		modules[f.path] = m
	}
	return modules, found.err()
}

// packages reads no more of modules than which package each is of: tests are loaded wherever a policy is, and run when
// somebody wants to. What else is wrong in one comes out then.
func packages(files []file) (map[string]*ast.Module, error) {
	heads := slices.Clone(files)
	for i, f := range heads {
		if head := packageClause.FindString(f.text); head != "" {
			heads[i].text = head
		}
	}
	return parse(heads)
}

// packageClause is a module up to its package, where that stands on a line of its own; metadata above it counts as a
// comment.
var packageClause = regexp.MustCompile(`\A(?:[ \t]*(?:#[^\n]*)?\r?\n)*package[ \t]+[\w.]+[ \t]*(?:\r?\n|\z)`)

// compiling is held by whoever compiles. OPA's type checker merges types in place, also those of built-ins, which every
// compiler of the process shares; evaluating reads none of them.
var compiling sync.Mutex

// newCompiler is one for a policy and for its tests alike, so that what is tested is what decides.
func newCompiler() *ast.Compiler {
	return ast.NewCompiler().
		WithCapabilities(capabilities()).
		WithDefaultRegoVersion(ast.RegoV1).
		WithStrict(true).
		SetErrorLimit(0)
}

// compiled is a policy that can be asked, with what it says of itself.
type compiled struct {
	compiler *ast.Compiler
	outcomes []Outcome
	layers   []LayerInfo
}

// compile turns a source's modules into a policy that can be asked, or says all that keeps them from being that.
func compile(s Source) (compiled, error) {
	var all, tests []file
	for _, b := range s.bundles() {
		all, tests = append(all, b.modules...), append(tests, b.tests...)
	}
	modules, err := parse(all)
	if err != nil {
		return compiled{}, err
	}
	testModules, err := packages(tests)
	if err != nil {
		return compiled{}, err
	}
	var out compiled
	var found Findings
	for _, m := range testModules {
		checkTestPackage(m, &found)
	}
	recursive := false
	for _, b := range s.bundles() {
		own := b.parsed(modules)
		for _, m := range own {
			b.checkPackage(m, &found)
			checkAnnotations(m, &found)
			if b.layer != "" {
				b.layer.checkRules(m, &found)
				recursive = b.layer.checkReads(m, &found) || recursive
			} else {
				checkCoreTerms(m, &found)
			}
		}
		b.checkData(own, &found)
		if b.layer != "" {
			out.layers = append(out.layers, b.info(own, &found))
		}
	}
	out.outcomes = readOutcomes(s, modules, &found)
	out.compiler = newCompiler().WithSchemas(inputSchemas())
	out.compiler.Compile(modules)
	found.addErrors(slices.DeleteFunc(slices.Clone(out.compiler.Errors), func(e *ast.Error) bool { return recursive && e.Code == ast.RecursionErr }))
	if out.compiler.Graph != nil && onlyTypes(out.compiler.Errors) {
		checkEntrypoint(out.compiler, &found)
		checkReferences(out.compiler, s, &found)
	}
	return out, found.err()
}

// parsed are a bundle's own modules, without its tests.
func (s Source) parsed(modules map[string]*ast.Module) []*ast.Module {
	own := make([]*ast.Module, 0, len(s.modules))
	for _, f := range s.modules {
		own = append(own, modules[f.path])
	}
	return own
}

// onlyTypes says that a compiler came as far as the types, so that what it made of the modules can be looked at.
func onlyTypes(errs ast.Errors) bool {
	return !slices.ContainsFunc(errs, func(e *ast.Error) bool { return e.Code != ast.TypeErr })
}

// checkEntrypoint finds at load what would otherwise be an undefined decision on every call.
func checkEntrypoint(c *ast.Compiler, found *Findings) {
	ref := ast.MustParseRef(entrypoint)
	rules := c.GetRulesExact(ref)
	if len(rules) == 0 {
		*found = append(*found, Finding{What: "the policy has no rule " + entrypoint, Remedy: "it is the one rule that is asked, and must give one object"})
	}
	for _, rule := range rules {
		if rule.Head.RuleKind() != ast.SingleValue || len(rule.Head.Args) > 0 || len(rule.Ref()) != len(ref) {
			found.add(rule.Location, entrypoint+" must be a rule with a single value (decision := …)", "it is a set, a function or a part of an object")
		}
	}
}

func place(l *ast.Location) string {
	return fmt.Sprintf("%s:%d", l.File, l.Row)
}
