package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// outsideFacts are those of a write of an outside tool, approved and with a key.
func outsideFacts() Facts {
	f := writeFacts()
	f.Asked = ijson.Raw(`{}`)
	f.Tool.Local, f.Tool.Outside = "", ijson.Raw(`{}`)
	f.Tool.Limits, f.Tool.Cost = ToolLimits{Time: 10_000, OutputBytes: 500}, 3
	f.Call.Effect, f.Outward = "effect", "random"
	f.State.Approval.Actor = f.Task.Actor
	return f
}

// legal are the ways that an operation can go.
var legal = map[OperationState][]OperationState{
	"":      {Started, Committed},
	Started: {Committed, Absent, Unknown},
	Unknown: {Started, Committed, Absent, Unknown},
	Absent:  {Started, Committed},
}

func legalChange(t require.TestingT, c *OperationChange) {
	if c != nil {
		require.True(t, slices.Contains(legal[c.From], c.State), "%s to %s", c.From, c.State)
	}
}

// What a start takes is taken once, and all of it is on record before the call.
func TestNextStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := outsideFacts()
		d := Decision{Effect: rapid.SampledFrom([]Effect{Allow, Resume}).Draw(t, "effect"), Status: StatusOK, PolicyVersion: version}
		if rapid.Bool().Draw(t, "no key") && d.Effect == Allow {
			f.Call.Key = ""
		}
		if rapid.Bool().Draw(t, "a read") && d.Effect == Allow {
			f.Tool.Effect = Read
		}
		var approval *Approval
		if f.State.Approval.State = rapid.SampledFrom([]ApprovalState{Approved, Consumed}).Draw(t, "approval"); f.State.Approval.State == Approved {
			approval = f.State.Approval
		}
		old := Operation{Task: f.Task.TaskKey, Actor: f.Task.Actor, Key: f.Call.Key, State: Absent, Run: 2, Outward: "before", Since: f.Now.Add(-time.Hour), Approval: "ap-0", Signature: "another"}
		if d.Effect == Resume {
			old.State, old.Signature = Unknown, f.Call.Signature
			f.Operation = &old
		} else if f.Call.Key != "" && f.Tool.Effect == Write && rapid.Bool().Draw(t, "anew") {
			f.Operation = &old
		}
		if rapid.Bool().Draw(t, "deadline") {
			f.Task.Deadline = f.Now.Add(time.Duration(rapid.IntRange(1, 20_000).Draw(t, "left")) * time.Millisecond)
		}
		f.Task.InFlight = []InFlight{{Step: 1, Lease: FormatTime(f.Now), Output: 7}}

		c, b, err := NextStart(f, d, approval)
		require.NoError(t, err)
		require.Len(t, c.Entries, 1)
		require.Equal(t, KindDecision, c.Entries[0].Kind)
		var e DecisionEntry
		require.NoError(t, ijson.Unmarshal(c.Entries[0].Body, &e))
		require.Equal(t, StatusStarted, e.Status)
		require.Equal(t, b.Start, *e.Started)
		require.Equal(t, f.Step, c.Task.Steps)
		require.Equal(t, Spent{Cost: f.Task.Spent.Cost + 3, Attempts: f.Task.Spent.Attempts + 1, Output: f.Task.Spent.Output}, c.Task.Spent)
		require.Equal(t, []InFlight{{Step: 1, Lease: FormatTime(f.Now), Output: 7}, {Step: f.Step, Lease: b.Start.Lease, Output: 500}}, c.Task.InFlight)
		require.False(t, b.Deadline.After(f.Now.Add(10*time.Second)))
		require.False(t, !f.Task.Deadline.IsZero() && b.Deadline.After(f.Task.Deadline))
		require.Equal(t, FormatTime(b.Deadline.Add(5*time.Second)), b.Start.Lease)
		if approval != nil && d.Effect == Allow {
			require.Len(t, c.Approvals, 1)
			require.Equal(t, Consumed, c.Approvals[0].State)
			require.Equal(t, Approved, b.Approval.State)
		} else {
			require.Empty(t, c.Approvals)
			require.Nil(t, b.Approval)
		}
		legalChange(t, c.Operation)
		if f.Tool.Effect == Read {
			require.Nil(t, c.Operation)
			require.Empty(t, b.Start.Outward)
			return
		}
		o := c.Operation
		require.Equal(t, Started, o.State)
		require.Equal(t, f.Step, o.Step)
		require.Equal(t, o.FromRun+1, o.Run)
		require.Equal(t, b.Start.Outward, o.Outward)
		require.Equal(t, f.Call.Signature, o.Signature)
		switch {
		case d.Effect == Resume:
			require.Equal(t, "before", o.Outward)
			require.Equal(t, old.Since, o.Since)
			require.Equal(t, "ap-0", o.Approval)
		case f.Call.Key == "":
			require.Equal(t, "random", o.Outward)
			require.Equal(t, f.Step, o.Dispatch)
		default:
			require.Len(t, o.Outward, 64)
			require.Equal(t, f.Now, o.Since)
		}
	})
}

// Whatever has become of the operation meanwhile, and whatever came of the call: what took place has its action, nothing that is
// committed changes, and an approval comes back only if nothing was sent.
func TestNextOutcome(t *testing.T) {
	states := []OperationState{Started, Unknown, Absent, Committed}
	rapid.Check(t, func(t *rapid.T) {
		f := outsideFacts()
		if rapid.Bool().Draw(t, "a read") {
			f.Tool.Effect = Read
		}
		d := Decision{Effect: Allow, PolicyVersion: version}
		if f.Tool.Effect == Write && rapid.Bool().Draw(t, "resume") {
			d.Effect, f.Operation = Resume, &Operation{Task: f.Task.TaskKey, Actor: f.Task.Actor, Key: f.Call.Key, State: Unknown, Run: 1}
		}
		approval := f.State.Approval
		if approval.State = Approved; d.Effect == Resume {
			approval = nil
		}
		started, b, err := NextStart(f, d, approval)
		require.NoError(t, err)

		s := State{Task: started.Task}
		s.Task.Steps, s.Task.Entries = s.Task.Steps+rapid.IntRange(0, 3).Draw(t, "steps"), 4
		s.Task.Cancelled = rapid.Bool().Draw(t, "cancelled")
		if len(started.Approvals) > 0 {
			a := started.Approvals[0].Approval
			if s.Approval = &a; rapid.Bool().Draw(t, "asked again") {
				s.Approval = &Approval{ID: "ap-later", State: Pending}
			}
		}
		if b.Operation != nil {
			at := *b.Operation
			at.State = rapid.SampledFrom(states).Draw(t, "state")
			if at.State == Started && rapid.Bool().Draw(t, "called anew") {
				at.Run++
			}
			s.Operation = &at
		}
		o := rapid.SampledFrom([]Outcome{
			{Status: StatusOK, Sent: true, Ran: true, State: Committed, Value: ijson.Raw(`{"v":1}`)},
			{Status: StatusInvalidResult, Sent: true, Ran: true, State: Committed},
			{Status: StatusUnavailable, State: Absent}, {Status: StatusUnavailable, Sent: true, State: Absent},
			{Status: StatusOutcomeUnknown, Sent: true, State: Unknown},
		}).Draw(t, "outcome")

		c, r, err := NextOutcome(s, b, o, s.Task.Updated.Add(time.Minute))
		require.NoError(t, err)
		require.Equal(t, f.Step, r.Step)
		require.Equal(t, s.Task.Steps, c.Task.Steps)
		require.Equal(t, s.Task.Revision+1, c.Task.Revision)
		require.Empty(t, c.Task.InFlight)
		took := o.Ran && (s.Operation == nil || s.Operation.State != Committed)
		if took {
			require.Equal(t, s.Task.Spent.Output+int64(len(o.Value)), c.Task.Spent.Output)
		} else {
			require.Equal(t, s.Task.Spent.Output, c.Task.Spent.Output)
		}
		kinds := []Kind{}
		for i, e := range c.Entries {
			require.Equal(t, 4+i, e.N)
			kinds = append(kinds, e.Kind)
		}
		if took {
			require.Equal(t, []Kind{KindOutcome, KindAction}, kinds)
		} else {
			require.Equal(t, []Kind{KindOutcome}, kinds)
		}
		var e OutcomeEntry
		require.NoError(t, ijson.Unmarshal(c.Entries[0].Body, &e))
		legalChange(t, c.Operation)
		told := o.Status
		if e.State == Unknown && !o.Ran {
			told = StatusOutcomeUnknown // also if an earlier call is what nobody knows the outcome of
		}
		require.Equal(t, told, r.Status)
		require.Equal(t, told, e.Status)
		if b.Operation != nil {
			mine := s.Operation.Run == b.Operation.Run
			require.Equal(t, !mine || s.Operation.State == Absent || s.Operation.State == Committed, e.Late)
			if c.Operation != nil {
				require.True(t, mine)
				require.Equal(t, e.State, c.Operation.State)
			} else {
				require.Equal(t, s.Operation.State, e.State)
			}
			if d.Effect == Resume && !o.Ran && !e.Late {
				require.Equal(t, Unknown, e.State)
			}
		}
		for _, a := range c.Approvals {
			require.Equal(t, Consumed, a.From)
			require.False(t, o.Sent || o.Ran)
			require.Equal(t, b.Approval.ID, a.ID)
			require.Equal(t, s.Task.Cancelled, a.State == Withdrawn)
			require.True(t, f.Tool.Effect == Read || e.State == Absent && !e.Late)
			require.Equal(t, b.Approval.ExpiresAtStep, a.ExpiresAtStep)
			require.Equal(t, b.Approval.ExpiresAt, a.ExpiresAt)
		}
	})
}

// The key that a tool sees is the same for the same call of the same operation, and no other's.
func TestOutwardKeys(t *testing.T) {
	key := func(edit func(*Facts)) string {
		f := outsideFacts()
		edit(&f)
		c, _, err := NextStart(f, Decision{Effect: Allow}, nil)
		require.NoError(t, err)
		return c.Operation.Outward
	}
	same := key(func(*Facts) {})
	assert.Equal(t, same, key(func(f *Facts) { f.Step, f.Call.ID = 99, "other" }))
	for name, edit := range map[string]func(*Facts){
		"tenant":    func(f *Facts) { f.Task.Tenant = "other" },
		"task":      func(f *Facts) { f.Task.ID = "other" },
		"actor":     func(f *Facts) { f.Task.Actor = "other" },
		"key":       func(f *Facts) { f.Call.Key = "other" },
		"signature": func(f *Facts) { f.Call.Signature = "other" },
	} {
		assert.NotEqual(t, same, key(edit), name)
	}
}
