package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/policy-dispatch/govern/internal/failpoint"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Settling says what became of an operation whose outcome is not known. It calls nothing again, and counts no step.

// A tool is asked a bounded number of times what became of one call. While its word that nothing did cannot count yet, an agent's
// calls ask less often: they must not use up what may be asked later. An operator may ask for longer.
const (
	mostEarlyLookups    = 3
	mostLookups         = 10
	mostOperatorLookups = 100
)

// Errors of settling. Each changes nothing.
var (
	ErrOperationSettled  = &Error{Refused, "operation_settled", "the operation took place and is on record as that; there is nothing to settle"}
	ErrOperationUnderWay = &Error{Refused, "operation_under_way", "the call is under way; wait until its lease ends"}
	ErrOperationEarly    = &Error{Refused, "operation_early", "it is too early to say that nothing took place: a call that was sent late could still arrive"}
	ErrOperationAbsent   = &Error{Refused, "operation_absent", "the operation is on record as absent already"}
	ErrResolution        = &Error{Misuse, "resolution", "an operation is resolved as committed or as absent, by somebody and with a reason"}
	ErrResolutionResult  = &Error{Misuse, "resolution_result", "the result is none that the tool can give"}
	ErrNoLookup          = &Error{Refused, "no_lookup", "the tool cannot be asked what became of this operation; find out, and say it with govern operations resolve"}
	ErrLookupsSpent      = &Error{Refused, "lookups_spent", fmt.Sprintf("the tool was asked %d times what became of this operation, and is not asked again; find out, and say it with govern operations resolve", mostOperatorLookups)}
)

// Resolution is an operator's word on an operation.
type Resolution struct {
	// State is Committed or Absent.
	State OperationState
	// Result is what the call gave, as the tool would have said it; nil if nobody knows.
	Result ijson.Raw
	Reason string
	By     string
}

// askable is the operation that keeps a call from running because its outcome is not known.
func (f *Facts) askable() *Operation {
	if o := f.Operation; o != nil && o.StateAt(f.Now) == Unknown {
		return o
	}
	return f.unsettled()
}

// askedByCall is the tool that a call may ask about an operation, or nil.
func (d *Dispatcher) askedByCall(snap *pinned, o *Operation, now time.Time) Finder {
	most := mostLookups
	if tool := snap.Tools[o.Tool]; tool != nil && o.early(tool.Definition(), now) != nil {
		most = mostEarlyLookups
	}
	return d.finder(snap, o, most)
}

// finder is the tool that can be asked about an operation, if it was asked less often than that, or nil.
func (d *Dispatcher) finder(snap *pinned, o *Operation, most int) Finder {
	tool := snap.Tools[o.Tool]
	if tool == nil || o.Lookups >= most {
		return nil
	}
	def := tool.Definition()
	digest, err := snap.digest(o.Tool, &def)
	if err != nil || digest != o.Definition || !def.Recovery.Lookup {
		return nil
	}
	finder, _ := tool.(Finder)
	return finder
}

// LookUp asks the tool of an operation what became of it, and puts its answer on record, whatever that is.
func (d *Dispatcher) LookUp(ctx context.Context, tenant, id string) (Operation, error) {
	o, err := d.store.Operation(ctx, tenant, id)
	if err != nil {
		return o, err
	}
	t, err := d.store.Task(ctx, o.Task)
	if err != nil {
		return o, err
	}
	snap := d.snapshot.Load()
	switch state := o.StateAt(d.now(t)); {
	case state == Started:
		return o, o.underWay()
	case state == Committed:
		return o, ErrOperationSettled
	case state == Absent:
		return o, ErrOperationAbsent
	case o.Lookups >= mostOperatorLookups:
		return o, ErrLookupsSpent
	case d.finder(snap, &o, mostOperatorLookups) == nil:
		return o, ErrNoLookup
	}
	if err := d.lookUp(ctx, snap, o); err != nil {
		return o, err
	}
	return d.store.Operation(ctx, tenant, id)
}

// lookUp asks, with no task held, and records the answer if the operation is still as it was.
func (d *Dispatcher) lookUp(ctx context.Context, snap *pinned, found Operation) error {
	o, err := d.store.Operation(ctx, found.Task.Tenant, found.ID) // with the exact call
	if err != nil {
		return err
	}
	if o.Run != found.Run || o.State != found.State {
		return nil // another was faster
	}
	call, err := callOf(snap, &o)
	if err != nil {
		return err
	}
	finder := d.finder(snap, &o, mostOperatorLookups)
	if finder == nil {
		return nil // others asked meanwhile, as often as may be
	}
	def := snap.Tools[o.Tool].Definition()
	asking, cancel := context.WithTimeout(ctx, def.Limits.Time.Duration())
	finding := finder.Find(asking, call)
	cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	outcome, err := d.found(snap.Tools[o.Tool], o.Task.Tenant, call, finding)
	if err != nil {
		return err
	}
	err = d.settle(ctx, o, func(now Operation, at time.Time) (settlement, error) {
		if now.State != o.State || now.StateAt(at) != Unknown {
			return settlement{}, ErrMoved
		}
		s := settlement{state: outcome.State, outcome: outcome}
		if early := now.early(def, at); s.state == Absent && early != nil {
			s.state, s.outcome.Detail = Unknown, early.Error()
		}
		return s, nil
	})
	if errors.Is(err, ErrMoved) {
		return nil // another was faster
	}
	return err
}

// found makes of a tool's finding an outcome that can be kept.
func (d *Dispatcher) found(tool Tool, tenant string, call Call, f Finding) (Outcome, error) {
	def := tool.Definition()
	o := Outcome{Status: StatusOK, Sent: true, State: f.State, Detail: f.Detail}
	switch f.State {
	case Committed:
		o.Ran, o.Value = true, f.Value
		if f.Value == nil {
			o.Status = StatusInvalidResult
		}
	case Absent:
		o.Status = StatusUnavailable
	default:
		o.Status, o.State = StatusOutcomeUnknown, Unknown
	}
	return o.checkedOutside(tool, def).sealed(sealer{d.key, tenant}, &def, call.sensitive)
}

// callOf is the very call of an operation, as its tool is to be asked about it.
func callOf(snap *pinned, o *Operation) (Call, error) {
	proposal := or(o.ExactProposal, o.Proposal)
	call := decode(proposal, 0, ijson.Limits{Bytes: len(proposal), Depth: ijson.DefaultLimits.Depth})
	if call.Malformed != "" {
		return call, fmt.Errorf("the call of operation %s is not readable: %s; the state was changed by hand or is damaged: restore it from a backup", o.ID, call.Malformed)
	}
	tool := snap.Tools[o.Tool]
	def := tool.Definition()
	call.point(tool, def)
	if len(call.Violations) > 0 {
		return call, fmt.Errorf("the call of operation %s does not match its tool any more", o.ID)
	}
	call.Signature, call.Sending.Key = o.Signature, o.Outward
	return call, nil
}

// Resolve puts an operator's word on record of what became of an operation. It calls nothing.
func (d *Dispatcher) Resolve(ctx context.Context, tenant, id string, r Resolution) (Operation, error) {
	if r.State != Committed && r.State != Absent || r.Reason == "" || r.By == "" || r.State == Absent && r.Result != nil {
		return Operation{}, ErrResolution
	}
	if err := checkReason(r.Reason); err != nil {
		return Operation{}, err
	}
	o, err := d.store.Operation(ctx, tenant, id)
	if err != nil {
		return o, err
	}
	if o.State == Committed {
		return o, ErrOperationSettled // its exact call is gone, so no result can be held against it
	}
	snap := d.snapshot.Load()
	outcome, err := d.resolved(snap, &o, r)
	if err != nil {
		return o, err
	}
	err = d.settle(ctx, o, func(now Operation, at time.Time) (settlement, error) {
		switch state := now.StateAt(at); {
		case state == Committed:
			return settlement{}, ErrOperationSettled
		case state == Started:
			return settlement{}, now.underWay()
		case state == Absent && r.State == Absent:
			return settlement{}, ErrOperationAbsent
		}
		if r.State == Absent {
			var def Definition
			if tool := snap.Tools[now.Tool]; tool != nil {
				def = tool.Definition()
			}
			if err := now.early(def, at); err != nil {
				return settlement{}, err
			}
		}
		return settlement{state: r.State, outcome: outcome, by: r.By, reason: r.Reason}, nil
	})
	if err != nil {
		return o, err
	}
	return d.store.Operation(ctx, tenant, id)
}

// ResolveCall is Resolve for the operation that keeps exactly this call from running.
func (d *Dispatcher) ResolveCall(ctx context.Context, p Principal, task string, proposal []byte, r Resolution) (Operation, error) {
	snap := d.snapshot.Load()
	call, err := snap.read(proposal, 0)
	if err != nil {
		return Operation{}, err
	}
	f, _, err := d.facts(ctx, judging{snap: snap, key: TaskKey{Tenant: p.Tenant, ID: task}, principal: p, call: call})
	if err != nil {
		return Operation{}, err
	}
	o := f.askable()
	if o == nil {
		o = f.Operation
	}
	if o == nil {
		return Operation{}, ErrUnknownOperation
	}
	return d.Resolve(ctx, p.Tenant, o.ID, r)
}

// resolved makes of an operator's word an outcome that can be kept. A result must be one that the tool, as it is now, can give.
func (d *Dispatcher) resolved(snap *pinned, o *Operation, r Resolution) (Outcome, error) {
	outcome := Outcome{Status: StatusInvalidResult, State: r.State, Ran: r.State == Committed}
	if r.Result == nil {
		return outcome, nil
	}
	tool := snap.Tools[o.Tool]
	if tool == nil {
		return outcome, &Error{Misuse, ErrResolutionResult.Code, "the tool " + o.Tool + " is not there any more, so no result of it can be checked; leave out the result"}
	}
	call, err := callOf(snap, o)
	if err != nil {
		return outcome, err
	}
	def := tool.Definition()
	outcome.Status = StatusOK
	if outcome.Value, err = given(call, def, r.Result); err != nil {
		return outcome, err
	}
	outcome = outcome.checkedOutside(tool, def)
	if outcome.Value == nil {
		return outcome, &Error{Misuse, ErrResolutionResult.Code, ErrResolutionResult.Message + ": " + outcome.Detail}
	}
	return outcome.sealed(sealer{d.key, o.Task.Tenant}, &def, call.sensitive)
}

// given wraps what an operator says that a call gave, as an adapter wraps what a tool says.
func given(call Call, def Definition, result ijson.Raw) (ijson.Raw, error) {
	return ijson.Marshal(map[string]any{"source": "operator", "tool": def.Name, "version": def.Version, "call_id": call.ID,
		"trust": "untrusted_content", "value": result})
}

// underWay says until when the lease of a started operation is.
func (o *Operation) underWay() error {
	return &Error{Refused, ErrOperationUnderWay.Code, ErrOperationUnderWay.Message + ", at " + FormatTime(o.Lease)}
}

// early says why it cannot be said yet that nothing took place of an operation: only once its last call can have reached nobody.
func (o *Operation) early(def Definition, now time.Time) error {
	if from := o.Lease.Add(def.Recovery.Settle.Duration()); !now.After(from) {
		return &Error{Refused, ErrOperationEarly.Code, ErrOperationEarly.Message + "; say it after " + FormatTime(from)}
	}
	return nil
}

// settlement is what is to be put on record of an operation.
type settlement struct {
	state      OperationState
	outcome    Outcome
	by, reason string
}

// settle records a settlement of an operation. It gives ErrMoved if its last call is not the one any more that it is about.
func (d *Dispatcher) settle(ctx context.Context, o Operation, compute func(Operation, time.Time) (settlement, error)) error {
	look := Lookup{Actor: o.Actor, Key: o.Key, Dispatch: o.Dispatch}
	return d.act(ctx, o.Task, look, func(state State, now time.Time) (Commit, bool, error) {
		switch at := state.Operation; {
		case at == nil:
			return Commit{}, false, ErrUnknownOperation
		case at.Run != o.Run:
			return Commit{}, false, ErrMoved
		}
		s, err := compute(*state.Operation, now)
		if err != nil {
			return Commit{}, false, err
		}
		c, err := nextSettlement(state, s, now)
		failpoint.Here("before a settlement")
		return c, true, err
	})
}

func nextSettlement(st State, s settlement, now time.Time) (Commit, error) {
	o := *st.Operation
	c := begin(st.Task, now)
	c.settle(&o, s.state, s.outcome)
	if s.state == Unknown {
		c.Operation.Lookups++
	}
	call := decode(o.Proposal, 0, ijson.Limits{Bytes: len(o.Proposal), Depth: ijson.DefaultLimits.Depth})
	e := SettlementEntry{Operation: o.ID, Dispatch: o.Step, Run: o.Run, CallID: call.ID, Actor: o.Actor, Tool: o.Tool, Target: o.Target, State: s.state,
		By: s.by, Reason: s.reason, Detail: s.outcome.Detail}
	if err := c.record(KindSettlement, now, &e.EntryHeader, &e); err != nil {
		return Commit{}, err
	}
	if s.state != Committed {
		return c, nil
	}
	value := s.outcome.Value
	c.Task.Spent.Output += int64(len(value))
	a := ActionEntry{Dispatch: o.Step, CallID: call.ID, Actor: o.Actor, Tool: o.Tool, Target: o.Target, Operation: o.Key, Signature: o.Signature,
		Value: or(s.outcome.SealedValue, value), ValueBytes: len(exactBeside(s.outcome.SealedValue, value)), Approval: o.Approval,
		PolicyVersion: o.PolicyVersion}
	return c, c.record(KindAction, now, &a.EntryHeader, &a)
}
