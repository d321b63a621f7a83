package opa

import (
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestRego(t *testing.T) {
	results, err := Test(t.Context(), shippedSource(t))
	require.NoError(t, err)
	require.Greater(t, len(results), 40)
	for _, r := range results {
		t.Run(r.Name, func(t *testing.T) {
			assert.False(t, r.Skipped)
			assert.True(t, r.Passed, "%s\n%s", r.Location, r.Output)
		})
	}
}

func TestRegoIsFormatted(t *testing.T) {
	s := shippedSource(t)
	for _, f := range append(s.modules, s.tests...) {
		formatted, err := format.Source(f.path, []byte(f.text))
		require.NoError(t, err)
		assert.Equal(t, string(formatted), f.text, "run: opa fmt --write policy")
	}
}

// Strict compilation also refuses unused variables and imports in the tests.
func TestRegoTestsCompileStrictly(t *testing.T) {
	s := shippedSource(t)
	modules, err := parse(append(s.modules, s.tests...))
	require.NoError(t, err)
	c := newCompiler()
	c.Compile(modules)
	assert.Empty(t, c.Errors)
}

// Whoever looks up a code of an answer must find one rule that says what it means, and helpers must look like helpers.
func TestPublicRulesHaveMetadata(t *testing.T) {
	modules, err := parse(shippedSource(t).modules)
	require.NoError(t, err)
	var all []*ast.Module
	for _, m := range modules {
		all = append(all, m)
	}
	notes, errs := ast.BuildAnnotationSet(all)
	require.Empty(t, errs)
	public := 0
	for _, m := range all {
		for _, rule := range m.Rules {
			name := rule.Head.Ref()[0].Value.String()
			if strings.HasPrefix(name, "_") {
				continue
			}
			public++
			if name == "gate" {
				assert.NotNil(t, notes.GetRuleScope(rule), "gate has no METADATA")
				continue
			}
			if name == "decision" {
				d := notes.GetDocumentScope(rule.Ref())
				if assert.NotNil(t, d, "decision has no METADATA") {
					assert.True(t, d.Entrypoint)
					assert.NotEmpty(t, d.Description)
				}
				continue
			}
			own := notes.GetRuleScope(rule)
			if !assert.Len(t, own, 1, "%s: %s needs METADATA, or an underscore in front", place(rule.Location), name) {
				continue
			}
			assert.NotEmpty(t, own[0].Title, name)
			assert.NotEmpty(t, own[0].Description, name)
			assert.Equal(t, name, own[0].Custom["code"], "a rule is named by its code")
		}
	}
	assert.Equal(t, 29, public, "decision, its outcomes, and the gate")
}

func TestShippedOutcomes(t *testing.T) {
	got := map[string]Outcome{}
	for _, o := range shipped(t).Outcomes() {
		got[o.Code] = o
		assert.NotContains(t, o.Message, "\n", o.Code)
		assert.LessOrEqual(t, len(o.Message), 80, "%s: messages are short", o.Code)
		assert.Equal(t, o.Code == "in_progress", o.Retryable, o.Code)
	}
	want := map[string]dispatch.Effect{
		"ok": dispatch.Allow, "replayed": dispatch.Replay, "approval_required": dispatch.RequireApproval,
		"dry_run": dispatch.Simulate, "resumed": dispatch.Resume,
	}
	for _, code := range []string{"cancelled", "deadline_exceeded", "budget_exhausted", "budget_spent", "invalid_proposal", "tool_denied",
		"invalid_arguments", "scope_denied", "resource_denied", "idempotency_conflict", "in_progress", "outcome_unknown",
		"approval_rejected", "approval_expired", "pending_limit", "invalid_state", "target_exists", "no_rule_matched",
		"policy_malformed", "forbidden", "denied", "approval_impossible"} {
		want[code] = dispatch.Deny
	}
	assert.Len(t, got, len(want))
	for code, effect := range want {
		assert.Equal(t, effect, got[code].Effect, code)
	}
	assert.Equal(t, dispatch.Status("invalid_state"), got["no_rule_matched"].Status)
	assert.Equal(t, dispatch.StatusBudgetExhausted, got["budget_spent"].Status)
	assert.Equal(t, dispatch.Status("invalid_state"), got["approval_impossible"].Status)
	assert.Equal(t, dispatch.StatusPolicyError, got["policy_malformed"].Status)
	assert.Contains(t, got["ok"].Place, "decision.rego:")
}

// The allowed case is tried first for speed. That is right only if it holds nowhere that another row holds, whatever the
// layers say.
func TestAllowedFirstChangesNoAnswer(t *testing.T) {
	member := map[string]any{"code": "closed", "message": "closed at night", "status": "outside_window"}
	for name, c := range map[string]struct {
		layers  map[string]any
		allowed bool
	}{
		"no layer": {nil, true}, "empty": {site("deny"), true}, "forbid": {site("forbid", member), false}, "deny": {site("deny", member), false},
		"ask":       {site("require_approval", map[string]any{"code": "eyes", "message": "look"}), true},
		"malformed": {site("require_approval", member), false},
	} {
		t.Run(name, func(t *testing.T) { allowedFirst(t, c.layers, c.allowed) })
	}
}

func allowedFirst(t *testing.T, layers map[string]any, allowed bool) {
	s := under(shippedSource(t), layers)
	first, err := New(t.Context(), Options{Source: s, Profiles: labProfiles})
	require.NoError(t, err)
	s.modules = slices.Clone(s.modules)
	patched := false
	for i, f := range s.modules {
		text := strings.Replace(f.text, "decision := ok if {\n", "decision := ok if {\n\tinput.task.id == \"never\"\n", 1)
		patched = patched || text != f.text
		s.modules[i].text = text
	}
	require.True(t, patched)
	without, err := New(t.Context(), Options{Source: s, Profiles: labProfiles})
	require.NoError(t, err)
	seen := map[dispatch.Status]int{}
	rapid.Check(t, func(t *rapid.T) {
		input := anyInput(t)
		a, err := first.Decide(t.Context(), input)
		require.NoError(t, err)
		b, err := without.Decide(t.Context(), input)
		require.NoError(t, err)
		var x, y dispatch.Decision
		require.NoError(t, ijson.Unmarshal(a, &x))
		require.NoError(t, ijson.Unmarshal(b, &y))
		seen[x.Status]++
		y.PolicyVersion = x.PolicyVersion
		if x.Status == dispatch.StatusOK {
			require.Equal(t, "no_rule_matched", y.Reasons[0].Code, "allowed, and row %s holds: %s", y.Status, input)
			return
		}
		require.Equal(t, y, x)
	})
	assert.Equal(t, allowed, seen[dispatch.StatusOK] > 0, "%v", seen)
}

// anyInput is one that Go could build, with a share of those that are as they should be.
func anyInput(t *rapid.T) ijson.Raw {
	pick := func(label string, usual any, others ...any) any {
		if rapid.IntRange(0, 7).Draw(t, label+" is usual") > 0 {
			return usual
		}
		return rapid.SampledFrom(append(others, usual)).Draw(t, label)
	}
	moment := func(epoch int) map[string]any { return map[string]any{"rfc3339": "", "epoch": epoch} }
	vote := func(reviewer, decision string) any {
		return map[string]any{"reviewer": reviewer, "decision": decision, "time": ""}
	}
	name := rapid.SampledFrom([]string{"read_document", "record_draft"}).Draw(t, "tool")
	tool := map[string]any{"name": name, "version": "1", "effect": "read", "outside": pick("outside", false, true), "approval": "by_rule", "scopes": []string{}, "cost": 5, "resource": ""}
	if name == "record_draft" {
		tool["effect"], tool["approval"] = "write", pick("asked", "always", "by_rule")
	}
	approval := any(nil)
	if rapid.Bool().Draw(t, "asked before") {
		approval = map[string]any{
			"state":           pick("approval", "approved", "pending", "rejected", "consumed", "expired", "withdrawn"),
			"votes":           pick("votes", []any{vote("ann", "approved")}, []any{}, []any{vote("ann", "rejected")}),
			"expires_at_step": pick("last step", 5, 4, 6), "expires_at": moment(pick("last second", 100, 99, 101).(int)),
			"policy_version": "", "mode": "enforce"}
	}
	operation := func(state string, same, result bool) any {
		return map[string]any{"state": state, "same_signature": same, "has_result": result, "repeatable": rapid.Bool().Draw(t, "repeatable")}
	}
	budget := func(limit, spent, reserved int) any {
		return map[string]any{"limit": limit, "spent": spent, "reserved": reserved}
	}
	input := map[string]any{
		"now": moment(100), "mode": pick("mode", "enforce", "dry_run"),
		"task": map[string]any{"tenant": "", "id": "", "actor": "learner", "profile": pick("profile", "lab", "gone"),
			"scopes": map[string]any{}},
		"call": map[string]any{"id": "", "tool": pick("called", name, "send_email"), "arguments": map[string]any{},
			"target": pick("target", "/warehouse/labels.txt", "/restricted/planning.txt", nil), "keyed": rapid.Bool().Draw(t, "keyed"),
			"signature": "00", "malformed": pick("malformed", nil, "not JSON"),
			"violations": pick("violations", []any{}, []any{map[string]any{"path": "", "message": "no"}})},
		"tool": pick("registered", tool, nil),
		"state": map[string]any{"step": 5, "max_steps": pick("max_steps", 20, 5, 4), "cancelled": pick("cancelled", false, true),
			"deadline": pick("deadline", nil, moment(100), moment(101)), "approval": approval,
			"budgets": pick("budgets", map[string]any{}, map[string]any{"cost": budget(10, 3, 2)}, map[string]any{"cost": budget(10, 3, 3)},
				map[string]any{"attempts": budget(3, 3, 0), "output": budget(9, 8, 1)}),
			"operation": pick("operation", nil, operation("committed", true, true), operation("committed", false, true),
				operation("committed", true, false), operation("started", true, false), operation("unknown", false, false),
				operation("unknown", true, false), operation("absent", true, false), operation("absent", false, false)),
			"unsettled": pick("unsettled", nil, "started", "unknown"), "write_started": pick("another write", false, true),
			"pending":       map[string]any{"count": pick("waiting", 0, 9, 10), "limit": 10},
			"target_exists": pick("target exists", false, true)},
	}
	raw, err := ijson.Marshal(input)
	require.NoError(t, err)
	return raw
}
