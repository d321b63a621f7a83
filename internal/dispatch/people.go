package dispatch

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// What people do, on paths that no agent reaches. None of it counts a step or runs anything.

// subject names the one approval that a person means: by the exact call or by an id.
type subject struct {
	task      TaskKey
	signature string
	mode      Mode
	id        string // empty where the call itself was given
}

// exactly means the approval of exactly this proposal in that mode; empty means Enforce.
func (d *Dispatcher) exactly(p Principal, task string, mode Mode, proposal []byte) (subject, error) {
	key := TaskKey{Tenant: p.Tenant, ID: task}
	call, err := d.snapshot.Load().read(proposal, 0)
	if err != nil {
		return subject{}, err
	}
	if call.Malformed != "" {
		return subject{}, &Error{Misuse, ErrNoProposal.Code, "this is not a proposal: " + call.Malformed}
	}
	err = call.sign(d.key, key, p.Actor)
	return subject{task: key, signature: call.Signature, mode: cmp.Or(mode, Enforce)}, err
}

// shown means the approval of that id, if the signature is the one that a person was shown with it.
func (d *Dispatcher) shown(ctx context.Context, tenant, id, signature string) (subject, error) {
	a, err := d.store.Approval(ctx, tenant, id)
	if err != nil {
		return subject{}, err
	}
	if signature != a.Signature {
		return subject{}, ErrSignatureDiffers
	}
	if _, err := d.CallOf(a); err != nil {
		return subject{}, err
	}
	return subject{task: a.Task, signature: signature, mode: a.Mode, id: id}, nil
}

// CallOf gives the very call that an approval covers, or ErrProposalDiffers if that is not what the store gave with it. Of a
// final one, whose exact call may be gone, it gives what there is.
func (d *Dispatcher) CallOf(a Approval) (ijson.Raw, error) {
	// As it was stored: what the tool drops by now was a part of what was signed, and a limit that is lower by now is for
	// what arrives.
	stored := ijson.Limits{Bytes: len(a.Call()), Depth: ijson.DefaultLimits.Depth}
	call := decode(a.Call(), 0, stored)
	err := call.sign(d.key, a.Task, a.Actor)
	differs := err != nil || call.Signature != a.Signature || call.ID != a.CallID() || call.Tool != a.Tool()
	if differs && !a.State.final() {
		return nil, ErrProposalDiffers
	}
	return a.Call(), nil
}

// ReviewCall reviews the pending approval of exactly this proposal, on behalf of the principal who proposed it.
func (d *Dispatcher) ReviewCall(ctx context.Context, p Principal, task string, mode Mode, proposal []byte, r Review) (Approval, error) {
	s, err := d.exactly(p, task, mode, proposal)
	if err != nil {
		return Approval{}, err
	}
	return d.review(ctx, s, r)
}

// Review reviews the approval of that id, if the signature is the one that the reviewer was shown with it.
func (d *Dispatcher) Review(ctx context.Context, tenant, id, signature string, r Review) (Approval, error) {
	s, err := d.shown(ctx, tenant, id, signature)
	if err != nil {
		return Approval{}, err
	}
	return d.review(ctx, s, r)
}

func (d *Dispatcher) review(ctx context.Context, s subject, r Review) (Approval, error) {
	return d.onApproval(ctx, s, func(t Task, a Approval, now time.Time) (Commit, error) {
		if err := d.current(a); err != nil && r.Decision == string(Approved) {
			return Commit{}, err
		}
		return nextReview(t, a, r, now)
	})
}

// current refuses an approval that was asked for under another definition of its tool: it could never be used. One of a
// tool that is not there now may be of use again.
func (d *Dispatcher) current(a Approval) error {
	tool, ok := d.snapshot.Load().Tools[a.Tool()]
	if !ok {
		return nil
	}
	digest, err := tool.Definition().Digest()
	if err == nil && digest != a.Definition {
		err = ErrDefinition
	}
	return err
}

// Reopen lets people vote again on a rejected or expired approval: pending, without votes, with a new time
// limit. The signature must be the one shown with the approval.
func (d *Dispatcher) Reopen(ctx context.Context, tenant, id, signature, reviewer, reason string) (Approval, error) {
	s, err := d.shown(ctx, tenant, id, signature)
	if err != nil {
		return Approval{}, err
	}
	return d.reopen(ctx, s, reviewer, reason)
}

// ReopenCall reopens the approval of exactly this proposal.
func (d *Dispatcher) ReopenCall(ctx context.Context, p Principal, task string, mode Mode, proposal []byte, reviewer, reason string) (Approval, error) {
	s, err := d.exactly(p, task, mode, proposal)
	if err != nil {
		return Approval{}, err
	}
	return d.reopen(ctx, s, reviewer, reason)
}

func (d *Dispatcher) reopen(ctx context.Context, s subject, reviewer, reason string) (Approval, error) {
	return d.onApproval(ctx, s, func(t Task, a Approval, now time.Time) (Commit, error) {
		if err := d.current(a); err != nil {
			return Commit{}, err
		}
		return nextReopen(t, a, reviewer, reason, now)
	})
}

// onApproval changes the approval that a person means. It must be the latest of its call: an older one was
// replaced, and must not come back beside it.
func (d *Dispatcher) onApproval(ctx context.Context, s subject, next func(Task, Approval, time.Time) (Commit, error)) (Approval, error) {
	var after Approval
	err := d.act(ctx, s.task, Lookup{Signature: s.signature, Mode: s.mode}, func(state State, now time.Time) (Commit, bool, error) {
		switch {
		case state.Task.Cancelled:
			return Commit{}, false, ErrReviewCancelled
		case state.Approval == nil:
			return Commit{}, false, ErrNothingPending
		case s.id != "" && s.id != state.Approval.ID:
			return Commit{}, false, ErrReplaced
		}
		c, err := next(state.Task, *state.Approval, now)
		if err == nil {
			after = c.Approvals[0].Approval
		}
		return c, true, err
	})
	return after, err
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

// Expire closes every open approval of a tenant that is past its limits, so that what people were told has
// expired stays expired.
func (d *Dispatcher) Expire(ctx context.Context, tenant string) error {
	open, err := d.store.Approvals(ctx, tenant, "", Pending, Approved)
	if err != nil || len(open) == 0 {
		return err
	}
	// Of the tasks, those alone are read that an open approval is of: the others are many more after a while.
	tasks, swept := map[TaskKey]Task{}, map[TaskKey]bool{}
	for _, a := range open {
		t, known := tasks[a.Task]
		if !known {
			if t, err = d.store.Task(ctx, a.Task); err != nil {
				return err
			}
			tasks[a.Task] = t
		}
		if swept[a.Task] || !a.lapsed(t.Steps+1, d.now(t)) {
			continue
		}
		swept[a.Task] = true
		if err := d.expireSoon(ctx, a.Task); err != nil {
			return err
		}
	}
	return nil
}

// sweepPatience is how long a sweep waits for a task. One that is held for longer is swept another time.
const sweepPatience = time.Second

func (d *Dispatcher) expireSoon(ctx context.Context, key TaskKey) error {
	waiting, cancel := context.WithTimeout(ctx, sweepPatience)
	defer cancel()
	release, err := d.store.Hold(waiting, key)
	if err != nil {
		return ctx.Err() // held by another: that is no fault, unless the caller gave up
	}
	defer release()
	_, err = d.expireHeld(ctx, key)
	return err
}

// expireHeld is Expire for one task that the caller holds. It says whether it closed any.
func (d *Dispatcher) expireHeld(ctx context.Context, key TaskKey) (closed bool, err error) {
	expiry := d.expiry(ctx)
	err = d.actHeld(ctx, key, Lookup{}, func(s State, now time.Time) (Commit, bool, error) {
		c, some, err := expiry(s, now)
		closed = some
		return c, some, err
	})
	return closed, err
}

// expiry computes the commit that closes what has lapsed.
func (d *Dispatcher) expiry(ctx context.Context) func(State, time.Time) (Commit, bool, error) {
	return func(s State, now time.Time) (Commit, bool, error) {
		open, err := d.store.Approvals(ctx, s.Task.Tenant, s.Task.ID, Pending, Approved)
		if err != nil {
			return Commit{}, false, err
		}
		return nextExpiry(s.Task, open, now)
	}
}

// CreateTask makes a task. It gives ErrTaskExists if there is one of that name, whoever's it is.
func (d *Dispatcher) CreateTask(ctx context.Context, t Task, by string) error {
	if err := checkTask(t); err != nil {
		return err
	}
	t.Steps, t.Spent, t.Entries, t.Revision, t.Cancelled = 0, Spent{}, 0, 0, false
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
