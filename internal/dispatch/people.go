package dispatch

import (
	"context"
	"errors"
	"time"
)

// What people do, on paths that no agent reaches. None of it counts a step or runs anything.

// ReviewCall reviews the pending approval of exactly this proposal, on behalf of the principal who proposed it.
func (d *Dispatcher) ReviewCall(ctx context.Context, p Principal, task string, proposal []byte, r Review) (Approval, error) {
	key, look, err := d.exactly(p, task, proposal)
	if err != nil {
		return Approval{}, err
	}
	return d.review(ctx, key, look, "", r)
}

// exactly looks for the approval of exactly this proposal.
func (d *Dispatcher) exactly(p Principal, task string, proposal []byte) (TaskKey, Lookup, error) {
	key := TaskKey{Tenant: p.Tenant, ID: task}
	call := decode(proposal, 0, d.snapshot.Load().Limits)
	if call.Malformed != "" {
		return key, Lookup{}, &Error{Misuse, "invalid_proposal", "this is not a proposal: " + call.Malformed}
	}
	err := call.sign(d.key, key, p.Actor)
	return key, Lookup{Signature: call.Signature, Mode: Enforce}, err
}

// Review reviews the approval of that id, if the signature is the one that the reviewer was shown with it.
func (d *Dispatcher) Review(ctx context.Context, tenant, id, signature string, r Review) (Approval, error) {
	a, err := d.store.Approval(ctx, tenant, id)
	if err != nil {
		return Approval{}, err
	}
	return d.review(ctx, a.Task, Lookup{ApprovalID: id}, signature, r)
}

func (d *Dispatcher) review(ctx context.Context, key TaskKey, look Lookup, signature string, r Review) (Approval, error) {
	return d.onApproval(ctx, key, look, signature, func(t Task, a Approval, now time.Time) (Commit, error) {
		return nextReview(t, a, r, now)
	})
}

// onApproval changes one approval, found by a lookup and, where it was found by its id, checked by the
// signature that a person was shown with it.
func (d *Dispatcher) onApproval(ctx context.Context, key TaskKey, look Lookup, signature string, next func(Task, Approval, time.Time) (Commit, error)) (Approval, error) {
	var after Approval
	err := d.act(ctx, key, look, func(s State, now time.Time) (Commit, bool, error) {
		switch {
		case s.Task.Cancelled:
			return Commit{}, false, ErrReviewCancelled
		case s.Approval == nil:
			return Commit{}, false, ErrNothingPending
		case look.ApprovalID != "" && signature != s.Approval.Signature:
			return Commit{}, false, ErrSignatureDiffers
		}
		c, err := next(s.Task, *s.Approval, now)
		if err == nil {
			after = c.Approvals[0].Approval
		}
		return c, true, err
	})
	return after, err
}

// Reopen lets people vote again on a rejected or expired approval: pending, without votes, with a new time
// limit. The signature must be the one shown with the approval.
func (d *Dispatcher) Reopen(ctx context.Context, tenant, id, signature, reviewer, reason string) (Approval, error) {
	a, err := d.store.Approval(ctx, tenant, id)
	if err != nil {
		return Approval{}, err
	}
	return d.reopen(ctx, a.Task, Lookup{ApprovalID: id}, signature, reviewer, reason)
}

// ReopenCall reopens the approval of exactly this proposal.
func (d *Dispatcher) ReopenCall(ctx context.Context, p Principal, task string, proposal []byte, reviewer, reason string) (Approval, error) {
	key, look, err := d.exactly(p, task, proposal)
	if err != nil {
		return Approval{}, err
	}
	return d.reopen(ctx, key, look, "", reviewer, reason)
}

func (d *Dispatcher) reopen(ctx context.Context, key TaskKey, look Lookup, signature, reviewer, reason string) (Approval, error) {
	return d.onApproval(ctx, key, look, signature, func(t Task, a Approval, now time.Time) (Commit, error) {
		return nextReopen(t, a, reviewer, reason, now)
	})
}

// Cancel ends a task for good and withdraws what waits or could still be used. It undoes nothing, and
// cancelling again changes nothing.
func (d *Dispatcher) Cancel(ctx context.Context, key TaskKey, by string) error {
	return d.act(ctx, key, Lookup{}, func(s State, now time.Time) (Commit, bool, error) {
		if s.Task.Cancelled {
			return Commit{}, false, nil
		}
		open, err := d.store.Approvals(ctx, key.Tenant, key.ID, Pending, Approved)
		if err != nil {
			return Commit{}, false, err
		}
		c, err := nextCancel(s.Task, open, by, now)
		return c, true, err
	})
}

// Expire closes every open approval of a tenant that is past its time limit, so that what people were told has
// expired stays expired. It returns how many it closed.
func (d *Dispatcher) Expire(ctx context.Context, tenant string) (int, error) {
	open, err := d.store.Approvals(ctx, tenant, "", Pending, Approved)
	if err != nil {
		return 0, err
	}
	closed := 0
	done := map[TaskKey]bool{}
	now := d.clock()
	for _, a := range open {
		if done[a.Task] || !now.After(a.ExpiresAt) {
			continue
		}
		done[a.Task] = true
		err := d.act(ctx, a.Task, Lookup{}, func(s State, now time.Time) (Commit, bool, error) {
			open, err := d.store.Approvals(ctx, tenant, s.Task.ID, Pending, Approved)
			if err != nil {
				return Commit{}, false, err
			}
			c, some, err := nextExpiry(s.Task, open, now)
			closed += len(c.Approvals)
			return c, some, err
		})
		if err != nil {
			return closed, err
		}
	}
	return closed, nil
}

// CreateTask makes a task. It gives ErrTaskExists if there is one of that name, whoever's it is.
func (d *Dispatcher) CreateTask(ctx context.Context, t Task, by string) error {
	if err := checkTask(t); err != nil {
		return err
	}
	t.Steps, t.Entries, t.Revision, t.Cancelled = 0, 0, 0, false
	c, err := nextTask(t, nil, by, d.now(Task{}))
	if err != nil {
		return err
	}
	return d.store.Apply(ctx, c)
}

// EnsureTask makes a task unless it exists with the same profile and actor. One that exists otherwise is
// refused: it keeps the actor and the profile that it was created with.
func (d *Dispatcher) EnsureTask(ctx context.Context, t Task, by string) error {
	have, err := d.store.Task(ctx, t.TaskKey)
	if errors.Is(err, ErrUnknownTask) {
		if err = d.CreateTask(ctx, t, by); !errors.Is(err, ErrTaskExists) {
			return err
		}
		have, err = d.store.Task(ctx, t.TaskKey) // another process was faster
	}
	if err != nil {
		return err
	}
	if have.Profile != t.Profile || have.Actor != t.Actor {
		return &Error{Refused, ErrTaskExists.Code, "task " + t.ID + " exists with profile " + have.Profile + " and actor " + have.Actor +
			", and the configuration says profile " + t.Profile + " and actor " + t.Actor + "; a task keeps what it was created with: configure one of another name"}
	}
	return nil
}

// AssignTask gives a task to another actor. Every approval that could still be used is withdrawn: it was given
// for somebody else.
func (d *Dispatcher) AssignTask(ctx context.Context, key TaskKey, actor, by string) error {
	return d.act(ctx, key, Lookup{}, func(s State, now time.Time) (Commit, bool, error) {
		if s.Task.Actor == actor {
			return Commit{}, false, nil
		}
		open, err := d.store.Approvals(ctx, key.Tenant, key.ID, Pending, Approved)
		if err != nil {
			return Commit{}, false, err
		}
		t := s.Task
		t.Actor = actor
		if err := checkTask(t); err != nil {
			return Commit{}, false, err
		}
		c, err := nextTask(t, open, by, now)
		return c, true, err
	})
}
