package opa

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestUndefinedDecisionIsAnError(t *testing.T) { // B008
	p := regoPolicy(t, "decision := {\"effect\": \"allow\"} if input.call.tool == \"read\"\n")
	e := policyError(t, p, `{"call": {"tool": "write"}}`)
	assert.Equal(t, "policy_undefined", e.Code)
	assert.Contains(t, e.Detail, "data.policy.decision")
	raw, err := p.Decide(t.Context(), ijson.Raw(`{"call": {"tool": "read"}}`))
	require.NoError(t, err)
	assert.Equal(t, `{"effect":"allow"}`, string(raw))
}

func TestConflictNamesBothPlaces(t *testing.T) { // B015
	both := withArguments(`{"a": true, "b": true}`)
	for name, c := range map[string]struct {
		files files
		want  []string
	}{
		"of the decision": {files{
			"a.rego": "package policy\n\ndecision := {\"effect\": \"allow\"} if input.call.arguments.a\n",
			"b.rego": "package policy\n\nother := 1\n\ndecision := {\"effect\": \"deny\"} if input.call.arguments.b\n",
		}, []string{"bundle/a.rego:3", "bundle/b.rego:5", "data.policy.decision"}},
		"of a rule under it": {files{
			"a.rego": "package policy\n\ndecision := {\"effect\": effect}\n\neffect := \"allow\" if input.call.arguments.a\n\neffect := \"deny\" if input.call.arguments.b\n",
		}, []string{"bundle/a.rego:5", "bundle/a.rego:7", "data.policy.effect"}},
		"of a rule whose value is not used": {files{
			"a.rego": "package policy\n\ndecision := \"allow\" if effect != 1\n\neffect := \"allow\" if input.call.arguments.a\n\neffect := \"deny\" if input.call.arguments.b\n",
		}, []string{"bundle/a.rego:5", "bundle/a.rego:7"}},
		"of a function": {files{
			"a.rego": "package policy\n\ndecision := f(1)\n\nf(_) := \"allow\" if input.call.arguments.a\n\nf(_) := \"deny\" if input.call.arguments.b\n",
		}, []string{"bundle/a.rego:5", "bundle/a.rego:7"}},
		"of an object in parts": {files{
			"a.rego": "package policy\n\ndecision := parts\n\nparts[x] := 1 if {\n\tinput.call.arguments.a\n\tsome x in [\"effect\"]\n}\n\nparts[x] := 2 if {\n\tinput.call.arguments.b\n\tsome x in [\"effect\"]\n}\n",
		}, []string{"bundle/a.rego:5", "bundle/a.rego:10"}},
		"of an object made in place": {files{
			"a.rego": "package policy\n\ndecision := {x: y |\n\tsome x in [\"effect\"]\n\tsome y in [\"allow\", \"deny\"]\n}\n",
		}, []string{"bundle/a.rego:3"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := load(t, c.files)
			require.NoError(t, err)
			e := policyError(t, p, both)
			assert.Equal(t, "policy_conflict", e.Code)
			assert.NotContains(t, e.Detail, "\n")
			for _, want := range c.want {
				assert.Contains(t, e.Detail, want)
			}
		})
	}
}

func TestTwoEqualValuesAreOne(t *testing.T) {
	p := regoPolicy(t, "decision := {\"effect\": \"deny\"} if input.call.arguments.a\n\ndecision := {\"effect\": \"deny\"} if input.call.arguments.b\n")
	raw, err := p.Decide(t.Context(), ijson.Raw(withArguments(`{"a": true, "b": true}`)))
	require.NoError(t, err)
	assert.Equal(t, `{"effect":"deny"}`, string(raw))
}

// Without strict errors a failing built-in is undefined, and the rule that it guards silently does not hold.
func TestBuiltinErrorFailsTheDecision(t *testing.T) {
	for name, rules := range map[string]string{
		"a denial that cannot be judged": "decision := \"deny\" if to_number(input.call.arguments.x) > 3\n\nelse := \"allow\"\n",
		"a negated condition":            "decision := \"allow\" if not to_number(input.call.arguments.x) > 3\n",
		"division by zero":               "decision := \"deny\" if 1 / input.call.arguments.zero > 1\n\nelse := \"allow\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			e := policyError(t, regoPolicy(t, rules), withArguments(`{"x": "four", "zero": 0}`))
			assert.Equal(t, "policy_failed", e.Code)
			assert.Contains(t, e.Detail, "bundle/decision.rego:3")
		})
	}
}

const slow = "decision := count([1 | some x in numbers.range(1, 100000); some y in numbers.range(1, 100000); x == y])\n"

func TestTimeout(t *testing.T) {
	p := regoPolicy(t, slow, func(o *Options) { o.Timeout = 50 * time.Millisecond })
	began := time.Now()
	e := policyError(t, p, `{}`)
	assert.Equal(t, "policy_timeout", e.Code)
	assert.Contains(t, e.Detail, "50ms")
	assert.Less(t, time.Since(began), 5*time.Second)
	assert.Equal(t, DefaultTimeout, regoPolicy(t, allow).timeout)
}

func TestContextEnds(t *testing.T) {
	p := regoPolicy(t, slow, func(o *Options) { o.Timeout = time.Minute })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := p.Decide(ctx, ijson.Raw(`{}`))
	assert.Equal(t, context.DeadlineExceeded, err)
	assert.Less(t, time.Since(began), 5*time.Second)

	ended, end := context.WithCancel(t.Context())
	end()
	_, err = regoPolicy(t, allow).Decide(ended, ijson.Raw(`{}`))
	assert.Equal(t, context.Canceled, err)
}

func TestValuesThatAreNoAnswer(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"an integer that no double holds": {"9007199254740993", "policy_malformed"},
		"beyond the range of a double":    {"1e400", "policy_malformed"},
		"a name that is no string":        {`{1: "x"}`, "policy_malformed"},
		"a name that is an array":         {`{["x"]: 1}`, "policy_malformed"},
		"nested":                          {`{"a": [{2: 3}]}`, "policy_malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := regoPolicy(t, "decision := "+c.value+"\n")
			assert.Equal(t, c.want, policyError(t, p, `{}`).Code)
		})
	}
}

func TestValuesBecomeCanonical(t *testing.T) {
	for value, want := range map[string]string{
		`{"b": [1, 1.50, true, null], "a": "<é\u0000>"}`: `{"a":"<é\u0000>","b":[1,1.5,true,null]}`,
		`{"set": {3, 1, 2}}`:                             `{"set":[1,2,3]}`,
		`false`:                                          `false`,
		`null`:                                           `null`,
		`[]`:                                             `[]`,
		`{}`:                                             `{}`,
		`set()`:                                          `[]`,
		`1e3`:                                            `1000`,
	} {
		t.Run(value, func(t *testing.T) {
			raw, err := regoPolicy(t, "decision := "+value+"\n").Decide(t.Context(), ijson.Raw(`{}`))
			require.NoError(t, err)
			assert.Equal(t, want, string(raw))
		})
	}
}

func TestInputThatIsNoJSON(t *testing.T) {
	e := policyError(t, regoPolicy(t, allow), `{`)
	assert.Equal(t, "policy_failed", e.Code)
}

// Rego can name the machine's zone, by "Local" or by one of its abbreviations. One recorded input has one answer all the
// same, wherever it is judged. The zone is read once in a process, so each is another.
func TestTheMachinesZoneDecidesNothing(t *testing.T) {
	const rules = `decision := [
	time.clock([input.call.arguments.ns, "Local"]),
	time.date([input.call.arguments.ns, "Local"]),
	time.weekday([input.call.arguments.ns, "Local"]),
	time.diff([input.call.arguments.ns, "Local"], [0, "Local"]),
	time.format([input.call.arguments.ns, "Local", "RFC3339"]),
	time.parse_ns("2006-01-02 15:04 MST", input.call.arguments.text),
]
`
	if os.Getenv("TEST_ZONE_CHILD") != "" {
		raw, err := regoPolicy(t, rules).Decide(t.Context(), ijson.Raw(withArguments(`{"ns": 1772377200000000000, "text": "2026-03-01 12:00 JST"}`)))
		require.NoError(t, err)
		fmt.Printf("answer %s\n", raw)
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for _, zone := range []string{"", "UTC", "Asia/Tokyo", "America/St_Johns", "/usr/share/zoneinfo/Pacific/Auckland"} {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "TEST_ZONE_CHILD=1", "TZ="+zone)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Contains(t, string(out), "answer [[15,0,0],[2026,3,1],\"Sunday\","+
			"[56,2,0,15,0,0],\"2026-03-01T15:00:00Z\",1772366400000000000]\n", "TZ=%s", zone)
	}
}

// Built-ins that misbehave as one of OPA's own might: one panics, and one takes no notice of the end of its time.
var _ = func() bool {
	stuck := func(_ topdown.BuiltinContext, _ []*ast.Term, yield func(*ast.Term) error) error {
		<-unstick
		return yield(ast.InternedBooleanTrue)
	}
	faulty := func(topdown.BuiltinContext, []*ast.Term, func(*ast.Term) error) error { panic("out of order") }
	for name, f := range map[string]topdown.BuiltinFunc{"test.stuck": stuck, "test.faulty": faulty} {
		ast.RegisterBuiltin(&ast.Builtin{Name: name, Decl: types.NewFunction(types.Args(types.N), types.A)})
		topdown.RegisterBuiltinFunc(name, f)
	}
	return true
}()

// unstick lets every test.stuck end.
var unstick chan struct{}

// A built-in that panics, as one of OPA's own might.
func TestPanicIsADenial(t *testing.T) {
	p := regoPolicy(t, "decision := test.faulty(1)\n")
	e := policyError(t, p, `{}`)
	assert.Equal(t, "policy_failed", e.Code)
	assert.Contains(t, e.Detail, "out of order")
}

// Each call has its own input, cancellation and answer.
func TestConcurrentDecisions(t *testing.T) {
	p := regoPolicy(t, "decision := {\"n\": input.call.arguments.n, \"version\": data.govern.version}\n")
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 50 {
				raw, err := p.Decide(t.Context(), ijson.Raw(withArguments(fmt.Sprintf(`{"n": %d}`, n))))
				assert.NoError(t, err)
				assert.True(t, strings.HasPrefix(string(raw), fmt.Sprintf(`{"n":%d,`, n)), "%s", raw)
			}
		})
	}
	wg.Wait()
}
