package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/tools"
)

// budget gives the shipped profile another budget.
func budget(n int) edit {
	return func(c *config.Config) {
		p := c.Profiles["warehouse"]
		p.MaxSteps, p.MaxPending = n, ptr(n)
		c.Profiles["warehouse"] = p
	}
}

// An unknown task and a foreign actor get one answer, and neither a step nor an entry.
func TestNotJudged(t *testing.T) {
	l := newLab(t)
	before := len(l.entries())
	for name, try := range map[string]struct {
		who  dispatch.Principal
		task string
	}{
		"unknown task":   {l.who, "labels-9"},
		"foreign actor":  {dispatch.Principal{Tenant: l.who.Tenant, Actor: "mallory"}, l.task},
		"foreign tenant": {dispatch.Principal{Tenant: "elsewhere", Actor: l.who.Actor}, l.task},
		"no actor":       {dispatch.Principal{Tenant: l.who.Tenant}, l.task},
	} {
		for _, proposal := range []string{add("m1"), "no JSON"} {
			_, err := l.dispatcher.Dispatch(t.Context(), try.who, try.task, dispatch.Origin{}, []byte(proposal))
			require.ErrorIs(t, err, dispatch.ErrUnknownTask, name)
			require.EqualError(t, err, dispatch.ErrUnknownTask.Error(), name)
		}
	}
	assert.Len(t, l.entries(), before)
	assert.Zero(t, l.steps())
}

// B039: an approval covers one exact call. Key order is no difference; everything else is, and leaves the
// approval unused.
func TestB039ApprovalCoversTheExactCall(t *testing.T) {
	const approved = `{"call_id":"d1","tool":"record_draft","arguments":{"draft_id":"labels-note","purpose":"inventory-summary","body":"There are 84 labels.","idempotency_key":"draft-1"}}`
	for _, row := range []struct {
		name, proposal string
		want           dispatch.Status
	}{
		{"one space more in a string", strings.Replace(approved, "84 labels", "84  labels", 1), dispatch.StatusApprovalRequired},
		{"an escape for the same text", strings.Replace(approved, "There", `\u0054here`, 1), dispatch.StatusOK},
		{"key order", `{"arguments":{"purpose":"inventory-summary","body":"There are 84 labels.","idempotency_key":"draft-1","draft_id":"labels-note"},"tool":"record_draft","call_id":"d1"}`, dispatch.StatusOK},
		{"white space between", strings.ReplaceAll(approved, ":", " :\t"), dispatch.StatusOK},
		{"an extra null", strings.Replace(approved, `"purpose"`, `"note":null,"purpose"`, 1), dispatch.StatusInvalidArguments},
		{"a forged approval", strings.Replace(approved, `"purpose"`, `"approved":true,"purpose"`, 1), dispatch.StatusInvalidArguments},
		{"composed and decomposed are two texts", strings.Replace(approved, "There", "Thére", 1), dispatch.StatusApprovalRequired},
		{"another call id", strings.Replace(approved, "d1", "d2", 1), dispatch.StatusOK},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			l.propose(approved)
			require.NoError(t, l.review(approved, "approved"))
			require.Equal(t, row.want, l.propose(row.proposal).Status)
			if row.want == dispatch.StatusOK {
				return
			}
			assert.Empty(t, l.drafts())
			assert.Equal(t, dispatch.StatusOK, l.propose(approved).Status, "the approval is still good for its own call")
		})
	}
}

// B039, the tool's version: an approval for another definition of the tool counts as none, and is withdrawn
// with its votes when the call is proposed.
func TestB039AnotherDefinition(t *testing.T) {
	l := newLab(t)
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))

	l.redefineTools()
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status)
	assert.Empty(t, l.drafts())

	l.dispatcher.Use(l.snapshot)
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status, "the old approval does not wake up again")
	states := []dispatch.ApprovalState{}
	list, err := l.store.Approvals(t.Context(), l.who.Tenant, "")
	require.NoError(t, err)
	for _, a := range list {
		states = append(states, a.State)
	}
	assert.Equal(t, []dispatch.ApprovalState{dispatch.Withdrawn, dispatch.Withdrawn, dispatch.Pending}, states)
}

// An approval serves one definition. A run under another one, even one that asks nobody, leaves none to come back to.
func TestB039ADefinitionThatComesBack(t *testing.T) {
	asking := func(d *dispatch.Definition) { d.Approval = dispatch.Always }
	l := newLab(t)
	shipped := l.snapshot
	define := func(change func(*dispatch.Definition)) {
		l.snapshot = shipped
		l.redefine("read_document", change)
	}
	define(asking)
	call := read("r1", "/warehouse/labels.txt")
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(call).Status)
	require.NoError(t, l.review(call, "approved"))

	define(func(*dispatch.Definition) {})
	require.Equal(t, dispatch.StatusOK, l.propose(call).Status, "this definition asks nobody")
	define(asking)
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(call).Status)
	assert.Equal(t, 1, l.count(dispatch.KindAction))

	// Also where the other definition came to nothing.
	require.NoError(t, l.review(call, "approved"))
	define(func(d *dispatch.Definition) { d.Scopes = []string{"nobody has it"} })
	require.Equal(t, dispatch.StatusScopeDenied, l.propose(call).Status)
	define(asking)
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(call).Status)
}

// A call that waits under an old definition of its tool takes nobody's place, and cannot be approved or reopened: that
// could never be of use.
func TestB039WaitingUnderAnOldDefinition(t *testing.T) {
	l := newLab(t, func(c *config.Config) {
		p := c.Profiles["warehouse"]
		p.MaxPending = ptr(1)
		c.Profiles["warehouse"] = p
	})
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status)
	l.redefineTools()
	require.ErrorIs(t, l.review(draft("d1"), "approved"), dispatch.ErrDefinition)
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status, "it has its own place")
	require.NoError(t, l.review(draft("d1"), "approved"))
	require.Equal(t, dispatch.StatusOK, l.propose(draft("d1")).Status)

	other := draft("d2", "draft_id", "other", "idempotency_key", "draft-2")
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(other).Status)
	l.dispatcher.Use(l.snapshot)
	require.NoError(t, l.review(other, "rejected"), "to say no narrows")
	_, err := l.dispatcher.ReopenCall(t.Context(), l.who, l.task, dispatch.Enforce, []byte(other), "maya", "")
	require.ErrorIs(t, err, dispatch.ErrDefinition)
}

// redefineTools gives every tool another definition from here on.
func (l *lab) redefineTools() {
	changed := *l.snapshot
	changed.Tools = map[string]dispatch.Tool{}
	for name, tool := range l.snapshot.Tools {
		changed.Tools[name] = redefined{tool}
	}
	l.dispatcher.Use(&changed)
}

// redefined is a tool with another description.
type redefined struct{ dispatch.Tool }

func (r redefined) Definition() dispatch.Definition {
	d := r.Tool.Definition()
	d.Description += " Now better."
	return d
}

// B043: identical calls share one approval, and one approval is one run.
func TestB043IdenticalCallsShareOneApproval(t *testing.T) {
	l := newLab(t, budget(100))
	all := func() map[dispatch.Status]int {
		var mu sync.Mutex
		var wg sync.WaitGroup
		got := map[dispatch.Status]int{}
		for i := range 10 {
			wg.Go(func() {
				r := l.propose(draft(fmt.Sprintf("d%d", i)))
				mu.Lock()
				defer mu.Unlock()
				got[r.Status]++
			})
		}
		wg.Wait()
		return got
	}
	require.Equal(t, map[dispatch.Status]int{dispatch.StatusApprovalRequired: 10}, all())
	list, err := l.store.Approvals(t.Context(), l.who.Tenant, "")
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, l.review(draft("d0"), "approved", 10))
	require.Equal(t, map[dispatch.Status]int{dispatch.StatusOK: 1, dispatch.StatusReplayed: 9}, all())
	assert.Equal(t, 1, l.count(dispatch.KindAction))
	assert.Len(t, l.drafts(), 1)
}

// B057: A is done, B waits, C is done; approving B and going on again and again runs each once.
func TestB057ResumingRepeatsNothing(t *testing.T) {
	l := newLab(t, budget(100))
	key := func(k string) string { return draft("d-"+k, "idempotency_key", k, "draft_id", "note-"+k) }
	for _, k := range []string{"a", "c"} {
		l.propose(key(k))
		require.NoError(t, l.review(key(k), "approved"))
		require.Equal(t, dispatch.StatusOK, l.propose(key(k)).Status)
	}
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(key("b")).Status)
	require.NoError(t, l.review(key("b"), "approved", 10))
	for round := range 5 {
		for _, k := range []string{"a", "b", "c"} {
			want := dispatch.StatusReplayed
			if round == 0 && k == "b" {
				want = dispatch.StatusOK
			}
			r := l.propose(key(k))
			require.Equal(t, want, r.Status)
			require.JSONEq(t, `{"draft_id":"note-`+k+`"}`, string(r.Value))
		}
	}
	assert.Equal(t, 3, l.count(dispatch.KindAction))
}

// B060: one key, one intended effect.
func TestB060OneKeyOneEffect(t *testing.T) {
	l := newLab(t)
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	require.Equal(t, dispatch.StatusOK, l.propose(draft("d1")).Status)
	for name, other := range map[string]string{
		"another body":   draft("d2", "body", "There are 840 labels."),
		"another target": draft("d2", "draft_id", "other-note"),
	} {
		require.Equal(t, dispatch.StatusIdempotencyConflict, l.propose(other).Status, name)
	}
	r := l.propose(`{"tool":"record_draft","arguments":{"purpose":"inventory-summary","idempotency_key":"draft-1","draft_id":"labels-note","body":"There are 84 labels."},"call_id":"d4"}`)
	assert.Equal(t, dispatch.StatusReplayed, r.Status)
	assert.JSONEq(t, `{"draft_id":"labels-note"}`, string(r.Value))
	assert.Equal(t, 1, l.count(dispatch.KindAction))
	assert.Equal(t, map[string]string{"labels-note": `{"body":"There are 84 labels.","purpose":"inventory-summary"}`}, l.drafts())
}

// B089, in one process: eight calls at once and a budget of six runs.
func TestB089ABudgetForCallsAtOnce(t *testing.T) {
	for _, c := range []struct {
		edit edit
		says string
	}{
		{budgets(config.Budgets{Attempts: ptr(int64(6))}), "attempts"},
		{budgets(config.Budgets{Cost: ptr(int64(20))}), "cost"},
		{budget(6), "step"},
	} {
		l := newLab(t, c.edit)
		l.redefine("calculate", costing(3))
		var mu sync.Mutex
		var wg sync.WaitGroup
		got := map[dispatch.Status]int{}
		for range 8 {
			wg.Go(func() {
				r := l.propose(add("m1"))
				mu.Lock()
				defer mu.Unlock()
				got[r.Status]++
				if r.Status != dispatch.StatusOK {
					assert.Contains(t, r.Reasons[0].Message, c.says)
				}
			})
		}
		wg.Wait()
		assert.Equal(t, map[dispatch.Status]int{dispatch.StatusOK: 6, dispatch.StatusBudgetExhausted: 2}, got)
		assert.Equal(t, 6, l.count(dispatch.KindAction))
		assert.Equal(t, dispatch.Spent{Cost: 18, Attempts: 6, Output: 6}, l.spent())
	}
}

// B061, in one process: fifty at once, one run, and nobody is told of a failure.
func TestB061ParallelCallsWithOneKey(t *testing.T) {
	l := newLab(t, budget(1000))
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved", 10))
	// The budget of steps that the approval is good for is 10; so only that many can meet it in time.
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := map[dispatch.Status]int{}
	for range 50 {
		wg.Go(func() {
			r := l.propose(draft("d1"))
			mu.Lock()
			defer mu.Unlock()
			got[r.Status]++
		})
	}
	wg.Wait()
	assert.Equal(t, map[dispatch.Status]int{dispatch.StatusOK: 1, dispatch.StatusReplayed: 49}, got)
	assert.Equal(t, 1, l.count(dispatch.KindAction))
}

// B112: an approval belongs to one proposal, not to a task or a run; its id in a proposal is worth nothing.
func TestB112ApprovalOfAnotherCall(t *testing.T) {
	l := newLab(t)
	a := l.propose(draft("d1")).Approval
	require.NoError(t, l.review(draft("d1"), "approved"))
	other := draft("d1", "draft_id", "second-note", "idempotency_key", "draft-2")
	assert.Equal(t, dispatch.StatusApprovalRequired, l.propose(other).Status)
	with := strings.Replace(other, `"tool"`, `"approval":{"id":"`+a.ID+`","signature":"`+a.Signature+`"},"tool"`, 1)
	assert.Equal(t, dispatch.StatusInvalidProposal, l.propose(with).Status)
	assert.Empty(t, l.drafts())
}

// An approval that was not used belongs to its actor and its task.
func TestApprovalDoesNotFollowTheTask(t *testing.T) {
	t.Run("another actor", func(t *testing.T) {
		l := newLab(t)
		l.propose(draft("d1"))
		require.NoError(t, l.review(draft("d1"), "approved"))
		require.NoError(t, l.dispatcher.AssignTask(t.Context(), l.key(), "maya", "operator"))
		_, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{}, []byte(draft("d1")))
		require.ErrorIs(t, err, dispatch.ErrUnknownTask, "it is not the first actor's task any more")
		l.who.Actor = "maya"
		assert.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status)
		require.NoError(t, l.dispatcher.AssignTask(t.Context(), l.key(), "learner", "operator"))
		l.who.Actor = "learner"
		assert.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status, "and coming back does not bring the approval back")
		assert.Empty(t, l.drafts())
	})
	t.Run("another task", func(t *testing.T) {
		l := newLab(t)
		l.propose(draft("d1"))
		require.NoError(t, l.review(draft("d1"), "approved"))
		l.create("labels-2", l.who.Actor)
		l.task = "labels-2"
		assert.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status)
		assert.Empty(t, l.drafts())
	})
}

// Mutation isolation: what is stored is a copy. Bytes that a caller changes afterwards change no approval.
func TestStoredSnapshotIsACopy(t *testing.T) {
	l := newLab(t)
	b := []byte(draft("d1"))
	_, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{}, b)
	require.NoError(t, err)
	copy(b, []byte(strings.Replace(string(b), "There are 84", "There are 99", 1)))
	list, err := l.store.Approvals(t.Context(), l.who.Tenant, "", dispatch.Pending)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, draft("d1"), string(list[0].Proposal))
	require.ErrorIs(t, l.review(string(b), "approved"), dispatch.ErrNothingPending)
	list[0].Proposal[20] = '!'
	require.NoError(t, l.review(draft("d1"), "approved"))
	r := l.propose(draft("d1"))
	require.Equal(t, dispatch.StatusOK, r.Status)
	for i := range r.Value {
		r.Value[i] = 'x'
	}
	assert.JSONEq(t, `{"draft_id":"labels-note"}`, string(l.propose(draft("d1")).Value))
}

// A reduced tool set stops new calls and replays alike.
func TestReducedTools(t *testing.T) {
	l := newLab(t)
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	require.Equal(t, dispatch.StatusOK, l.propose(draft("d1")).Status)
	c := l.config
	p := c.Profiles["warehouse"]
	p.Tools = []string{"read_document", "calculate"}
	c.Profiles = map[string]config.Profile{"warehouse": p}
	reduced, err := assemble(t.Context(), c)
	require.NoError(t, err)
	require.NotEqual(t, l.policy.Version(), reduced.policy.Version(), "what is permitted is a part of the version")
	l.dispatcher.Use(reduced.snapshot)
	r := l.propose(draft("d1"))
	assert.Equal(t, dispatch.StatusToolDenied, r.Status)
	assert.Equal(t, reduced.policy.Version(), r.PolicyVersion)
}

// A task whose profile is gone has no tool.
func TestProfileGone(t *testing.T) {
	l := newLab(t)
	gone := *l.snapshot
	gone.Profiles = nil
	l.dispatcher.Use(&gone)
	// The policy's data still has the profile: that alone must not be enough to run on an unlimited budget.
	assert.Equal(t, dispatch.StatusToolDenied, l.propose(add("m0")).Status)

	c := l.config
	c.Profiles = map[string]config.Profile{"other": c.Profiles["warehouse"]}
	c.Tasks = nil
	without, err := assemble(t.Context(), c)
	require.NoError(t, err)
	l.dispatcher.Use(without.snapshot)
	assert.Equal(t, dispatch.StatusToolDenied, l.propose(add("m1")).Status)
}

// faulty is a real store whose commits fail or lose races as a test says.
type faulty struct {
	dispatch.Store
	apply func(real func() error) error
}

func (f faulty) Apply(ctx context.Context, c dispatch.Commit) error {
	if c.Task.TaskKey == (dispatch.TaskKey{}) {
		return f.Store.Apply(ctx, c) // the activation before the first decision, which has tests of its own
	}
	return f.apply(func() error { return f.Store.Apply(ctx, c) })
}

func (l *lab) through(apply func(real func() error) error) {
	l.dispatcher = dispatch.New(faulty{l.store, apply}, l.store.Key(), l.clock, l.snapshot)
}

// What could not be recorded did not happen: no result, no step, no effect, and the approval is still good.
func TestUnrecordedIsUndone(t *testing.T) {
	l := newLab(t)
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	before := len(l.entries())
	full := errors.New("disk full")
	l.through(func(func() error) error { return full })
	for _, p := range []string{draft("d1"), read("r1", "/warehouse/labels.txt"), add("m1"), "junk"} {
		r, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{}, []byte(p))
		require.ErrorIs(t, err, full)
		require.Zero(t, r, "no value leaves without its record")
	}
	assert.Len(t, l.entries(), before)
	assert.Equal(t, 1, l.steps())
	l.serve()
	assert.Equal(t, dispatch.StatusOK, l.propose(draft("d1")).Status)
}

// A decision commits only against what it was made on: if that moved, it is made again, three times at most.
func TestDecidedAgain(t *testing.T) {
	l := newLab(t)
	races := 0
	l.through(func(real func() error) error {
		if races > 0 {
			races--
			return dispatch.ErrMoved
		}
		return real()
	})
	races = 2
	require.Equal(t, dispatch.StatusOK, l.propose(add("m1")).Status)
	var d dispatch.DecisionEntry
	entries := l.entries()
	require.NoError(t, ijson.Unmarshal(entries[1].Body, &d))
	assert.Equal(t, 3, d.Attempt)

	races = 3
	before := len(entries)
	_, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{}, []byte(add("m2")))
	require.ErrorIs(t, err, dispatch.ErrUnavailable)
	assert.Len(t, l.entries(), before)
	assert.Equal(t, 1, l.steps())
}

// A task that was cancelled between the decision and its commit runs nothing: the decision is made again.
func TestCancelledBetweenDecisionAndCommit(t *testing.T) {
	l := newLab(t)
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	beside := dispatch.New(noHold{l.store}, l.store.Key(), l.clock, l.snapshot)
	once := true
	l.through(func(real func() error) error {
		if once {
			once = false
			require.NoError(t, beside.Cancel(context.Background(), l.key(), "maya"))
		}
		return real()
	})
	assert.Equal(t, dispatch.StatusCancelled, l.propose(draft("d1")).Status)
	assert.Empty(t, l.drafts())
}

// noHold stands for another process that does not wait.
type noHold struct{ dispatch.Store }

func (noHold) Hold(context.Context, dispatch.TaskKey) (func(), error) { return func() {}, nil }

// A caller who gives up before the decision counts no step.
func TestGivenUp(t *testing.T) {
	l := newLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.dispatcher.Dispatch(ctx, l.who, l.task, dispatch.Origin{}, []byte(add("m1")))
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, l.steps())
}

// A tool that panics is broken: the call is denied, nothing is committed, and the record says so.
func TestPanickingTool(t *testing.T) {
	l := newLab(t)
	broken := *l.snapshot
	broken.Tools = tools.WithFaults(l.tools, &tools.Faults{Tools: []tools.ToolFault{{Tool: "record_draft", Fail: tools.Panic, Times: 1}}})
	l.dispatcher.Use(&broken)
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	r := l.propose(draft("d1"))
	assert.Equal(t, dispatch.StatusInternalError, r.Status)
	assert.Equal(t, exitBroken, statusCode(r))
	assert.Empty(t, l.drafts())
	assert.Zero(t, l.count(dispatch.KindAction))
	assert.Equal(t, dispatch.StatusOK, l.propose(draft("d1")).Status, "nothing ran, so the approval is still good")
}

// The first attempt is on record; that a second could not be made must not hide it.
func TestRetryThatCannotBeMade(t *testing.T) {
	l := newLab(t)
	failing := *l.snapshot
	failing.Tools = tools.WithFaults(l.tools, &tools.Faults{LoseDraftReply: true})
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	applied := 0
	l.through(func(real func() error) error {
		if applied++; applied > 1 {
			return dispatch.ErrMoved
		}
		return real()
	})
	l.dispatcher.Use(&failing)
	r, err := l.dispatcher.DispatchRetry(t.Context(), l.who, l.task, dispatch.Origin{Door: "test"}, []byte(draft("d1")), 2)
	require.NoError(t, err)
	assert.Equal(t, dispatch.StatusRetryExhausted, r.Status)
	assert.Equal(t, dispatch.StatusOutcomeUnknown, r.Last.Status)
	assert.Equal(t, exitUnknown, statusCode(r))
	assert.Len(t, l.drafts(), 1)
}

// stuck is a store whose task is held by a process that was stopped.
type stuck struct{ dispatch.Store }

func (stuck) Hold(context.Context, dispatch.TaskKey) (func(), error) {
	return nil, dispatch.ErrUnavailable
}

// Whoever holds a task for good must not keep a person from ending it. Proposals wait, and are told so.
func TestStuckTask(t *testing.T) {
	l := newLab(t)
	l.propose(draft("d1"))
	l.dispatcher = dispatch.New(stuck{l.store}, l.store.Key(), l.clock, l.snapshot)
	_, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{}, []byte(add("m1")))
	require.ErrorIs(t, err, dispatch.ErrUnavailable)
	assert.Equal(t, 1, l.steps())
	require.NoError(t, l.review(draft("d1"), "approved"))
	require.NoError(t, l.dispatcher.Cancel(t.Context(), l.key(), "maya"))
	l.serve()
	assert.Equal(t, dispatch.StatusCancelled, l.propose(draft("d1")).Status)
}

// The stored call is what is shown; it must be the one that was signed.
func TestStoredCallMustFitItsSignature(t *testing.T) {
	l := newLab(t)
	a := l.propose(draft("d1")).Approval
	l.dispatcher = dispatch.New(forged{l.store}, l.store.Key(), l.clock, l.snapshot)
	_, err := l.dispatcher.Review(t.Context(), l.who.Tenant, a.ID, a.Signature, dispatch.Review{Reviewer: "maya", Decision: "approved"})
	require.ErrorIs(t, err, dispatch.ErrProposalDiffers)
	assert.Zero(t, l.count(dispatch.KindReview))
}

// forged is a store in which somebody has changed a stored call by hand.
type forged struct{ dispatch.Store }

func (f forged) Approval(ctx context.Context, tenant, id string) (dispatch.Approval, error) {
	a, err := f.Store.Approval(ctx, tenant, id)
	a.Proposal = ijson.Raw(strings.Replace(string(a.Proposal), "84", "99", 1))
	return a, err
}

// lying is a tool that claims what its definition does not allow.
type lying struct {
	dispatch.Tool
	outcome dispatch.Outcome
}

func (l lying) Run(context.Context, dispatch.Call) dispatch.Outcome { return l.outcome }

// An outcome that the tool's definition does not allow is a broken tool, whatever it claims: nothing of it is committed.
func TestLyingTool(t *testing.T) {
	one := ijson.Raw(`1`)
	for name, outcome := range map[string]dispatch.Outcome{
		"a read that writes":      {Status: dispatch.StatusOK, Ran: true, Value: one, Record: one},
		"ok of what did not run":  {Status: dispatch.StatusOK, Value: one},
		"a value that is no JSON": {Status: dispatch.StatusOK, Ran: true, Value: ijson.Raw(`{"a":1,"a":2}`)},
		"a status of its own":     {Status: "great", Ran: true, Value: one},
		"an approval of its own":  {Status: dispatch.StatusApprovalRequired, Ran: true, Value: one},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			changed := *l.snapshot
			changed.Tools = map[string]dispatch.Tool{"calculate": lying{l.tools["calculate"], outcome}}
			l.dispatcher.Use(&changed)
			r := l.propose(add("m1"))
			assert.Equal(t, dispatch.StatusInternalError, r.Status)
			assert.Nil(t, r.Value)
			assert.Zero(t, l.count(dispatch.KindAction))
			records, err := l.store.Records(t.Context(), l.who.Tenant, "")
			require.NoError(t, err)
			assert.Empty(t, records)
		})
	}
}

// Only what its tool calls repeatable is attempted again.
func TestRetryOfWhatCannotBeRepeated(t *testing.T) {
	for _, retryable := range []bool{false, true} {
		l := newLab(t)
		changed := *l.snapshot
		changed.Tools = map[string]dispatch.Tool{"calculate": lying{l.tools["calculate"], dispatch.Outcome{Status: dispatch.StatusTimeout, Retryable: retryable}}}
		l.dispatcher.Use(&changed)
		r, err := l.dispatcher.DispatchRetry(t.Context(), l.who, l.task, dispatch.Origin{Door: "test"}, []byte(add("m1")), 2)
		require.NoError(t, err)
		want, attempts := dispatch.StatusTimeout, 1
		if retryable {
			want, attempts = dispatch.StatusRetryExhausted, 2
		}
		assert.Equal(t, want, r.Status)
		assert.Equal(t, attempts, l.steps())
	}
}
