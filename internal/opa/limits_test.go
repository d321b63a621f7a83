package opa

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func allows(t *testing.T, p *Policy) {
	t.Helper()
	raw, err := p.Decide(context.Background(), ijson.Raw(`{}`))
	require.NoError(t, err)
	assert.Contains(t, string(raw), "allow")
}

func inTime(d time.Duration) func(*Options) { return func(o *Options) { o.Timeout = d } }

// A built-in that takes no notice of the time is left behind, and few of them are: then no other is begun that might
// stay. What needs none is decided all the while.
func TestB012BuiltinsThatNeverEnd(t *testing.T) {
	unstick = make(chan struct{})
	stuck := regoPolicy(t, "decision := test.stuck(1)\n", inTime(20*time.Millisecond))
	unharmed := regoPolicy(t, allow, inTime(time.Minute))
	var wg sync.WaitGroup
	for range mostLeft {
		wg.Go(func() { assert.Equal(t, "policy_timeout", policyError(t, stuck, `{}`).Code) })
	}
	wg.Wait()
	assert.EqualValues(t, mostLeft, left.Load())
	allows(t, unharmed)

	patient := regoPolicy(t, "decision := test.stuck(1)\n", inTime(time.Hour))
	e := policyError(t, patient, `{}`)
	assert.Equal(t, "policy_timeout", e.Code)
	assert.Contains(t, e.Detail, "32 calls of built-ins did not end in time and still run")

	close(unstick)
	for left.Load() > 0 {
		runtime.Gosched()
	}
	raw, err := patient.Decide(t.Context(), ijson.Raw(`{}`))
	require.NoError(t, err)
	assert.Equal(t, "true", string(raw))
}

// Who gives up waiting is answered, and what was begun for it is left behind as well.
func TestStuckBuiltinAndItsContext(t *testing.T) {
	unstick = make(chan struct{})
	p := regoPolicy(t, "decision := test.stuck(1)\n", inTime(time.Hour))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := p.Decide(ctx, ijson.Raw(`{}`))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.EqualValues(t, 1, left.Load())
	close(unstick)
	for left.Load() > 0 {
		runtime.Gosched()
	}
}

// A hundred rules that run for ever, at once: each is denied, none goes on, and a call that they do not concern is decided
// meanwhile.
func TestB012RunawayRulesAtOnce(t *testing.T) {
	for name, rules := range map[string]string{
		"a search": slow,
		"a text":   "decision := concat(\"\", [x | some i in numbers.range(1, 100000); x := sprintf(\"%d%d\", [i, i])])\n_x := decision\n",
		"a list":   "decision := count(numbers.range(1, 1000000000000))\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := regoPolicy(t, rules, inTime(20*time.Millisecond))
			unharmed := regoPolicy(t, allow, inTime(time.Minute))
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() { assert.Equal(t, "policy_timeout", policyError(t, p, `{}`).Code) })
			}
			for range 10 {
				allows(t, unharmed)
			}
			wg.Wait()
			assert.Zero(t, left.Load())
		})
	}
}

// A rule that fills the memory is stopped before its time.
func TestRuleThatFillsTheMemory(t *testing.T) {
	runtime.GC() // what the tests before it left is not what it starts from
	before := mostMemory
	mostMemory = 16 << 20
	defer func() { mostMemory = before }()
	// It goes on until the collector has run, which is the later the more the other tests keep.
	p := regoPolicy(t, "decision := count([s | some i in numbers.range(1, 100000); some _ in numbers.range(1, 100000); s := sprintf(\"%02000d\", [i])])\n", inTime(time.Hour))
	e := policyError(t, p, `{}`)
	assert.Equal(t, "policy_failed", e.Code)
	assert.Contains(t, e.Detail, "it took more than 16 MiB of memory")
	allows(t, regoPolicy(t, allow))
}

// A panic of OPA itself, outside a built-in that has a goroutine of its own.
func TestPanicOfTheEvaluation(t *testing.T) {
	p := regoPolicy(t, allow)
	p.decision = &question{rule: entrypoint, body: ast.Body{nil}}
	e := policyError(t, p, `{}`)
	assert.Equal(t, "policy_failed", e.Code)
	assert.Contains(t, e.Detail, "panic: ")
}

// An answer that comes too late is none, though nothing stopped it.
func TestAnswerThatComesTooLate(t *testing.T) {
	assert.Equal(t, "policy_timeout", policyError(t, regoPolicy(t, allow, inTime(time.Nanosecond)), `{}`).Code)
}

// Which built-ins run where the evaluation does, by their operands.
func TestBuiltinsThatEndSoon(t *testing.T) {
	for _, name := range append(append([]string{}, linear...), soonIfSmall...) {
		assert.NotNil(t, topdown.GetBuiltin(name), name)
	}
	long := string(make([]byte, 5000))
	for name, c := range map[string]struct {
		operand ast.Value
		small   bool
	}{
		"a word":             {ast.String("word"), true},
		"a long text":        {ast.String(long), false},
		"one in a list":      {ast.NewArray(ast.StringTerm(long)), false},
		"one in a set":       {ast.NewSet(ast.StringTerm(long)), false},
		"one in an object":   {ast.NewObject(ast.Item(ast.StringTerm("a"), ast.StringTerm(long))), false},
		"as a name":          {ast.NewObject(ast.Item(ast.StringTerm(long), ast.StringTerm("a"))), false},
		"a long number":      {ast.Number(long), false},
		"a huge number":      {ast.Number("1e+9000"), false},
		"a tiny number":      {ast.Number("1E-9000"), false},
		"a tinier number":    {ast.Number("1e-99999999999999999999"), false},
		"a call's number":    {ast.Number("2.5e-308"), true},
		"many small ones":    {ast.NewArray(make1(5000)...), false},
		"some small ones":    {ast.NewArray(make1(100)...), true},
		"nothing in nothing": {ast.NewArray(ast.NewTerm(ast.NewObject())), true},
	} {
		assert.Equal(t, c.small, small([]*ast.Term{ast.IntNumberTerm(1), ast.NewTerm(c.operand)}), name)
	}
	assert.False(t, counted(ast.String("^a{1,9}$")))
	assert.True(t, counted(ast.String("(a{1000}){1000}"+long)))
}

func make1(n int) []*ast.Term {
	terms := make([]*ast.Term, n)
	for i := range terms {
		terms[i] = ast.IntNumberTerm(1)
	}
	return terms
}

// A format of a few bytes makes no text of a terabyte.
func TestWidthsInAFormat(t *testing.T) {
	for format, want := range map[string]int{
		"": 0, "%d%%": 0, "%5d": 5, "%-05.2f|%3s": 10, "100 % 7": 7, "%999999999999999999999d": maxWidth, "%*d": 1_000_000, "%[1]*[2]d": 1_000_003,
		"%2000000d": maxWidth,
	} {
		assert.Equal(t, want, width(format), format)
	}
	p := regoPolicy(t, "decision := count(sprintf(input.call.arguments.f, [1, 2, 3, 4, 5]))\n")
	raw, err := p.Decide(t.Context(), ijson.Raw(withArguments(`{"f": "%1000d%d%d%d%d"}`)))
	require.NoError(t, err)
	assert.Equal(t, "1004", string(raw))
	e := policyError(t, p, withArguments(`{"f": "%900000d%900000d%d%d%d"}`))
	assert.Equal(t, "policy_failed", e.Code)
	assert.Contains(t, e.Detail, "widths")
}
