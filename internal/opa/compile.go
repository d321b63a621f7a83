package opa

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// entrypoint is the one rule that is read.
const entrypoint = "data.policy.decision"

// byTheClock are built-ins that judge certificates by the machine's clock, though they are not flagged
// nondeterministic.
var byTheClock = []string{
	ast.CryptoX509ParseAndVerifyCertificates.Name,
	ast.CryptoX509ParseAndVerifyCertificatesWithOptions.Name,
}

// Rego reaches the machine's zone in more ways than by "Local": time.parse_ns asks it what an abbreviation such as JST
// means. Both call package time, so it is there that the machine has no zone but UTC, in whatever program decides.
func init() { time.Local = time.UTC }

// unbounded are built-ins whose work grows without bound with the numbers that they are given, and which do not look
// at the clock meanwhile: a call could choose how much memory one decision takes.
var unbounded = []string{
	ast.BitsShiftLeft.Name, ast.Product.Name, ast.RenderTemplate.Name,
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
	for _, f := range files {
		m, err := ast.ParseModuleWithOpts(f.path, f.text, options)
		if err != nil {
			return nil, fmt.Errorf("the policy does not parse: %w", err)
		}
		if modules[f.path] != nil {
			return nil, fmt.Errorf("%s: the file is given twice", f.path)
		}
		modules[f.path] = m
	}
	return modules, nil
}

// compiling is held by whoever compiles. OPA's type checker merges types in place, also those of built-ins, which every
// compiler of the process shares; evaluating reads none of them.
var compiling sync.Mutex

// newCompiler is one for a policy and for its tests alike, so that what is tested is what decides.
func newCompiler() *ast.Compiler {
	return ast.NewCompiler().
		WithCapabilities(capabilities()).
		WithDefaultRegoVersion(ast.RegoV1).
		WithStrict(true)
}

// compile turns a source's modules into one that can be asked, or says which file keeps it from being that.
func compile(s Source) (*ast.Compiler, error) {
	modules, err := parse(s.modules)
	if err != nil {
		return nil, err
	}
	for _, f := range sorted(s.modules) {
		if p := modules[f.path].Package.Path.String(); p != "data.policy" {
			return nil, fmt.Errorf("%s: the file is package %s; every file of the policy must be package policy",
				f.path, strings.TrimPrefix(p, "data."))
		}
	}
	if err := checkTests(s); err != nil {
		return nil, err
	}
	c := newCompiler()
	if c.Compile(modules); c.Failed() {
		return nil, fmt.Errorf("the policy does not compile: %w", c.Errors)
	}
	return c, checkEntrypoint(c)
}

// checkTests refuses a test file that adds rules to the policy: tests would see them, and decisions would not.
func checkTests(s Source) error {
	tests, err := parse(s.tests)
	if err != nil {
		return err
	}
	for _, f := range sorted(s.tests) {
		if tests[f.path].Package.Path.String() == "data.policy" {
			return fmt.Errorf("%s: a file named …_test.rego is no part of the policy; make it package policy_test, or give it another name", f.path)
		}
	}
	return nil
}

// checkEntrypoint finds at load what would otherwise be an undefined decision on every call.
func checkEntrypoint(c *ast.Compiler) error {
	ref := ast.MustParseRef(entrypoint)
	rules := c.GetRulesExact(ref)
	if len(rules) == 0 {
		return errors.New("the policy has no rule " + entrypoint + "; it is the one rule that is asked, and must give one object")
	}
	for _, rule := range rules {
		if rule.Head.RuleKind() != ast.SingleValue || len(rule.Head.Args) > 0 || len(rule.Ref()) != len(ref) {
			return fmt.Errorf("%s: %s must be a rule with a single value (decision := …), not a set, a function or a part of an object",
				place(rule.Location), entrypoint)
		}
	}
	return nil
}

func place(l *ast.Location) string {
	return fmt.Sprintf("%s:%d", l.File, l.Row)
}
