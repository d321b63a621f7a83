package dispatch

import (
	"fmt"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// leaseGrace is how much longer than a call its lease is: time to put the outcome on record before anybody else may settle it.
const leaseGrace = 5 * time.Second

// Begun is a call of an outside tool that is on record as started. Whoever began it owns it until the lease ends.
type Begun struct {
	Facts    Facts
	Decision Decision
	Start    Start
	// Operation is that of a write as it was started, and nil for a read.
	Operation *Operation
	// Approval is the one that the call consumed, as it was before, with its exact bytes; nil if it needed none.
	Approval *Approval
	Deadline time.Time
}

// NextStart says what a call of an outside tool changes before its first byte is sent: the step, the decision, what the call
// takes and reserves, and of a write the operation. Like Next it is a pure function.
//
// The approval is the one that the call is to consume, with its exact bytes; nil consumes none.
func NextStart(f Facts, d Decision, approval *Approval) (Commit, Begun, error) {
	c := f.begin()
	b := Begun{Facts: f, Decision: d, Deadline: f.Now.Add(f.Tool.Limits.Time.Duration())}
	if at := f.Task.Deadline; !at.IsZero() && at.Before(b.Deadline) {
		b.Deadline = at
	}
	lease := b.Deadline.Add(leaseGrace)
	b.Start = Start{Definition: f.Definition, Deadline: FormatTime(b.Deadline), Lease: FormatTime(lease), Output: int64(f.Tool.Limits.OutputBytes)}

	c.Task.Spent.run(f.Tool.Cost, nil)
	c.Task.InFlight = append(append([]InFlight{}, f.Task.InFlight...), InFlight{Step: f.Step, Lease: b.Start.Lease, Output: b.Start.Output})
	if d.Effect == Allow && approval != nil {
		b.Approval = approval
		c.change(approval, func(a *Approval) { a.State = Consumed })
	}
	if f.Tool.Effect == Write {
		c.start(f, d, lease)
		b.Operation = &c.Operation.Operation
		b.Start.Operation, b.Start.Run, b.Start.Effect, b.Start.Outward = c.Operation.ID, c.Operation.Run, c.Operation.Effect, c.Operation.Outward
	}
	err := c.decide(f, DecisionEntry{Decision: d, Started: &b.Start, Status: StatusStarted})
	return c, b, err
}

// start makes the operation of a call that is about to be sent: a new one, one anew of which nothing had taken place, or one
// that is called again under the key that the tool knows it by.
func (c *Commit) start(f Facts, d Decision, lease time.Time) {
	next := Operation{Task: f.Task.TaskKey, Actor: f.Task.Actor, Key: f.Call.Key, Signature: f.Call.Signature, Tool: f.Call.Tool, Run: 1,
		Effect: f.Call.Effect, Definition: f.Definition, Since: f.Now, Outward: f.Outward, Target: f.Call.Target,
		Proposal: or(f.Call.SealedProposal, f.Call.Proposal), ExactProposal: exactBeside(f.Call.SealedProposal, f.Call.Proposal)}
	if n := len(c.Approvals); n > 0 && c.Approvals[n-1].State == Consumed {
		next.Approval = c.Approvals[n-1].ID
	}
	switch {
	case d.Effect == Resume:
		next = *f.Operation
	case f.Call.Key == "":
		next.Dispatch = f.Step
	}
	next.State, next.Step, next.Lease, next.Lookups, next.PolicyVersion = Started, f.Step, lease, 0, d.PolicyVersion
	c.operate(f.Operation, next)
	if f.Call.Key != "" && d.Effect != Resume {
		c.Operation.Outward = outward(c.Operation.Operation)
	}
}

// outward derives the key that names an operation to its tool from the operation's full identity and its call. It says
// nothing that an agent has written, and is the same for whoever calls again.
func outward(o Operation) string {
	identity, err := ijson.Marshal([]any{o.Task.Tenant, o.Task.ID, o.Actor, o.Key, o.Signature})
	if err != nil {
		panic(err) // texts that came through a strict decoder
	}
	return ijson.Digest("govern outward key v1", identity)
}

// NextOutcome says what a call changes once it is known what came of it, or that this is not known. The state is the task's
// as it is by now, with the operation and the latest approval of the call. It is a pure function.
func NextOutcome(s State, b Begun, o Outcome, now time.Time) (Commit, Result, error) {
	f := b.Facts
	c := begin(s.Task, now)
	if b.Operation != nil && s.Operation == nil {
		return Commit{}, Result{}, fmt.Errorf("the operation %s is gone; the state was changed by hand or is damaged: restore it from a backup", b.Operation.ID)
	}
	// What was settled as committed has its action already.
	took := o.Ran && !(b.Operation != nil && s.Operation.State == Committed && s.Operation.Run == b.Operation.Run)
	c.land(b, took, o)
	e := OutcomeEntry{Dispatch: f.Step, CallID: f.Call.ID, Actor: f.Task.Actor, Tool: f.Call.Tool, Target: f.Call.Target}
	if b.Operation != nil {
		e.Operation, e.Run = b.Operation.ID, b.Operation.Run
		e.State, e.Late = c.close(s.Operation, b, o)
		if e.State == Unknown && !o.Ran { // what became of this call alone would read as if nothing had taken place
			o.Status, o.Retryable = StatusOutcomeUnknown, f.Tool.Recovery.Retention > 0
		}
	}
	e.Status, e.Retryable, e.Reasons, e.Detail = o.Status, o.Retryable, o.Reasons, o.Detail
	if !o.Sent && !o.Ran && (b.Operation == nil || e.State == Absent && !e.Late) {
		c.giveBack(s, b)
	}
	e.Approvals = standsOf(c.Approvals)
	if err := c.record(KindOutcome, now, &e.EntryHeader, &e); err != nil {
		return Commit{}, Result{}, err
	}
	result := Result{Task: s.Task.ID, Step: f.Step, CallID: f.Call.id(), Status: o.Status, Retryable: o.Retryable, Reasons: o.Reasons,
		PolicyVersion: b.Decision.PolicyVersion}
	if e.Late {
		result.Reasons = append(append([]Reason{}, o.Reasons...), lateReason)
	}
	if took {
		if err := c.act(b, o, now); err != nil {
			return Commit{}, Result{}, err
		}
	}
	if o.Ran {
		if result.Value, result.SealedValue = o.Value, o.SealedValue; o.Value == nil {
			result.ResultKnown = new(bool)
		}
	}
	return c, result, nil
}

// LateOutcome is the code of the reason that a result has whose outcome came after others had acted without it. Somebody must look.
const LateOutcome = "late_outcome"

var lateReason = Reason{Code: LateOutcome, Message: "the outcome came after the operation had been settled or called anew; somebody must compare the record with the tool"}

// land ends the call's being in flight: what was reserved is free, and what it gave is spent.
func (c *Commit) land(b Begun, took bool, o Outcome) {
	var left []InFlight
	for _, f := range c.Task.InFlight {
		if f.Step != b.Facts.Step {
			left = append(left, f)
		}
	}
	c.Task.InFlight = left
	if took {
		c.Task.Spent.Output += int64(len(o.Value))
	}
}

// close settles the operation of a call, and says where it stands now. An outcome is late if the operation is not this
// call's any more: it changes nothing then, but that what took place is committed, if nobody has called anew.
func (c *Commit) close(now *Operation, b Begun, o Outcome) (state OperationState, late bool) {
	next := o.State
	if b.Decision.Effect == Resume && next != Committed {
		next = Unknown // an earlier call may have taken place, whatever became of this one
	}
	switch mine := now.Run == b.Operation.Run; {
	case mine && (now.State == Started || now.State == Unknown):
	case mine && now.State == Absent && next == Committed:
		late = true
	default:
		return now.State, true
	}
	if next != now.State {
		c.settle(now, next, o)
	}
	return next, late
}

// settle moves an operation to what was found out of it.
func (c *Commit) settle(now *Operation, state OperationState, o Outcome) {
	next := *now
	next.State = state
	if state == Committed {
		next.Result, next.Exact, next.ExactProposal = or(o.SealedValue, o.Value), exactBeside(o.SealedValue, o.Value), nil
	}
	c.Operation = &OperationChange{Operation: next, From: now.State, FromRun: now.Run}
}

// giveBack returns the approval that a call consumed of which nothing was sent, with its old limits; unless the call was
// asked for again since, and people see to that.
func (c *Commit) giveBack(s State, b Begun) {
	latest := s.Approval
	if b.Approval == nil || latest == nil || latest.ID != b.Approval.ID || latest.State != Consumed {
		return
	}
	back := *latest
	back.Exact = b.Approval.Exact
	c.change(&back, func(a *Approval) {
		a.State = Approved
		if s.Task.Cancelled || s.Task.Actor != a.Actor {
			a.State = Withdrawn // as it would be, had it not been in use then
		}
	})
}

// act puts on record that a call took place.
func (c *Commit) act(b Begun, o Outcome, now time.Time) error {
	f := b.Facts
	e := ActionEntry{Dispatch: f.Step, CallID: f.Call.ID, Actor: f.Task.Actor, Tool: f.Call.Tool, Target: f.Call.Target, Operation: f.Call.Key,
		Signature: f.Call.Signature, Value: or(o.SealedValue, o.Value), ValueBytes: len(exactBeside(o.SealedValue, o.Value)),
		PolicyVersion: b.Decision.PolicyVersion}
	switch {
	case b.Approval != nil:
		e.Approval, e.Reviewers = b.Approval.ID, b.Approval.reviewers()
	case b.Operation != nil: // of an earlier call
		e.Approval = b.Operation.Approval
	}
	return c.record(KindAction, now, &e.EntryHeader, &e)
}
