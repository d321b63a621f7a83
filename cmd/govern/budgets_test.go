package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/snapshot"
	"github.com/policy-dispatch/govern/internal/tools"
)

// budgets gives the shipped profile these budgets, and steps enough.
func budgets(b config.Budgets) edit {
	return func(c *config.Config) {
		budget(100)(c)
		p := c.Profiles["warehouse"]
		p.Budgets = b
		c.Profiles["warehouse"] = p
	}
}

func costing(n int64) func(*dispatch.Definition) {
	return func(d *dispatch.Definition) { d.Cost = n }
}

func (l *lab) spent() dispatch.Spent {
	l.t.Helper()
	t, err := l.store.Task(l.t.Context(), l.key())
	require.NoError(l.t, err)
	return t.Spent
}

func spentOf(budget string) []dispatch.Reason {
	return []dispatch.Reason{{Code: "budget_spent", Message: "what is left of the task's budget is not enough for this call: " + budget}}
}

// What a run costs is counted until the next would take too much; then the answer names the budget, and each task has
// its own.
func TestBudgetOfCost(t *testing.T) {
	l := newLab(t, budgets(config.Budgets{Cost: ptr(int64(12))}))
	l.redefine("calculate", costing(5))
	for range 2 {
		require.Equal(t, dispatch.StatusOK, l.propose(add("m1")).Status)
	}
	r := l.propose(add("m1"))
	assert.Equal(t, dispatch.StatusBudgetExhausted, r.Status)
	assert.Equal(t, spentOf("cost"), r.Reasons)
	assert.Equal(t, dispatch.Spent{Cost: 10, Attempts: 2, Output: 2}, l.spent(), "a denial takes nothing")
	assert.Equal(t, dispatch.StatusOK, l.propose(read("r1", "/warehouse/labels.txt")).Status, "what costs nothing still runs")

	l.create("labels-2", l.who.Actor)
	l.task = "labels-2"
	assert.Equal(t, dispatch.StatusOK, l.propose(add("m1")).Status)
}

// The limits that the configuration states are those that hold.
func TestConfiguredLimits(t *testing.T) {
	l := newLab(t, func(c *config.Config) { c.Limits.ProposalBytes = ptr(config.LeastProposalBytes) })
	assert.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status)
	assert.Equal(t, dispatch.StatusInvalidProposal, l.propose(draft("d1", "body", strings.Repeat("x", config.LeastProposalBytes))).Status)

	policy := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(policy, "slow.rego"), []byte("package policy\n\n"+
		"decision := {} if {\n\tsome i in numbers.range(1, 100000)\n\tsome j in numbers.range(1, 100000)\n\ti + j < 0\n}\n"), 0o600))
	l = newLab(t, func(c *config.Config) { c.Policy, c.Limits.DecisionTime = []string{policy}, "20ms" })
	require.Equal(t, dispatch.StatusPolicyError, l.propose(add("m1")).Status)
	var e dispatch.DecisionEntry
	entries := l.entries()
	require.NoError(t, ijson.Unmarshal(entries[len(entries)-1].Body, &e))
	assert.Equal(t, "policy_timeout: data.policy.decision took longer than 20ms", e.Detail)
}

// A new task has spent nothing, whatever it is made from.
func TestNewTaskHasSpentNothing(t *testing.T) {
	l := newLab(t)
	old, err := l.store.Task(t.Context(), l.key())
	require.NoError(t, err)
	old.ID, old.Steps, old.Spent, old.Cancelled = "labels-2", 7, dispatch.Spent{Cost: -5, Attempts: 3, Output: 1}, true
	require.NoError(t, l.dispatcher.CreateTask(t.Context(), old, "test"))
	l.task = "labels-2"
	fresh, err := l.store.Task(t.Context(), l.key())
	require.NoError(t, err)
	assert.Zero(t, fresh.Spent)
	assert.Zero(t, fresh.Steps)
	assert.False(t, fresh.Cancelled)
}

// A cost is a limit only where there is a budget for it.
func TestCostWithoutABudget(t *testing.T) {
	l := newLab(t, budget(100))
	l.redefine("calculate", costing(1_000_000))
	for range 5 {
		require.Equal(t, dispatch.StatusOK, l.propose(add("m1")).Status)
	}
	assert.EqualValues(t, 5_000_000, l.spent().Cost, "it is counted, for the budget that may come")
}

// An attempt is spent whatever comes of it, and a known result is told without one.
func TestBudgetOfAttempts(t *testing.T) {
	l := newLab(t, budgets(config.Budgets{Attempts: ptr(int64(3))}))
	failing := *l.snapshot
	failing.Tools = tools.WithFaults(l.tools, &tools.Faults{ReadFailures: 1})
	l.dispatcher.Use(&failing)
	require.Equal(t, dispatch.StatusTimeout, l.propose(read("r1", "/warehouse/labels.txt")).Status)
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status)
	require.NoError(t, l.review(draft("d1"), "approved"))
	require.Equal(t, dispatch.StatusOK, l.propose(draft("d1")).Status)
	require.Equal(t, dispatch.StatusReplayed, l.propose(draft("d1")).Status)
	require.Equal(t, dispatch.StatusOK, l.propose(add("m1")).Status)
	assert.EqualValues(t, 3, l.spent().Attempts)

	assert.Equal(t, spentOf("attempts"), l.propose(add("m1")).Reasons)
	assert.Equal(t, dispatch.StatusReplayed, l.propose(draft("d1")).Status)
	r := l.propose(draft("d2", "idempotency_key", "draft-2", "draft_id", "other-note"))
	assert.Equal(t, dispatch.StatusBudgetExhausted, r.Status, "nobody is asked for what could not run")
	approvals, err := l.store.Approvals(t.Context(), l.who.Tenant, "", dispatch.Pending)
	require.NoError(t, err)
	assert.Empty(t, approvals)
}

// What a run gives is known only afterwards: the one that passes the budget is told, and nothing after it runs.
func TestBudgetOfOutput(t *testing.T) {
	l := newLab(t, budgets(config.Budgets{Output: ptr(int64(3))}))
	for range 2 { // each gives one digit
		require.Equal(t, dispatch.StatusOK, l.propose(add("m1")).Status)
	}
	long := l.propose(read("r1", "/warehouse/labels.txt"))
	require.Equal(t, dispatch.StatusOK, long.Status)
	assert.EqualValues(t, 2+len(long.Value), l.spent().Output)
	assert.Equal(t, spentOf("output"), l.propose(add("m1")).Reasons)
}

// Two calls at once do not both spend what is left for one.
func TestTwoCallsForTheLastAttempt(t *testing.T) {
	l := newLab(t, budgets(config.Budgets{Attempts: ptr(int64(1))}))
	beside := dispatch.New(noHold{l.store}, l.store.Key(), l.clock, l.snapshot)
	once := true
	l.through(func(real func() error) error {
		if once {
			once = false
			r, err := beside.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{Door: "test"}, []byte(add("m2")))
			require.NoError(t, err)
			require.Equal(t, dispatch.StatusOK, r.Status)
		}
		return real()
	})
	assert.Equal(t, dispatch.StatusBudgetExhausted, l.propose(add("m1")).Status)
	assert.EqualValues(t, 1, l.spent().Attempts)
}

// A write that is guarded reaches only the targets of the writable sets that its profile names.
func TestWritableTargets(t *testing.T) {
	l := newLab(t)
	l.redefine("record_draft", func(d *dispatch.Definition) { d.Resource = "writable" })
	assert.Equal(t, dispatch.StatusResourceDenied, l.propose(draft("d1")).Status)

	c := l.config
	p := c.Profiles["warehouse"]
	p.Writable = []string{"drafts"}
	c.Profiles = map[string]config.Profile{"warehouse": p}
	source, err := l.source.WithData("more.json", []byte(`{"writable": {"drafts": {"labels-note": true}}}`))
	require.NoError(t, err)
	_, made, err := snapshot.Compile(t.Context(), c, source, l.snapshot.Tools)
	require.NoError(t, err)
	l.dispatcher.Use(made)
	assert.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status)
	assert.Equal(t, dispatch.StatusResourceDenied, l.propose(draft("d1", "draft_id", "other-note")).Status)
}
