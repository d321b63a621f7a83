package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Snapshot is policy, configuration and tools as one immutable value. A dispatch pins one and sees no other.
type Snapshot struct {
	// Version is the policy version: every decision must carry it.
	Version  string
	Decider  Decider
	Profiles map[string]Profile
	Tools    map[string]Tool
	// Limits of proposals.
	Limits ijson.Limits
	// By is the operating-system user who put the snapshot in place.
	By string
	// Kept gives what Version stands for: the policy with its layers and data, and the configuration. It is kept with the
	// activation. Nil keeps nothing.
	Kept func() (policy, config []byte, err error)
}

// Dispatcher judges proposals and carries out what is allowed. It is safe for concurrent use.
type Dispatcher struct {
	store    Store
	key      []byte
	clock    func() time.Time
	snapshot atomic.Pointer[pinned]
}

// pinned is a snapshot in use.
type pinned struct {
	*Snapshot
	// definitions holds the digests of its tools' definitions, by name, as far as they were needed.
	definitions sync.Map
	// activating has room for the one who puts the version on record; active says that it is.
	activating chan struct{}
	active     atomic.Bool
}

func (p *pinned) digest(name string, def *Definition) (string, error) {
	if known, ok := p.definitions.Load(name); ok {
		return known.(string), nil
	}
	digest, err := def.Digest()
	if err == nil {
		p.definitions.Store(name, digest)
	}
	return digest, err
}

// New makes a dispatcher over a store. The key is the store's and keys the signatures; the clock is read for
// every dispatch and act.
func New(store Store, key []byte, clock func() time.Time, s *Snapshot) *Dispatcher {
	d := &Dispatcher{store: store, key: key, clock: clock}
	d.Use(s)
	return d
}

// Use makes s the snapshot of every dispatch that starts from now on.
func (d *Dispatcher) Use(s *Snapshot) {
	d.snapshot.Store(&pinned{Snapshot: s, activating: make(chan struct{}, 1)})
}

// Snapshot is the one in use.
func (d *Dispatcher) Snapshot() *Snapshot { return d.snapshot.Load().Snapshot }

// attempts bounds how often a dispatch or an act is computed again because the task was changed meanwhile.
const attempts = 3

// Dispatch judges the bytes of one proposal for a task and runs what is allowed. When it returns a result,
// the step, the decision and every effect are durable; when it returns an error nothing was judged, no step
// was counted and nothing ran: ErrUnknownTask (also for an actor who is not the task's), ErrUnavailable or the
// context's error. Only after a fault of the store it may be that the dispatch is durable without its answer, and that a tool
// outside was called; the same call then finds out.
func (d *Dispatcher) Dispatch(ctx context.Context, p Principal, task string, o Origin, proposal []byte) (Result, error) {
	snap := d.snapshot.Load()
	call, err := snap.read(proposal, o.Length)
	if err != nil {
		return Result{}, err
	}
	j := judging{snap: snap, key: TaskKey{Tenant: p.Tenant, ID: task}, principal: p, origin: o, call: call, mayAsk: true}
	v, err := d.judged(ctx, j)
	if err == nil && v.ask != nil {
		// The task is not held while its tool is asked what became of an earlier call. Whatever it says is on record then.
		if err = d.lookUp(ctx, snap, *v.ask); err == nil {
			j.mayAsk = false
			v, err = d.judged(ctx, j)
		}
	}
	switch {
	case err != nil:
		return Result{}, err // what is not durable is not told
	case v.begun == nil:
		return v.result, nil
	}
	return d.carryOut(ctx, v.tool, v.begun)
}

// judging is a proposal on its way to a decision.
type judging struct {
	snap      *pinned
	key       TaskKey
	principal Principal
	origin    Origin
	call      Call
	// mayAsk says that a tool may be asked what became of an earlier call, which is done once.
	mayAsk bool
}

// verdict is what came of it: the result, a call that was started of an outside tool, or an operation that should be asked about
// first. In the last case nothing is on record yet.
type verdict struct {
	result Result
	tool   Tool
	begun  *Begun
	ask    *Operation
}

// judged decides with the task held, and commits what was decided.
func (d *Dispatcher) judged(ctx context.Context, j judging) (verdict, error) {
	release, err := d.store.Hold(ctx, j.key)
	if err != nil {
		return verdict{}, err
	}
	defer release()
	for attempt := 1; attempt <= attempts; attempt++ {
		v, err := d.judge(ctx, j, attempt)
		if !errors.Is(err, ErrMoved) {
			return v, err
		}
	}
	return verdict{}, ErrUnavailable
}

// judge makes one attempt, which gives ErrMoved if the task was changed meanwhile.
func (d *Dispatcher) judge(ctx context.Context, j judging, attempt int) (verdict, error) {
	facts, tool, err := d.facts(ctx, j)
	if err != nil {
		return verdict{}, err
	}
	if err := d.activate(ctx, j.snap, facts.Now); err != nil {
		return verdict{}, err
	}
	if facts.crowded() {
		// What nobody answered in time must not keep others from being asked for.
		closed, err := d.expireHeld(ctx, j.key)
		if err != nil {
			return verdict{}, err
		}
		if closed {
			if facts, tool, err = d.facts(ctx, j); err != nil {
				return verdict{}, err
			}
		}
	}
	if err := facts.fix(j.origin.Door, attempt); err != nil {
		return verdict{}, err
	}
	decision, err := judge(ctx, j.snap.Decider, j.snap.Version, facts.Asked, facts.input)
	if err != nil {
		return verdict{}, err
	}
	var outcome Outcome
	switch {
	case decision.Status == StatusOutcomeUnknown && j.mayAsk && facts.Mode == Enforce:
		if o := facts.askable(); o != nil && d.askedByCall(j.snap, o, facts.Now) != nil {
			return verdict{ask: o}, nil
		}
	case decision.Effect == Resume || decision.Effect == Allow && facts.Tool.IsOutside():
		begun, err := d.start(ctx, facts, decision)
		return verdict{tool: tool, begun: begun}, d.unanswered(err, facts)
	case decision.Effect == Allow:
		outcome = tool.Run(ctx, facts.Call).checked(tool, *facts.Tool, facts.Call.Target)
		outcome, err = outcome.sealed(sealer{d.key, j.key.Tenant}, facts.Tool, facts.Call.sensitive)
	case decision.Effect == Replay:
		outcome = savedResult(tool, *facts.Tool, facts.Operation)
	}
	if err != nil {
		return verdict{}, err
	}
	commit, result, err := Next(facts, decision, outcome)
	if err != nil {
		return verdict{}, err
	}
	return verdict{result: result}, d.unanswered(d.store.Apply(ctx, commit), facts)
}

// unanswered says of an error which step goes without an answer.
func (d *Dispatcher) unanswered(err error, f Facts) error {
	if err == nil || errors.Is(err, ErrMoved) {
		return err
	}
	return fmt.Errorf("step %d of task %s gives no answer: %w", f.Step, f.Task.ID, err)
}

// facts gathers what a decision is made on. The tool is nil where the facts know none.
func (d *Dispatcher) facts(ctx context.Context, j judging) (Facts, Tool, error) {
	snap, key, p, call := j.snap, j.key, j.principal, j.call
	f := Facts{Mode: cmp.Or(j.origin.Mode, Enforce), Call: call}
	tool := snap.Tools[call.Tool]
	if call.Malformed == "" && tool != nil {
		def := tool.Definition()
		f.Tool = &def
		var err error
		if f.Definition, err = snap.digest(call.Tool, &def); err != nil {
			return Facts{}, nil, err
		}
		f.Call.point(tool, def)
	}
	if err := f.Call.sign(d.key, key, p.Actor); err != nil {
		return Facts{}, nil, err
	}
	if call.Malformed == "" && (tool != nil || snap.discreet()) {
		if err := f.Call.sealArguments(sealer{d.key, key.Tenant}, f.Tool); err != nil {
			return Facts{}, nil, err
		}
	}
	look := Lookup{Signature: f.Call.Signature, Mode: f.Mode, Actor: p.Actor, Key: f.Call.Key}
	if f.Tool != nil && f.Tool.Effect == Write {
		look.Tool, look.Target = f.Call.Tool, f.Call.Target
	}
	var err error
	if f.State, err = d.store.Load(ctx, key, look); err != nil {
		return Facts{}, nil, err
	}
	if f.Task.Actor != p.Actor {
		return Facts{}, nil, ErrUnknownTask
	}
	f.Now, f.Step = d.now(f.Task), f.Task.Steps+1
	if f.Tool != nil && (len(f.Open) > 0 || f.Tool.IsOutside()) {
		if f.Call.Effect, err = f.Call.effect(d.key, key, f.Tool); err != nil {
			return Facts{}, nil, err
		}
	}
	if profile, ok := snap.Profiles[f.Task.Profile]; ok {
		f.Profile = &profile
	}
	return f, tool, nil
}

// now is the store's time: the clock's, but never before what the task has already seen.
func (d *Dispatcher) now(t Task) time.Time {
	now := d.clock().UTC().Truncate(time.Millisecond)
	if now.Before(t.Updated) {
		return t.Updated
	}
	return now
}

// act changes a task without a dispatch: compute gives the commit for the state as it is, and false if there
// is nothing to do.
func (d *Dispatcher) act(ctx context.Context, key TaskKey, look Lookup, compute func(State, time.Time) (Commit, bool, error)) error {
	release, err := d.store.Hold(ctx, key)
	switch {
	case err == nil:
		defer release()
	case errors.Is(err, ErrUnavailable):
		// Whoever holds the task is stuck. A person must be able to act all the same, and the guard makes it safe.
	default:
		return err
	}
	return d.actHeld(ctx, key, look, compute)
}

// actHeld is act without the hold: the caller has it, or goes on without it.
func (d *Dispatcher) actHeld(ctx context.Context, key TaskKey, look Lookup, compute func(State, time.Time) (Commit, bool, error)) error {
	for range attempts {
		state, err := d.store.Load(ctx, key, look)
		if err != nil {
			return err
		}
		commit, some, err := compute(state, d.now(state.Task))
		if err != nil || !some {
			return err
		}
		if err = d.store.Apply(ctx, commit); !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return ErrUnavailable
}
