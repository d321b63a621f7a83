package dispatch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/policy-dispatch/govern/internal/failpoint"
)

// A call of an outside tool is on record as started before its first byte is sent, and the task is not held while it is under
// way. Whoever started it owns it for a lease, and puts on record what came of it. If nobody does, its outcome counts as
// unknown once the lease has ended: then it is found out, or called again where the tool remembers its key, and never just sent
// once more. The deadline of the call is before the end of its lease, so that an owner who was held up sends nothing any more.

// start puts a call of an outside tool on record.
func (d *Dispatcher) start(ctx context.Context, f Facts, decision Decision) (*Begun, error) {
	approval, err := d.toConsume(ctx, &f, decision)
	if err != nil {
		return nil, err
	}
	f.Outward = fresh()
	c, begun, err := NextStart(f, decision, approval)
	if err != nil {
		return nil, err
	}
	failpoint.Here("before the start")
	err = d.store.Apply(ctx, c)
	failpoint.Here("after the start")
	return &begun, err
}

// toConsume is the approval that a call uses up, with the exact bytes that it gets back if nothing is sent.
func (d *Dispatcher) toConsume(ctx context.Context, f *Facts, decision Decision) (*Approval, error) {
	a := f.approval()
	if decision.Effect != Allow || a == nil || a.State != Approved {
		return nil, nil
	}
	if f.Call.SealedProposal == nil {
		return a, nil
	}
	exact, err := d.store.Approval(ctx, a.Task.Tenant, a.ID)
	if err != nil {
		return nil, err
	}
	with := *a
	with.Exact = exact.Exact
	return &with, nil
}

// fresh is a key for an operation that has none of its own.
func fresh() string {
	var b [32]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// carryOut makes a call that is on record as started, and puts on record what came of it, however its caller is by then.
func (d *Dispatcher) carryOut(ctx context.Context, tool Tool, b *Begun) (Result, error) {
	outcome := d.send(ctx, tool, b)
	outcome = outcome.checkedOutside(tool, *b.Facts.Tool)
	sealed, err := outcome.sealed(sealer{d.key, b.Facts.Task.Tenant}, b.Facts.Tool, b.Facts.Call.sensitive)
	if err != nil { // what took place is on record, if not what it gave
		sealed = outcome
		sealed.Status, sealed.Value, sealed.Detail = StatusInvalidResult, nil, b.Facts.Tool.Name+": what is sensitive in the result cannot be sealed"
	}
	outcome = sealed
	if outcome.Status == StatusOutcomeUnknown {
		outcome.Retryable = b.Facts.Tool.Recovery.Retention > 0
	}
	result, err := d.conclude(context.WithoutCancel(ctx), b, outcome)
	if err != nil {
		return Result{}, fmt.Errorf("step %d of task %s was started, and %w: %w", b.Facts.Step, b.Facts.Task.ID, errNotOnRecord, err)
	}
	return result, nil
}

// errNotOnRecord says that a call may have been made, and that nobody is told what came of it.
var errNotOnRecord = errors.New("what came of it is not on record")

var (
	errCancelled = errors.New("the task was cancelled")
	errOverdue   = errors.New("the time of the call is up")
)

// send makes the call, unless the task or the call is somebody else's by now. It ends at the deadline, when the caller gives up
// and when the task is cancelled.
func (d *Dispatcher) send(ctx context.Context, tool Tool, b *Begun) Outcome {
	notSent := func(status Status, retryable bool) Outcome {
		return Outcome{Status: status, Retryable: retryable, State: Absent}
	}
	switch err := d.owns(ctx, b); {
	case errors.Is(err, errCancelled):
		return notSent(StatusCancelled, false)
	case err != nil:
		return notSent(StatusUnavailable, true)
	}
	left := b.Deadline.Sub(d.clock())
	calling, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	defer d.watch(calling, cancel, b.Facts.Task.TaskKey)()
	call := b.Facts.Call
	call.Sending = Sending{Key: b.Start.Outward, Fence: func() error {
		if err := calling.Err(); err != nil {
			return err
		}
		if !d.clock().Before(b.Deadline) {
			return errOverdue
		}
		return nil
	}}
	failpoint.Here("before the call")
	defer failpoint.Here("after the call")
	return tool.Run(calling, call)
}

// owns says why a call that was started must not be sent any more.
func (d *Dispatcher) owns(ctx context.Context, b *Begun) error {
	s, err := d.store.Load(ctx, b.Facts.Task.TaskKey, b.lookup())
	switch {
	case err != nil:
		return err
	case s.Task.Cancelled:
		return errCancelled
	case b.Operation != nil && (s.Operation == nil || s.Operation.State != Started || s.Operation.Run != b.Operation.Run):
		return ErrMoved
	}
	return nil
}

// lookup finds again what a call began.
func (b *Begun) lookup() Lookup {
	l := Lookup{Signature: b.Facts.Call.Signature, Mode: b.Facts.Mode}
	if o := b.Operation; o != nil {
		l.Actor, l.Key, l.Dispatch = o.Actor, o.Key, o.Dispatch
	}
	return l
}

// watchEvery is how often a call under way looks whether its task was cancelled, which another process may do.
const watchEvery = 100 * time.Millisecond

// watch cancels a call when its task is cancelled. It ends with ctx; the caller waits for that by calling what it gives.
func (d *Dispatcher) watch(ctx context.Context, cancel func(), key TaskKey) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if t, err := d.store.Task(ctx, key); err == nil && t.Cancelled {
				cancel()
			}
		}
	}()
	return func() { cancel(); <-done }
}

// persistence bounds how often, and how long, an outcome is put on record anew because the task was changed meanwhile. It is
// more than for a decision: this one cannot be made again.
const (
	persistence = 100
	patience    = 30 * time.Second
)

// conclude puts on record what came of a call.
func (d *Dispatcher) conclude(ctx context.Context, b *Begun, o Outcome) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key := b.Facts.Task.TaskKey
	if release, err := d.store.Hold(ctx, key); err == nil {
		defer release()
	} // Else whoever holds the task is stuck. The guard makes it safe to go on.
	var doubtful error // of a commit of which it is not known whether it is durable
	for range persistence {
		state, err := d.store.Load(ctx, key, b.lookup())
		if err != nil {
			return Result{}, err
		}
		commit, result, err := NextOutcome(state, *b, o, d.now(state.Task))
		switch {
		case err != nil:
			return Result{}, err
		case doubtful != nil && !b.inFlight(state.Task):
			return result, nil // it is
		case doubtful != nil:
			return Result{}, doubtful
		}
		failpoint.Here("before the outcome")
		err = d.store.Apply(ctx, commit)
		failpoint.Here("after the outcome")
		switch {
		case err == nil:
			return result, nil
		case errors.Is(err, ErrMoved), errors.Is(err, ErrUnavailable): // nothing of it was kept
		default:
			doubtful = err
		}
	}
	return Result{}, ErrUnavailable
}

// inFlight says whether the outcome of the call is not on record.
func (b *Begun) inFlight(t Task) bool {
	return slices.ContainsFunc(t.InFlight, func(f InFlight) bool { return f.Step == b.Facts.Step })
}
