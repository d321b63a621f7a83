package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// The protocol of outside tools, over the real policy and a real store. What the tool does is the test's; a real one over HTTP
// has tests of its own.

// outsider is a tool of the shipped configuration as if it were outside of this process.
type outsider struct {
	dispatch.Tool
	change func(*dispatch.Definition)

	mu   sync.Mutex
	got  []dispatch.Call
	asks int
	run  func(context.Context, dispatch.Call) dispatch.Outcome
	find func(dispatch.Call) dispatch.Finding
}

func (o *outsider) Definition() dispatch.Definition {
	d := o.Tool.Definition()
	d.Local, d.Outside, d.Limits = "", ijson.Raw(`{"test":true}`), dispatch.ToolLimits{Time: 10_000, OutputBytes: 1000}
	if o.change != nil {
		o.change(&d)
	}
	return d
}

func (o *outsider) CheckOutput(ijson.Raw) []dispatch.Violation { return nil }

func (o *outsider) Run(ctx context.Context, c dispatch.Call) dispatch.Outcome {
	if err := c.Sending.Fence(); err != nil {
		return unsent
	}
	o.mu.Lock()
	o.got = append(o.got, c)
	run := o.run
	o.mu.Unlock()
	return run(ctx, c)
}

func (o *outsider) Find(_ context.Context, c dispatch.Call) dispatch.Finding {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asks++
	return o.find(c)
}

// calls counts what reached the tool.
func (o *outsider) calls() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.got)
}

func (o *outsider) keys() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, c := range o.got {
		out = append(out, c.Sending.Key)
	}
	return out
}

// does makes every later call end so.
func (o *outsider) does(outcome dispatch.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.run = func(context.Context, dispatch.Call) dispatch.Outcome { return outcome }
}

var (
	landed  = dispatch.Outcome{Status: dispatch.StatusOK, Sent: true, Ran: true, State: dispatch.Committed, Value: ijson.Raw(`{"value":{"id":"p-7"}}`)}
	answer7 = dispatch.Outcome{Status: dispatch.StatusOK, Sent: true, Ran: true, Value: ijson.Raw(`{"value":7}`)}
	lost    = dispatch.Outcome{Status: dispatch.StatusOutcomeUnknown, Sent: true, State: dispatch.Unknown}
	unsent  = dispatch.Outcome{Status: dispatch.StatusUnavailable, Retryable: true, State: dispatch.Absent}
	denied  = dispatch.Outcome{Status: dispatch.StatusUnavailable, Sent: true, State: dispatch.Absent}
)

// outside makes a tool of the lab one that is reached outside.
func (l *lab) outside(tool string, changes ...func(*dispatch.Definition)) *outsider {
	o := &outsider{Tool: l.snapshot.Tools[tool], change: func(d *dispatch.Definition) {
		for _, c := range changes {
			c(d)
		}
	}}
	changed := *l.snapshot
	changed.Tools = map[string]dispatch.Tool{}
	for name, t := range l.snapshot.Tools {
		changed.Tools[name] = t
	}
	changed.Tools[tool] = o
	l.snapshot = &changed
	l.dispatcher.Use(l.snapshot)
	l.abroad = true
	return o
}

func byRule(d *dispatch.Definition)    { d.Approval = dispatch.ByRule }
func keyless(d *dispatch.Definition)   { d.Key = "" }
func remembers(d *dispatch.Definition) { d.Recovery.Retention = 3_600_000 }
func findable(d *dispatch.Definition)  { d.Recovery = dispatch.Recovery{Lookup: true, Settle: 30_000} }

// begin proposes and returns once the tool has the call, which waits there until end is called with what comes of it.
func (l *lab) begin(o *outsider, proposal string) (end func(dispatch.Outcome) dispatch.Result) {
	l.t.Helper()
	there, outcome, result := make(chan struct{}), make(chan dispatch.Outcome), make(chan dispatch.Result, 1)
	o.mu.Lock()
	o.run = func(context.Context, dispatch.Call) dispatch.Outcome {
		close(there)
		return <-outcome
	}
	o.mu.Unlock()
	go func() {
		r, err := l.dispatcher.Dispatch(context.Background(), l.who, l.task, dispatch.Origin{Door: "test"}, []byte(proposal))
		assert.NoError(l.t, err)
		result <- r
	}()
	select {
	case <-there:
	case r := <-result:
		require.Fail(l.t, "the tool was not called", "%+v", r)
	}
	return func(came dispatch.Outcome) dispatch.Result {
		outcome <- came
		return <-result
	}
}

// pass lets time go by.
func (l *lab) pass(d time.Duration) { l.now = l.now.Add(d) }

func (l *lab) operations(states ...dispatch.OperationState) []dispatch.Operation {
	l.t.Helper()
	out, err := l.store.Operations(context.Background(), l.who.Tenant, "", states...)
	require.NoError(l.t, err)
	return out
}

func (l *lab) onlyOperation() dispatch.Operation {
	l.t.Helper()
	all := l.operations()
	require.Len(l.t, all, 1)
	o, err := l.store.Operation(context.Background(), l.who.Tenant, all[0].ID)
	require.NoError(l.t, err)
	return o
}

func (l *lab) approvals(states ...dispatch.ApprovalState) []dispatch.Approval {
	l.t.Helper()
	out, err := l.store.Approvals(context.Background(), l.who.Tenant, "", states...)
	require.NoError(l.t, err)
	return out
}

func (l *lab) theTask() dispatch.Task {
	l.t.Helper()
	t, err := l.store.Task(context.Background(), l.key())
	require.NoError(l.t, err)
	return t
}

// Before the first byte everything that the call is based on is on record: the step, the decision, the approval as consumed, the
// operation as started, what it costs and what it may give.
func TestIntentIsDurableBeforeTheCall(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft")
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	end := l.begin(o, draft("d2"))

	at := l.onlyOperation()
	assert.Equal(t, dispatch.Started, at.State)
	assert.Equal(t, 2, at.Step)
	assert.Equal(t, l.now.Add(15*time.Second), at.Lease)
	assert.Len(t, l.approvals(dispatch.Consumed), 1)
	task := l.theTask()
	assert.Equal(t, 2, task.Steps)
	assert.EqualValues(t, 1, task.Spent.Attempts)
	require.Len(t, task.InFlight, 1)
	assert.EqualValues(t, 1000, task.InFlight[0].Output)
	assert.Equal(t, 2, l.count(dispatch.KindDecision))
	assert.Zero(t, l.count(dispatch.KindOutcome))
	assert.Zero(t, l.count(dispatch.KindAction))

	r := end(landed)
	assert.Equal(t, dispatch.StatusOK, r.Status)
	assert.JSONEq(t, string(landed.Value), string(r.Value))
	assert.Equal(t, dispatch.Committed, l.onlyOperation().State)
	assert.Equal(t, 1, l.count(dispatch.KindOutcome))
	assert.Equal(t, 1, l.count(dispatch.KindAction))
	task = l.theTask()
	assert.Empty(t, task.InFlight)
	assert.EqualValues(t, len(landed.Value), task.Spent.Output)
	assert.Equal(t, dispatch.StatusReplayed, l.propose(draft("d3")).Status)
	assert.Equal(t, 1, o.calls())
}

// While a call is under way the task goes on: reads overlap, and no other write starts.
func TestOneStartedWriteATask(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", byRule)
	end := l.begin(o, draft("d1"))
	for name, proposal := range map[string]string{
		"the same call":               draft("d2"),
		"the same effect, other key":  draft("d3", "idempotency_key", "draft-2"),
		"another effect":              draft("d4", "draft_id", "other", "idempotency_key", "draft-3"),
		"another effect, asked twice": draft("d5", "draft_id", "other", "idempotency_key", "draft-3"),
	} {
		r := l.propose(proposal)
		assert.Equal(t, dispatch.StatusInProgress, r.Status, name)
		assert.True(t, r.Retryable, name)
	}
	assert.Equal(t, dispatch.StatusIdempotencyConflict, l.propose(draft("d6", "body", "other")).Status)
	assert.Equal(t, dispatch.StatusOK, l.propose(add("c1")).Status)
	assert.Equal(t, dispatch.StatusOK, l.propose(read("r1", "/warehouse/labels.txt")).Status)

	assert.Equal(t, dispatch.StatusOK, end(landed).Status)
	o.does(landed)
	assert.Equal(t, dispatch.StatusOK, l.propose(draft("d7", "draft_id", "other", "idempotency_key", "draft-3")).Status)
	assert.Equal(t, 2, o.calls())
}

// Reads of outside tools run beside each other.
func TestOutsideReadsOverlap(t *testing.T) {
	l := newLab(t)
	o := l.outside("read_document")
	end := l.begin(o, read("r1", "/warehouse/labels.txt"))
	other := l.begin(o, read("r2", "/warehouse/labels.txt"))
	assert.Equal(t, dispatch.StatusOK, other(answer7).Status)
	assert.Equal(t, dispatch.StatusOK, end(answer7).Status)
	assert.Empty(t, l.operations())
	assert.Equal(t, 2, l.count(dispatch.KindAction))
}

// What nobody heard of is unknown once its lease has ended: for the same call, under another key and for one without a key.
func TestNobodyHeard(t *testing.T) {
	for _, row := range []struct {
		name    string
		changes []func(*dispatch.Definition)
	}{
		{"with a key", nil},
		{"without a key", []func(*dispatch.Definition){keyless}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			o := l.outside("record_draft", append(row.changes, byRule)...)
			end := l.begin(o, draft("d1"))
			l.pass(15 * time.Second)
			assert.Equal(t, dispatch.StatusInProgress, l.propose(draft("d2")).Status, "the lease is not over")
			l.pass(time.Millisecond)
			for _, proposal := range []string{draft("d3"), draft("d4")} {
				r := l.propose(proposal)
				assert.Equal(t, dispatch.StatusOutcomeUnknown, r.Status)
				assert.False(t, r.Retryable)
			}
			if row.changes == nil {
				assert.Equal(t, dispatch.StatusOutcomeUnknown, l.propose(draft("d5", "idempotency_key", "draft-2")).Status, "the same effect under another key")
			}
			assert.Equal(t, 1, o.calls())
			assert.Equal(t, dispatch.StatusOK, end(landed).Status, "the owner comes back, and nobody else has said anything")
			assert.Equal(t, dispatch.Committed, l.onlyOperation().State)
			assert.Len(t, l.theTask().InFlight, 0)
		})
	}
}

// A tool that remembers keys is called again under the same one, without a second approval, as long as it remembers.
func TestResume(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", remembers)
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	o.does(lost)
	r := l.propose(draft("d2"))
	assert.Equal(t, dispatch.StatusOutcomeUnknown, r.Status)
	assert.True(t, r.Retryable)
	assert.Equal(t, dispatch.Unknown, l.onlyOperation().State)

	dry, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{Mode: dispatch.DryRun}, []byte(draft("d3")))
	require.NoError(t, err)
	assert.Equal(t, dispatch.StatusOutcomeUnknown, dry.Status, "nothing is called again in a dry run")
	assert.Equal(t, dispatch.StatusOutcomeUnknown, l.propose(draft("d4", "idempotency_key", "draft-2")).Status, "another key is another operation, and the tool does not know it")

	o.does(unsent)
	assert.Equal(t, dispatch.StatusOutcomeUnknown, l.propose(draft("d5")).Status)
	assert.Equal(t, dispatch.Unknown, l.onlyOperation().State, "that this call did nothing says nothing of the first")

	o.does(landed)
	assert.Equal(t, dispatch.StatusOK, l.propose(draft("d6")).Status)
	keys := o.keys()
	require.Len(t, keys, 3)
	assert.Equal(t, keys[0], keys[1])
	assert.Equal(t, keys[0], keys[2])
	assert.NotContains(t, keys[0], "draft-1")
	assert.Len(t, keys[0], 64)
	at := l.onlyOperation()
	assert.Equal(t, dispatch.Committed, at.State)
	assert.Equal(t, 3, at.Run)
	assert.Len(t, l.approvals(), 1)
}

// After the tool has forgotten the key nothing is called again.
// Which arguments make the effect is said by the definition. Under another one nobody can tell whether an effect is the same.
func TestAnotherDefinitionIsNoWayRound(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", byRule)
	o.does(lost)
	l.propose(draft("d1"))
	o = l.outside("record_draft", byRule, keyless)
	o.does(landed)
	assert.Equal(t, dispatch.StatusOutcomeUnknown, l.propose(draft("d2")).Status)
	assert.Zero(t, o.calls())
	require.NoError(t, resolve(l, dispatch.Resolution{State: dispatch.Committed, Reason: "found"}))
	assert.Equal(t, dispatch.StatusOK, l.propose(draft("d3", "body", "other")).Status)
}

func TestNoResumeAfterRetention(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", remembers, byRule)
	o.does(lost)
	l.propose(draft("d1"))
	l.pass(time.Hour - 10*time.Second)
	assert.Equal(t, dispatch.StatusOutcomeUnknown, l.propose(draft("d2")).Status, "it could be forgotten before the call arrives")
	assert.Equal(t, 1, o.calls())
}

// Retrying within one command resumes.
// A first attempt of which nothing took place must not be the answer to a second one of which nobody heard.
func TestRetryTellsOfWhatIsNotOnRecord(t *testing.T) {
	l := newLab(t)
	outcomes := 0
	full := errors.New("the disk is full")
	l.dispatcher = dispatch.New(refusing{l.store, func(c dispatch.Commit) error {
		if c.Entries[0].Kind == dispatch.KindOutcome {
			outcomes++
		}
		if outcomes > 1 {
			return full
		}
		return nil
	}}, l.store.Key(), l.clock, l.snapshot)
	o := l.outside("record_draft", byRule)
	o.run = func(context.Context, dispatch.Call) dispatch.Outcome {
		o.does(landed)
		return dispatch.Outcome{Status: dispatch.StatusTimeout, Retryable: true, State: dispatch.Absent}
	}
	_, err := l.dispatcher.DispatchRetry(t.Context(), l.who, l.task, dispatch.Origin{}, []byte(draft("d")), 2)
	assert.ErrorIs(t, err, full)
	assert.Equal(t, 2, o.calls())
	assert.Equal(t, dispatch.Started, l.onlyOperation().State)
}

// refusing is a store that takes no commit against which there is something.
type refusing struct {
	*sqlite.Store
	against func(dispatch.Commit) error
}

func (s refusing) Apply(ctx context.Context, c dispatch.Commit) error {
	if err := s.against(c); err != nil {
		return err
	}
	return s.Store.Apply(ctx, c)
}

func TestRetryResumes(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", remembers, byRule)
	outcomes := []dispatch.Outcome{lost, landed}
	o.run = func(context.Context, dispatch.Call) dispatch.Outcome { return outcomes[o.calls()-1] }
	r, err := l.dispatcher.DispatchRetry(t.Context(), l.who, l.task, dispatch.Origin{}, []byte(draft("d1")), 2)
	require.NoError(t, err)
	assert.Equal(t, dispatch.StatusOK, r.Status)
	assert.Equal(t, 2, r.Step)
}

// A tool that can be asked settles what is unknown, once it can know.
func TestLookUp(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", findable, byRule)
	o.find = func(c dispatch.Call) dispatch.Finding { return dispatch.Finding{State: dispatch.Absent} }
	o.does(lost)
	l.propose(draft("d1"))
	o.does(landed)

	assert.Equal(t, dispatch.StatusOutcomeUnknown, l.propose(draft("d2")).Status, "an absence within the lease and the settle time says nothing")
	assert.Equal(t, 1, o.asks)
	l.pass(45 * time.Second)
	assert.Equal(t, dispatch.StatusOutcomeUnknown, l.propose(draft("d3")).Status)
	l.pass(time.Millisecond)
	o.find = func(dispatch.Call) dispatch.Finding { return dispatch.Finding{State: dispatch.Unknown, Detail: "503"} }
	assert.Equal(t, dispatch.StatusOutcomeUnknown, l.propose(draft("d4", "idempotency_key", "draft-2")).Status)
	assert.Equal(t, 3, l.onlyOperation().Lookups)

	o.find = func(c dispatch.Call) dispatch.Finding {
		assert.Equal(t, o.got[0].Sending.Key, c.Sending.Key)
		assert.JSONEq(t, string(o.got[0].Arguments), string(c.Arguments))
		return dispatch.Finding{State: dispatch.Committed, Value: landed.Value}
	}
	r := l.propose(draft("d5"))
	assert.Equal(t, dispatch.StatusReplayed, r.Status)
	assert.JSONEq(t, string(landed.Value), string(r.Value))
	assert.Equal(t, 1, o.calls())
	assert.Equal(t, 1, l.count(dispatch.KindAction))
	assert.Equal(t, 4, l.count(dispatch.KindSettlement))
}

// An absence frees the key: the same call runs, and another may use it.
func TestLookUpFindsNothing(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", findable, byRule)
	o.find = func(c dispatch.Call) dispatch.Finding { return dispatch.Finding{State: dispatch.Absent} }
	o.does(lost)
	l.propose(draft("d1"))
	l.pass(time.Minute)
	o.does(landed)
	corrected := draft("d2", "body", "Corrected.")
	assert.Equal(t, dispatch.StatusIdempotencyConflict, l.propose(corrected).Status, "the key is still that of a call of which nobody knows")
	assert.Zero(t, o.asks)
	at, err := l.dispatcher.LookUp(t.Context(), l.who.Tenant, l.onlyOperation().ID)
	require.NoError(t, err)
	assert.Equal(t, dispatch.Absent, at.State)
	assert.Equal(t, dispatch.StatusOK, l.propose(corrected).Status)
	assert.Equal(t, 2, o.calls())
	assert.Equal(t, 2, l.onlyOperation().Run)
	assert.NotEqual(t, o.keys()[0], o.keys()[1], "the tool would take it for the first call")
	assert.Equal(t, dispatch.StatusIdempotencyConflict, l.propose(draft("d3")).Status)
}

// Looking up is bounded, and never done in a dry run or for what is denied otherwise.
func TestLookUpsAreBounded(t *testing.T) {
	l := newLab(t, budget(50))
	o := l.outside("record_draft", findable, byRule)
	o.find = func(dispatch.Call) dispatch.Finding { return dispatch.Finding{State: dispatch.Unknown} }
	o.does(lost)
	l.propose(draft("d1"))
	l.pass(time.Minute)
	_, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{Mode: dispatch.DryRun}, []byte(draft("d2")))
	require.NoError(t, err)
	assert.Zero(t, o.asks)
	for i := range 12 {
		l.propose(draft(fmt.Sprint("e", i)))
	}
	assert.Equal(t, 10, o.asks)
	for range 90 {
		_, err = l.dispatcher.LookUp(t.Context(), l.who.Tenant, l.onlyOperation().ID)
		require.NoError(t, err, "an operator may ask for longer")
	}
	_, err = l.dispatcher.LookUp(t.Context(), l.who.Tenant, l.onlyOperation().ID)
	assert.ErrorIs(t, err, dispatch.ErrLookupsSpent)
	assert.Equal(t, 100, o.asks)
}

// While the word that nothing took place cannot count, calls do not use up what may be asked later.
func TestEarlyLookUpsAreFew(t *testing.T) {
	l := newLab(t, budget(50))
	o := l.outside("record_draft", findable, byRule)
	o.find = func(dispatch.Call) dispatch.Finding { return dispatch.Finding{State: dispatch.Absent} }
	o.does(lost)
	for i := range 12 {
		l.propose(draft(fmt.Sprint("d", i)))
	}
	assert.Equal(t, 3, o.asks)
	l.pass(time.Minute)
	o.does(landed)
	assert.Equal(t, dispatch.StatusOK, l.propose(draft("e")).Status)
}

// A look-up says absent while the owner is paused before its first byte: the owner must not send any more when it wakes up.
func TestThePausedOwnerSendsNothing(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", findable, byRule)
	paused, wake := make(chan struct{}), make(chan struct{})
	o.find = func(dispatch.Call) dispatch.Finding { return dispatch.Finding{State: dispatch.Absent} }
	o.run = func(_ context.Context, c dispatch.Call) dispatch.Outcome {
		close(paused)
		<-wake
		if err := c.Sending.Fence(); err != nil {
			return unsent
		}
		return landed
	}
	result := make(chan dispatch.Result)
	go func() { result <- l.propose(draft("d1")) }()
	<-paused
	l.pass(time.Minute)
	o.does(landed)
	assert.Equal(t, dispatch.StatusOK, l.propose(draft("d2")).Status, "nothing took place, and nothing will")
	close(wake)
	late := <-result
	assert.Equal(t, dispatch.StatusUnavailable, late.Status)
	assert.Equal(t, "late_outcome", late.Reasons[len(late.Reasons)-1].Code)
	at := l.onlyOperation()
	assert.Equal(t, dispatch.Committed, at.State)
	assert.Equal(t, 2, at.Run)
	assert.Empty(t, l.theTask().InFlight)
}

// An owner that was paused before it even asked whether the operation is still its own does not call the tool.
func TestTheOwnerMustStillOwn(t *testing.T) {
	for _, row := range []struct {
		name string
		then func(*lab)
		want dispatch.Status
	}{
		{"the task was cancelled", func(l *lab) {
			require.NoError(l.t, l.dispatcher.Cancel(context.Background(), l.key(), "operator"))
		}, dispatch.StatusCancelled},
		{"the lease ended, and somebody settled it", func(l *lab) {
			l.pass(time.Minute)
			require.NoError(l.t, resolve(l, dispatch.Resolution{State: dispatch.Absent, Reason: "not there"}))
		}, dispatch.StatusUnavailable},
		{"the deadline passed", func(l *lab) { l.pass(10 * time.Second) }, dispatch.StatusUnavailable},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			var once sync.Once
			l.dispatcher = dispatch.New(applying{l.store, func(c dispatch.Commit) {
				if c.Operation != nil && c.Operation.State == dispatch.Started {
					once.Do(func() {
						// Whoever it is does not wait for the task, which is held.
						own := l.dispatcher
						l.dispatcher = dispatch.New(noHold{l.store}, l.store.Key(), l.clock, l.snapshot)
						row.then(l)
						l.dispatcher = own
					})
				}
			}}, l.store.Key(), l.clock, l.snapshot)
			o := l.outside("record_draft", byRule)
			o.does(landed)
			assert.Equal(t, row.want, l.propose(draft("d1")).Status)
			assert.Zero(t, o.calls())
			assert.Equal(t, dispatch.Absent, l.onlyOperation().State)
		})
	}
}

// applying is a store of which somebody hears what was made durable, before anybody else does.
type applying struct {
	*sqlite.Store
	heard func(dispatch.Commit)
}

func (s applying) Apply(ctx context.Context, c dispatch.Commit) error {
	err := s.Store.Apply(ctx, c)
	if err == nil {
		s.heard(c)
	}
	return err
}

// Released before the first byte: the approval is back, with its old limits, unless the task was cancelled.
func TestApprovalComesBack(t *testing.T) {
	for _, row := range []struct {
		name    string
		tool    string
		outcome dispatch.Outcome
		between func(*lab)
		want    dispatch.ApprovalState
	}{
		{"nothing was sent", "record_draft", unsent, nil, dispatch.Approved},
		{"the tool refused it", "record_draft", denied, nil, dispatch.Consumed},
		{"nobody knows", "record_draft", lost, nil, dispatch.Consumed},
		{"it took place", "record_draft", landed, nil, dispatch.Consumed},
		{"nothing was sent, and the task was cancelled", "record_draft", unsent, func(l *lab) {
			require.NoError(l.t, l.dispatcher.Cancel(l.t.Context(), l.key(), "operator"))
		}, dispatch.Withdrawn},
		{"nothing was sent, and the task is another's", "record_draft", unsent, func(l *lab) {
			require.NoError(l.t, l.dispatcher.AssignTask(l.t.Context(), l.key(), "other", "operator"))
		}, dispatch.Withdrawn},
		{"a read of which nothing was sent", "read_document", dispatch.Outcome{Status: dispatch.StatusTimeout, Retryable: true}, nil, dispatch.Approved},
		{"a read that was sent", "read_document", dispatch.Outcome{Status: dispatch.StatusTimeout, Sent: true, Retryable: true}, nil, dispatch.Consumed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			o := l.outside(row.tool, func(d *dispatch.Definition) { d.Approval = dispatch.Always })
			proposal := draft("d1")
			if row.tool == "read_document" {
				proposal = read("r1", "/warehouse/labels.txt")
			}
			l.propose(proposal)
			require.NoError(t, l.review(proposal, "approved", 2))
			before := l.approvals()[0]
			end := l.begin(o, proposal)
			assert.Equal(t, dispatch.Consumed, l.approvals()[0].State)
			if row.between != nil {
				row.between(l)
			}
			assert.Equal(t, row.outcome.Status, end(row.outcome).Status)
			after := l.approvals()[0]
			assert.Equal(t, row.want, after.State)
			after.State = before.State
			assert.Equal(t, before, after)
			if row.want == dispatch.Approved {
				o.does(landed)
				assert.Equal(t, dispatch.StatusOK, l.propose(proposal).Status)
				assert.Equal(t, dispatch.Consumed, l.approvals()[0].State)
			}
		})
	}
}

// A call that was refused is no burden on its key: the same content asks anew, corrected content too.
func TestB118ARefusalDoesNotBurnTheKey(t *testing.T) {
	l := newLab(t, budget(50))
	o := l.outside("record_draft")
	approve := func(p string) {
		require.Equal(t, dispatch.StatusApprovalRequired, l.propose(p).Status)
		require.NoError(t, l.review(p, "approved"))
	}
	assert.Equal(t, dispatch.StatusInvalidArguments, l.propose(strings.Replace(draft("d1"), `"There are 84 labels."`, "1", 1)).Status, "fails validation")
	approve(draft("d2"))
	l.pass(25 * time.Hour)
	assert.Equal(t, dispatch.StatusApprovalExpired, l.propose(draft("d3")).Status, "expires")
	a := l.approvals()[0]
	_, err := l.dispatcher.Reopen(t.Context(), l.who.Tenant, a.ID, a.Signature, "maya", "")
	require.NoError(t, err)
	require.NoError(t, l.review(draft("d3"), "approved"))
	o.does(unsent)
	assert.Equal(t, dispatch.StatusUnavailable, l.propose(draft("d4")).Status, "ends before it is sent")
	o.does(denied)
	assert.Equal(t, dispatch.StatusUnavailable, l.propose(draft("d5")).Status, "the tool refuses it")
	approve(draft("d6"))
	o.does(landed)
	assert.Equal(t, dispatch.StatusOK, l.propose(draft("d6")).Status, "asks anew")
	assert.Equal(t, dispatch.StatusIdempotencyConflict, l.propose(draft("d7", "body", "other")).Status, "what took place burns it")
}

// Fifty at once on a budget of six run six.
func TestB089BudgetsOfOutsideCallsAreReserved(t *testing.T) {
	for name, budgets := range map[string]config.Budgets{
		"attempts": {Attempts: ptr[int64](6)},
		"cost":     {Cost: ptr[int64](6)},
		"output":   {Output: ptr[int64](5001)}, // each reserves 1000
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, budget(100), func(c *config.Config) {
				p := c.Profiles["warehouse"]
				p.Budgets = budgets
				c.Profiles["warehouse"] = p
			})
			o := l.outside("read_document", func(d *dispatch.Definition) { d.Cost = 1 })
			all := make(chan struct{})
			o.run = func(context.Context, dispatch.Call) dispatch.Outcome {
				<-all
				return answer7
			}
			results := make(chan dispatch.Result, 50)
			for i := range 50 {
				go func() { results <- l.propose(read(fmt.Sprint("r", i), "/warehouse/labels.txt")) }()
			}
			for range 44 {
				r := <-results
				assert.Equal(t, dispatch.StatusBudgetExhausted, r.Status)
				assert.Contains(t, r.Reasons[0].Message, name)
			}
			close(all)
			for range 6 {
				assert.Equal(t, dispatch.StatusOK, (<-results).Status)
			}
			assert.Equal(t, 6, o.calls())
			assert.Empty(t, l.theTask().InFlight)
		})
	}
}

// Cancelling a task cancels what is under way, also what another process has under way; it ends as what is known of it.
func TestCancelInFlight(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", byRule)
	there := make(chan struct{})
	o.run = func(ctx context.Context, _ dispatch.Call) dispatch.Outcome {
		close(there)
		<-ctx.Done()
		return lost
	}
	result := make(chan dispatch.Result)
	go func() { result <- l.propose(draft("d1")) }()
	<-there
	require.NoError(t, l.dispatcher.Cancel(t.Context(), l.key(), "operator"))
	assert.Equal(t, dispatch.StatusOutcomeUnknown, (<-result).Status)
	assert.Equal(t, dispatch.Unknown, l.onlyOperation().State)
	assert.Equal(t, dispatch.StatusCancelled, l.propose(draft("d2")).Status)
}

// What came of a call is on record and told, however late: after a cancel, and after its caller gave up.
func TestAKnownOutcomeIsReported(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", byRule)
	ctx, cancel := context.WithCancel(t.Context())
	o.run = func(context.Context, dispatch.Call) dispatch.Outcome {
		cancel()
		return landed
	}
	r, err := l.dispatcher.Dispatch(ctx, l.who, l.task, dispatch.Origin{}, []byte(draft("d1")))
	require.NoError(t, err)
	assert.Equal(t, dispatch.StatusOK, r.Status)
	end := l.begin(o, draft("d2", "draft_id", "b", "idempotency_key", "draft-2"))
	require.NoError(t, l.dispatcher.Cancel(t.Context(), l.key(), "operator"))
	assert.Equal(t, dispatch.StatusOK, end(landed).Status)
	assert.Len(t, l.operations(dispatch.Committed), 2)
}

// An operator settles what is unknown, and executes nothing.
func TestResolve(t *testing.T) {
	newUnknown := func(t *testing.T) (*lab, *outsider, string) {
		l := newLab(t)
		o := l.outside("record_draft", byRule)
		end := l.begin(o, draft("d1"))
		assert.ErrorIs(t, resolve(l, dispatch.Resolution{State: dispatch.Committed, Reason: "x"}), dispatch.ErrOperationUnderWay)
		end(lost)
		return l, o, l.onlyOperation().ID
	}
	t.Run("committed, with a result", func(t *testing.T) {
		l, o, _ := newUnknown(t)
		require.NoError(t, resolve(l, dispatch.Resolution{State: dispatch.Committed, Result: ijson.Raw(`{"id":"p-9"}`), Reason: "ledger", By: "olga"}))
		r := l.propose(draft("d2"))
		assert.Equal(t, dispatch.StatusReplayed, r.Status)
		assert.Contains(t, string(r.Value), `"value":{"id":"p-9"}`)
		assert.Equal(t, 1, o.calls())
		assert.Equal(t, 1, l.count(dispatch.KindAction))
		assert.ErrorIs(t, resolve(l, dispatch.Resolution{State: dispatch.Absent, Reason: "x"}), dispatch.ErrOperationSettled)
	})
	t.Run("committed, and nobody knows with what", func(t *testing.T) {
		l, _, _ := newUnknown(t)
		require.NoError(t, resolve(l, dispatch.Resolution{State: dispatch.Committed, Reason: "ledger"}))
		r := l.propose(draft("d2"))
		assert.Equal(t, dispatch.StatusReplayed, r.Status)
		assert.Nil(t, r.Value)
		assert.Equal(t, ptr(false), r.ResultKnown)
	})
	t.Run("absent", func(t *testing.T) {
		l, o, _ := newUnknown(t)
		assert.ErrorIs(t, resolve(l, dispatch.Resolution{State: dispatch.Absent, Reason: "ledger"}), dispatch.ErrOperationEarly)
		l.pass(15*time.Second + time.Millisecond)
		require.NoError(t, resolve(l, dispatch.Resolution{State: dispatch.Absent, Reason: "ledger"}))
		assert.ErrorIs(t, resolve(l, dispatch.Resolution{State: dispatch.Absent, Reason: "again"}), dispatch.ErrOperationAbsent)
		assert.Equal(t, 1, o.calls())
		o.does(landed)
		assert.Equal(t, dispatch.StatusOK, l.propose(draft("d2")).Status)
		assert.Equal(t, 2, o.calls())
	})
	t.Run("what took place in this process", func(t *testing.T) {
		l := newLab(t)
		l.propose(draft("d1"))
		require.NoError(t, l.review(draft("d1"), "approved"))
		l.propose(draft("d2"))
		assert.ErrorIs(t, resolve(l, dispatch.Resolution{State: dispatch.Committed, Result: ijson.Raw(`{}`), Reason: "x"}), dispatch.ErrOperationSettled)
	})
	t.Run("without a reason", func(t *testing.T) {
		l, _, _ := newUnknown(t)
		assert.ErrorIs(t, resolve(l, dispatch.Resolution{State: dispatch.Committed}), dispatch.ErrResolution)
		assert.ErrorIs(t, resolve(l, dispatch.Resolution{State: dispatch.Unknown, Reason: "x"}), dispatch.ErrResolution)
		assert.Zero(t, l.count(dispatch.KindSettlement))
	})
}

func resolve(l *lab, r dispatch.Resolution) error {
	r.By = "olga"
	_, err := l.dispatcher.Resolve(context.Background(), l.who.Tenant, l.onlyOperation().ID, r)
	return err
}

// reading is a store in which something happens once an operation was read of which somebody is about to say what became.
type reading struct {
	*sqlite.Store
	once sync.Once
	then func()
}

func (s *reading) Operation(ctx context.Context, tenant, id string) (dispatch.Operation, error) {
	o, err := s.Store.Operation(ctx, tenant, id)
	s.once.Do(s.then)
	return o, err
}

// What is said of one call is not put on record of the next one, and what an operator says never gets lost without a word.
func TestSettlingIsOfTheCallThatWasRead(t *testing.T) {
	calledAnew := func(l *lab, o *outsider) (end func(dispatch.Outcome) dispatch.Result) {
		l.pass(time.Minute)
		require.NoError(l.t, resolve(l, dispatch.Resolution{State: dispatch.Absent, Reason: "not there"}))
		return l.begin(o, draft("d2"))
	}
	foundCommitted := func(l *lab, o *outsider) func(dispatch.Outcome) dispatch.Result {
		_, err := l.dispatcher.LookUp(context.Background(), l.who.Tenant, l.onlyOperation().ID)
		require.NoError(l.t, err)
		return nil
	}
	lookUp := func(d *dispatch.Dispatcher, l *lab, id string) error {
		_, err := d.LookUp(context.Background(), l.who.Tenant, id)
		return err
	}
	absent := func(d *dispatch.Dispatcher, l *lab, id string) error {
		_, err := d.Resolve(context.Background(), l.who.Tenant, id, dispatch.Resolution{State: dispatch.Absent, Reason: "not there", By: "olga"})
		return err
	}
	for _, row := range []struct {
		name   string
		then   func(*lab, *outsider) func(dispatch.Outcome) dispatch.Result
		settle func(*dispatch.Dispatcher, *lab, string) error
		err    error
		want   dispatch.OperationState
	}{
		{"a look-up, and it was called anew", calledAnew, lookUp, nil, dispatch.Started},
		{"an operator, and it was called anew", calledAnew, absent, dispatch.ErrMoved, dispatch.Started},
		{"an operator, and it was found", foundCommitted, absent, dispatch.ErrOperationSettled, dispatch.Committed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			o := l.outside("record_draft", findable, byRule)
			o.find = func(dispatch.Call) dispatch.Finding {
				return dispatch.Finding{State: dispatch.Committed, Value: landed.Value}
			}
			o.does(lost)
			l.propose(draft("d1"))
			var end func(dispatch.Outcome) dispatch.Result
			other := dispatch.New(&reading{Store: l.store, then: func() { end = row.then(l, o) }}, l.store.Key(), l.clock, l.snapshot)
			err := row.settle(other, l, l.onlyOperation().ID)
			assert.Equal(t, row.want, l.onlyOperation().State)
			assert.ErrorIs(t, err, row.err)
			if end != nil {
				assert.Equal(t, dispatch.StatusOK, end(landed).Status)
				assert.Equal(t, 1, l.count(dispatch.KindSettlement), "of the first call alone")
			}
		})
	}
}

// A late outcome that contradicts what was settled is appended and raised.
func TestLateOutcome(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", byRule)
	end := l.begin(o, draft("d1"))
	l.pass(time.Minute)
	require.NoError(t, resolve(l, dispatch.Resolution{State: dispatch.Absent, Reason: "not there"}))
	r := end(landed)
	assert.Equal(t, dispatch.StatusOK, r.Status, "a known outcome is reported as it is")
	assert.Equal(t, "late_outcome", r.Reasons[0].Code)
	assert.Equal(t, dispatch.Committed, l.onlyOperation().State, "nobody has called anew, so the truth stands")
	assert.Equal(t, dispatch.StatusReplayed, l.propose(draft("d2")).Status)
	assert.Equal(t, 1, l.count(dispatch.KindAction))
}

// What an outside tool may say of a call, and what is made of what it may not.
func TestOutcomesOfOutsideTools(t *testing.T) {
	for _, row := range []struct {
		name    string
		says    dispatch.Outcome
		want    dispatch.Status
		state   dispatch.OperationState
		actions int
	}{
		{"it took place", landed, dispatch.StatusOK, dispatch.Committed, 1},
		{"nothing was sent", unsent, dispatch.StatusUnavailable, dispatch.Absent, 0},
		{"it was refused", denied, dispatch.StatusUnavailable, dispatch.Absent, 0},
		{"nobody knows", lost, dispatch.StatusOutcomeUnknown, dispatch.Unknown, 0},
		{"it took place, and the answer is lost", dispatch.Outcome{Status: dispatch.StatusInvalidResult, Sent: true, Ran: true, State: dispatch.Committed}, dispatch.StatusInvalidResult, dispatch.Committed, 1},
		{"an answer that is no JSON", dispatch.Outcome{Status: dispatch.StatusOK, Sent: true, Ran: true, State: dispatch.Committed, Value: ijson.Raw(`{`)}, dispatch.StatusInvalidResult, dispatch.Committed, 1},
		{"an answer that is too long", dispatch.Outcome{Status: dispatch.StatusOK, Sent: true, Ran: true, State: dispatch.Committed, Value: ijson.Raw(`"` + string(make1001()) + `"`)}, dispatch.StatusInvalidResult, dispatch.Committed, 1},
		{"ok of nothing", dispatch.Outcome{Status: dispatch.StatusOK, Sent: true, Value: ijson.Raw(`1`)}, dispatch.StatusOutcomeUnknown, dispatch.Unknown, 0},
		{"a timeout of which it does not say that nothing took place", dispatch.Outcome{Status: dispatch.StatusTimeout, Sent: true}, dispatch.StatusOutcomeUnknown, dispatch.Unknown, 0},
		{"nothing at all", dispatch.Outcome{}, dispatch.StatusOutcomeUnknown, dispatch.Unknown, 0},
		{"a word that is none", dispatch.Outcome{Status: "fine", Sent: true, State: dispatch.Committed}, dispatch.StatusOutcomeUnknown, dispatch.Unknown, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			o := l.outside("record_draft", byRule)
			o.does(row.says)
			r := l.propose(draft("d1"))
			assert.Equal(t, row.want, r.Status)
			assert.Equal(t, row.state, l.onlyOperation().State)
			assert.Equal(t, row.actions, l.count(dispatch.KindAction))
			assert.Equal(t, 1, l.count(dispatch.KindOutcome))
			if row.want == dispatch.StatusInvalidResult {
				assert.Equal(t, ptr(false), r.ResultKnown)
				again := l.propose(draft("d2"))
				assert.Equal(t, dispatch.StatusReplayed, again.Status)
				assert.Equal(t, ptr(false), again.ResultKnown)
			}
		})
	}
}

func make1001() []byte {
	b := make([]byte, 1001)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

// startOf is what a decision began outside, or nil.
func startOf(t require.TestingT, e dispatch.Entry) *dispatch.Start {
	if e.Kind != dispatch.KindDecision {
		return nil
	}
	var d dispatch.DecisionEntry
	require.NoError(t, ijson.Unmarshal(e.Body, &d))
	return d.Started
}

// B057, outside: going on after a pause repeats nothing of what had been done before and beside it.
func TestB057ResumingRepeatsNothingOutside(t *testing.T) {
	l := newLab(t, budget(50))
	o := l.outside("record_draft", func(d *dispatch.Definition) { d.Approval = dispatch.ByRule })
	waits := l.outside("read_document", func(d *dispatch.Definition) { d.Approval = dispatch.Always })
	o.does(landed)
	waits.does(answer7)
	a, c := draft("a"), draft("c", "draft_id", "other", "idempotency_key", "draft-2")
	b := read("b", "/warehouse/labels.txt")
	assert.Equal(t, dispatch.StatusOK, l.propose(a).Status)
	assert.Equal(t, dispatch.StatusApprovalRequired, l.propose(b).Status)
	assert.Equal(t, dispatch.StatusOK, l.propose(c).Status)
	require.NoError(t, l.review(b, "approved"))
	for i := range 5 {
		assert.Equal(t, dispatch.StatusReplayed, l.propose(a).Status)
		want := dispatch.StatusApprovalRequired // without a key each is another call
		if i == 0 {
			want = dispatch.StatusOK
		}
		assert.Equal(t, want, l.propose(b).Status)
		assert.Equal(t, dispatch.StatusReplayed, l.propose(c).Status)
	}
	assert.Equal(t, 2, o.calls())
	assert.Equal(t, 1, waits.calls())
}

// B060, outside: a key is one call's, whatever the order of its members.
func TestB060OneKeyOneEffectOutside(t *testing.T) {
	l := newLab(t)
	o := l.outside("record_draft", byRule)
	o.does(landed)
	assert.Equal(t, dispatch.StatusOK, l.propose(draft("a")).Status)
	assert.Equal(t, dispatch.StatusIdempotencyConflict, l.propose(draft("b", "body", "other")).Status)
	assert.Equal(t, dispatch.StatusIdempotencyConflict, l.propose(draft("c", "draft_id", "other")).Status)
	same := `{"tool":"record_draft","arguments":{"idempotency_key":"draft-1","body":"There are 84 labels.","purpose":"inventory-summary","draft_id":"labels-note"},"call_id":"d"}`
	assert.Equal(t, dispatch.StatusReplayed, l.propose(same).Status)
	assert.Equal(t, 1, o.calls())
}

// A commit of an outcome that fails is looked for before anything is said: what is durable is told, and what is not is never
// committed twice.
func TestADoubtfulOutcome(t *testing.T) {
	for _, row := range []struct {
		name    string
		durable bool
		fails   error
		want    dispatch.OperationState
	}{
		{"it is durable, and the store does not know", true, errors.New("the disk is broken"), dispatch.Committed},
		{"it is not", false, errors.New("the disk is broken"), dispatch.Started},
		{"the store was busy", false, dispatch.ErrUnavailable, dispatch.Committed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			l.dispatcher = dispatch.New(&failing{Store: l.store, durable: row.durable, fails: row.fails}, l.store.Key(), l.clock, l.snapshot)
			o := l.outside("record_draft", byRule)
			o.does(landed)
			r, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{}, []byte(draft("d1")))
			assert.Equal(t, row.want, l.onlyOperation().State)
			assert.Equal(t, 1, o.calls())
			if row.want == dispatch.Started {
				require.ErrorIs(t, err, row.fails)
				assert.Zero(t, l.count(dispatch.KindOutcome))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, dispatch.StatusOK, r.Status)
			assert.Equal(t, 1, l.count(dispatch.KindOutcome))
		})
	}
}

// failing is a store that fails at the first outcome, which is durable all the same or not.
type failing struct {
	*sqlite.Store
	durable bool
	fails   error
	failed  bool
}

func (s *failing) Apply(ctx context.Context, c dispatch.Commit) error {
	if s.failed || len(c.Entries) == 0 || c.Entries[0].Kind != dispatch.KindOutcome {
		return s.Store.Apply(ctx, c)
	}
	s.failed = true
	if s.durable {
		if err := s.Store.Apply(ctx, c); err != nil {
			return err
		}
	}
	return s.fails
}
