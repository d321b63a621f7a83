package dispatch

import (
	"slices"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Next says everything that a dispatch changes, as one value, and what its caller is told once that is
// durable. It is a pure function: the same facts, decision and outcome give the same commit under any store,
// in a test, a replay or a crash. Of a call that an outside tool is to carry out, NextStart says it.
//
// The outcome counts only where the decision allows or replays.
func Next(f Facts, d Decision, o Outcome) (Commit, Result, error) {
	c := f.begin()
	status, retryable, detail := d.Status, d.Retryable, d.Detail
	var value, sealed ijson.Raw
	switch d.Effect {
	case Allow:
		status, retryable, detail = o.Status, o.Retryable, o.Detail
		c.spend(f, o)
		if o.Ran {
			c.consume(f)
			c.keep(f, o)
		}
		if status == StatusOK {
			value, sealed = o.Value, o.SealedValue
		}
	case Replay:
		value, sealed, detail = o.Value, o.SealedValue, o.Detail
	case RequireApproval:
		if err := c.ask(f, d); err != nil {
			return Commit{}, Result{}, err
		}
	default:
		c.lapse(f, status)
	}

	if err := c.decide(f, DecisionEntry{Decision: d, Status: status, Retryable: retryable, Detail: detail}); err != nil {
		return Commit{}, Result{}, err
	}
	if d.Effect == Allow && o.Ran {
		action := ActionEntry{CallID: f.Call.ID, Actor: f.Task.Actor, Tool: f.Call.Tool, Target: f.Call.Target, Operation: f.Call.Key,
			Signature: f.Call.Signature, Value: or(o.SealedValue, o.Value), ValueBytes: len(exactBeside(o.SealedValue, o.Value)),
			Record: or(o.SealedRecord, o.Record), PolicyVersion: d.PolicyVersion}
		if a := f.approval(); a != nil && a.State == Approved {
			action.Approval, action.Reviewers = a.ID, a.reviewers()
		}
		if err := c.record(KindAction, f.Now, &action.EntryHeader, &action); err != nil {
			return Commit{}, Result{}, err
		}
	}
	result := Result{Task: f.Task.ID, Step: f.Step, CallID: f.Call.id(), Status: status, Value: value, SealedValue: sealed, Retryable: retryable,
		Approval: c.standing(f, status), PolicyVersion: d.PolicyVersion}
	if d.Effect == Replay && value == nil {
		result.ResultKnown = new(bool)
	}
	if d.Effect != Allow && d.Effect != Replay {
		result.Reasons = d.Reasons
	}
	return c, result, nil
}

// begin starts the commit of a dispatch, which counts a step.
func (f *Facts) begin() Commit {
	c := begin(f.Task, f.Now)
	c.Task.Steps, c.Task.Entries = f.Step, 0
	if old := f.outdated(); old != nil {
		c.change(old, func(a *Approval) { a.State = Withdrawn })
	}
	return c
}

// decide puts the decision on record, with everything that it was made on.
func (c *Commit) decide(f Facts, e DecisionEntry) error {
	e.CallID, e.Actor, e.Door, e.Attempt, e.Operation = f.Call.id(), f.Task.Actor, f.Door, f.Attempt, f.Call.Key
	e.Input, e.InputDigest, e.Sealed = f.Asked, ijson.Digest("govern input v1", f.Asked), f.Call.SealedArguments != nil
	e.Approvals = standsOf(c.Approvals)
	if a := c.subject(f); a != nil {
		switch {
		case a.State != Consumed:
			e.Approval = a.ID
		case len(c.Approvals) > 0: // used by this very dispatch
			e.Approval, e.Reviewers = a.ID, a.reviewers()
		}
	}
	if f.Call.Malformed != "" {
		e.Length = f.Call.Length
	}
	return c.record(KindDecision, f.Now, &e.EntryHeader, &e)
}

// spend takes an allowed run from the budgets of the task.
func (c *Commit) spend(f Facts, o Outcome) {
	var value ijson.Raw
	if o.Ran {
		value = o.Value
	}
	c.Task.Spent.run(f.Tool.Cost, value)
}

// consume uses up the approved approval of an executed call, whether or not this decision asked for it.
func (c *Commit) consume(f Facts) {
	if a := f.approval(); a != nil && a.State == Approved {
		c.change(a, func(a *Approval) { a.State = Consumed })
	}
}

// keep commits what a write did: its record, and under its key the operation that a retry replays.
func (c *Commit) keep(f Facts, o Outcome) {
	if f.Tool.Effect != Write {
		return
	}
	if o.Record != nil {
		c.Record = &Record{Task: f.Task.TaskKey, Tool: f.Call.Tool, Target: f.Call.Target,
			Value: or(o.SealedRecord, o.Record), Exact: exactBeside(o.SealedRecord, o.Record)}
	}
	if f.Call.Key != "" {
		c.operate(f.Operation, Operation{Task: f.Task.TaskKey, Actor: f.Task.Actor, Key: f.Call.Key, Signature: f.Call.Signature,
			Tool: f.Call.Tool, State: Committed, Step: f.Step, Run: 1, Result: or(o.SealedValue, o.Value), Exact: exactBeside(o.SealedValue, o.Value)})
	}
}

// operate makes an operation's next row. The old one is nil, or one of which nothing took place.
func (c *Commit) operate(old *Operation, next Operation) {
	change := &OperationChange{Operation: next}
	if old != nil {
		change.From, change.FromRun = old.State, old.Run
		change.Run = old.Run + 1
	}
	change.ID = OperationID(next.Task, next.Actor, next.Key, next.Dispatch)
	c.Operation = change
}

// ask makes the approval that a person is to see, or puts the one that is there under the present terms.
func (c *Commit) ask(f Facts, d Decision) error {
	a := f.approval()
	if a.Open() {
		// Votes stay: they were given for exactly this call. Whether they suffice is the present policy's word.
		if a.State != Pending || !a.Terms.equal(*d.Approval) {
			c.change(a, func(a *Approval) {
				a.State, a.ExpiresAtStep = Pending, 0
				a.Terms, a.PolicyVersion = *d.Approval, d.PolicyVersion
				if limit := f.Now.Add(a.Terms.ttl()); limit.Before(a.ExpiresAt) {
					a.ExpiresAt = limit
				}
			})
		}
		return nil
	}
	fresh := Approval{Task: f.Task.TaskKey, Actor: f.Task.Actor, Signature: f.Call.Signature, Definition: f.Definition, Mode: f.Mode,
		Step: f.Step, Proposal: or(f.Call.SealedProposal, f.Call.Proposal),
		Exact: exactBeside(f.Call.SealedProposal, f.Call.Proposal), State: Pending, Terms: *d.Approval, ExpiresAt: f.Now.Add(d.Approval.ttl()),
		PolicyVersion: d.PolicyVersion}
	name, err := ijson.Marshal([]any{fresh.Task.Tenant, fresh.Task.ID, fresh.Signature, fresh.Definition, fresh.Mode, fresh.Step})
	if err != nil {
		return err
	}
	fresh.ID = "ap-" + ijson.Digest("govern approval v1", name)[:16]
	c.Approvals = append(c.Approvals, ApprovalChange{Approval: fresh})
	return nil
}

// lapse makes an expiry lasting once a dispatch has met it, so that no clock that is set back revives it. The status alone
// does not do: a rule of the site may deny with it, and that passes.
func (c *Commit) lapse(f Facts, status Status) {
	if a := f.approval(); a.lapsed(f.Step, f.Now) && status == StatusApprovalExpired {
		c.change(a, func(a *Approval) { a.State = Expired })
	}
}

// change appends an approval's next row. The old one is left alone: it may be somebody else's value.
func (c *Commit) change(old *Approval, edit func(*Approval)) {
	next := *old
	next.Votes = slices.Clone(old.Votes)
	edit(&next)
	if next.State.final() {
		next.Exact = nil // nobody needs it any more
	}
	c.Approvals = append(c.Approvals, ApprovalChange{Approval: next, From: old.State})
}

// standing is the approval that a caller is told about: the one that its call waits for or was refused under.
func (c *Commit) standing(f Facts, status Status) *ResultApproval {
	switch status {
	case StatusApprovalRequired, StatusApprovalRejected, StatusApprovalExpired:
	default:
		return nil
	}
	if a := c.subject(f); a != nil {
		return resultApproval(*a)
	}
	return nil
}

// subject is the approval of this call as the commit leaves it, if there is one that counts.
func (c *Commit) subject(f Facts) *Approval {
	if n := len(c.Approvals); n > 0 && c.Approvals[n-1].State != Withdrawn {
		return &c.Approvals[n-1].Approval
	}
	return f.approval()
}

func (a *Approval) reviewers() []string {
	var out []string
	for _, v := range a.Votes {
		out = append(out, v.Reviewer)
	}
	return out
}

func (c *Call) id() *string {
	if !c.HasID {
		return nil
	}
	return &c.ID
}
