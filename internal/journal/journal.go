// Package journal reads the entries: the decision log, the action log and the trace are three readings of one
// record. Every reading streams, so that a long record needs no more memory than a short one.
package journal

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Decision is one row of the decision log: one judged dispatch, whatever came of it.
type Decision struct {
	Time   string  `json:"time"`
	Task   string  `json:"task"`
	Step   int     `json:"step"`
	CallID *string `json:"call_id"`
	Actor  string  `json:"actor"`
	Tool   string  `json:"tool,omitzero"`
	Target string  `json:"target,omitzero"`
	// Effect is what was decided, and Status what the caller got; StatusStarted as long as no outcome is on record.
	Effect        dispatch.Effect   `json:"effect"`
	Status        dispatch.Status   `json:"status"`
	Reasons       []dispatch.Reason `json:"reasons,omitzero"`
	Approval      string            `json:"approval,omitzero"`
	Signature     string            `json:"signature,omitzero"`
	Attempt       int               `json:"attempt"`
	Door          string            `json:"door"`
	PolicyVersion string            `json:"policy_version"`
	Detail        string            `json:"detail,omitzero"`
	// Length counts the bytes of a proposal that was none.
	Length int64 `json:"length,omitzero"`
	// Input is what the policy saw. With it and the policy of that version the decision can be made again.
	Input ijson.Raw `json:"input,omitzero"`
	// Place is that of the row's entry.
	Place dispatch.Place `json:"-"`
}

// Action is one row of the action log: one operation that ran.
type Action struct {
	Time string `json:"time"`
	Task string `json:"task"`
	// Step is that of the dispatch which called; the row's entry may stand at a later one.
	Step      int             `json:"step"`
	CallID    string          `json:"call_id"`
	Actor     string          `json:"actor"`
	Tool      string          `json:"tool"`
	Target    string          `json:"target,omitzero"`
	Operation string          `json:"operation,omitzero"`
	Status    dispatch.Status `json:"status"`
	// Settled says who found out that it took place, where no outcome says it: the operator, or "lookup" for the tool's.
	Settled       string   `json:"settled_by,omitzero"`
	Approval      string   `json:"approval,omitzero"`
	Reviewers     []string `json:"reviewers,omitzero"`
	PolicyVersion string   `json:"policy_version"`
	// Place is that of the row's entry.
	Place dispatch.Place `json:"-"`
}

// Activation is one moment from which on decisions were made under a version of the policy.
type Activation struct {
	Time          string `json:"time"`
	PolicyVersion string `json:"policy_version"`
	// By is the operating-system user whose process decided so.
	By string `json:"by,omitzero"`
	// Policy and Config are the digests under which the policy with its data and the configuration are kept.
	Policy string `json:"policy,omitzero"`
	Config string `json:"config,omitzero"`
	// Place is that of the row's entry.
	Place dispatch.Place `json:"-"`
}

// committed is the status of every row of the action log: it holds only what took place.
const committed dispatch.Status = "committed"

// settledByTool is who settled what the tool's look-up found out.
const settledByTool = "lookup"

// Decisions is the decision log. What came of calls of outside tools is found in the source.
func Decisions(ctx context.Context, s Source, entries iter.Seq2[dispatch.Entry, error]) iter.Seq2[Decision, error] {
	return read(entries, dispatch.KindDecision, func(at dispatch.Place, e dispatch.DecisionEntry) (Decision, error) {
		var in dispatch.Input
		if err := ijson.Unmarshal(e.Input, &in); err != nil {
			return Decision{}, err
		}
		row := Decision{Time: e.Time, Task: e.Task, Step: e.Step, CallID: e.CallID, Actor: e.Actor, Tool: in.Call.Tool,
			Effect: e.Decision.Effect, Status: e.Status, Reasons: e.Decision.Reasons, Attempt: e.Attempt, Door: e.Door,
			PolicyVersion: e.Decision.PolicyVersion, Detail: e.Detail, Length: e.Length, Input: e.Input, Place: at}
		if in.Call.Target != nil {
			row.Target = *in.Call.Target
		}
		if in.Call.Signature != nil {
			row.Signature = *in.Call.Signature
		}
		row.Approval = e.Approval
		if n := len(e.Approvals); n > 0 {
			row.Approval = e.Approvals[n-1].ID
		}
		if e.Started == nil {
			return row, nil
		}
		o, err := outcomeOf(ctx, s, e.EntryHeader)
		if o != nil {
			row.Status, row.Detail = o.Status, o.Detail
			row.Reasons = append(slices.Clip(row.Reasons), o.Reasons...)
		}
		return row, err
	})
}

// LastDecision is the latest row of a tenant's decision log, if it has one.
func LastDecision(ctx context.Context, r dispatch.Reader, tenant string) (last Decision, found bool, err error) {
	e, found, err := r.LastEntry(ctx, tenant, dispatch.KindDecision)
	if err != nil || !found {
		return last, false, err
	}
	for last, err = range Decisions(ctx, r, func(yield func(dispatch.Entry, error) bool) { yield(e, nil) }) {
	}
	return last, err == nil, err
}

// Actions is the action log. Who settled what nobody had heard of is found in the source.
func Actions(ctx context.Context, s Source, entries iter.Seq2[dispatch.Entry, error]) iter.Seq2[Action, error] {
	return read(entries, dispatch.KindAction, func(at dispatch.Place, e dispatch.ActionEntry) (Action, error) {
		row := Action{Time: e.Time, Task: e.Task, Step: cmp.Or(e.Dispatch, e.Step), CallID: e.CallID, Actor: e.Actor, Tool: e.Tool, Target: e.Target,
			Operation: e.Operation, Status: committed, Approval: e.Approval, Reviewers: e.Reviewers, PolicyVersion: e.PolicyVersion, Place: at}
		if e.Dispatch == 0 {
			return row, nil
		}
		found, err := settlementOf(ctx, s, e.EntryHeader)
		if found != nil {
			row.Settled = cmp.Or(found.By, settledByTool)
		}
		return row, err
	})
}

// Activations says which policy was in force when.
func Activations(entries iter.Seq2[dispatch.Entry, error]) iter.Seq2[Activation, error] {
	return read(entries, dispatch.KindActivation, func(at dispatch.Place, e dispatch.ActivationEntry) (Activation, error) {
		return Activation{Time: e.Time, PolicyVersion: e.PolicyVersion, By: e.By, Policy: e.Policy, Config: e.Config, Place: at}, nil
	})
}

// read gives a row for each entry of one kind, and ends at the first error.
func read[Body, Row any](entries iter.Seq2[dispatch.Entry, error], kind dispatch.Kind, row func(dispatch.Place, Body) (Row, error)) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for e, err := range entries {
			if err == nil && e.Kind != kind {
				continue
			}
			var r Row
			if err == nil {
				r, err = decode(e, func(b Body) (Row, error) { return row(e.Place(), b) })
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// decode reads an entry's bytes strictly: an entry that is not what its kind says is reported with its place.
func decode[Body, Row any](e dispatch.Entry, row func(Body) (Row, error)) (Row, error) {
	var body Body
	err := ijson.Unmarshal(e.Body, &body)
	var r Row
	if err == nil {
		r, err = row(body)
	}
	if err != nil {
		err = fmt.Errorf("the %s entry of task %s, step %d, number %d cannot be read: %w", e.Kind, e.Task.ID, e.Step, e.N, err)
	}
	return r, err
}
