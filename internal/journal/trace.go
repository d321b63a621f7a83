package journal

import (
	"iter"
	"maps"
	"slices"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Event is one entry of the trace, which tells proposal, decision, execution and observation apart.
type Event struct {
	// E numbers the events of one trace from 1.
	E    int    `json:"e"`
	Kind string `json:"kind"`
	Task string `json:"task,omitzero"`
	// Actor is on whose behalf the task, or the call under review, was proposed.
	Actor string `json:"actor,omitzero"`
	// Reviewer is the person who voted or settled, where that is another than the actor.
	Reviewer    string          `json:"reviewer,omitzero"`
	Call        string          `json:"call,omitzero"`
	Tool        string          `json:"tool,omitzero"`
	Arguments   ijson.Raw       `json:"arguments,omitzero"`
	ProposalRef string          `json:"proposal_ref,omitzero"`
	Target      string          `json:"target,omitzero"`
	Operation   string          `json:"operation,omitzero"`
	Status      dispatch.Status `json:"status,omitzero"`
	Source      string          `json:"source,omitzero"`
	Trust       string          `json:"trust,omitzero"`
	Value       ijson.Raw       `json:"value,omitzero"`
}

// Trace tells the story of one task's entries. A call gives a proposal and a decision; one that was allowed
// also gives a result, and before it, for a write, the action that took place. Those of a call of an outside tool come when
// its outcome does, and other events may stand in between.
func Trace(entries iter.Seq2[dispatch.Entry, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var t tracer
		emit := func(events []Event) bool {
			for _, e := range events {
				t.n++
				e.E = t.n
				if !yield(e, nil) {
					return false
				}
			}
			return true
		}
		for entry, err := range entries {
			var events []Event
			if err == nil {
				events, err = t.tell(entry)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			if !emit(events) {
				return
			}
		}
		emit(t.finish())
	}
}

// tracer joins what says that a call ran with the action that follows it.
type tracer struct {
	n   int
	ran *ran
	// begun are the ids of the calls of outside tools without an outcome, by step.
	begun map[int]string
}

// ran is a call that ran, or was settled: nobody got a result of that then.
type ran struct {
	call           string
	status         dispatch.Status
	write, settled bool
}

func (t *tracer) tell(e dispatch.Entry) ([]Event, error) {
	if e.Kind == dispatch.KindAction {
		return decode(e, func(a dispatch.ActionEntry) ([]Event, error) { return t.action(a), nil })
	}
	before := t.result()
	events, err := t.other(e)
	return append(before, events...), err
}

func (t *tracer) other(e dispatch.Entry) ([]Event, error) {
	switch e.Kind {
	case dispatch.KindTask:
		return decode(e, func(b dispatch.TaskEntry) ([]Event, error) {
			return []Event{{Kind: "user_task", Task: b.Task, Actor: b.Actor}}, nil
		})
	case dispatch.KindDecision:
		return decode(e, t.decision)
	case dispatch.KindOutcome:
		return decode(e, func(b dispatch.OutcomeEntry) ([]Event, error) {
			delete(t.begun, b.Dispatch)
			t.ran = &ran{call: b.CallID, status: b.Status, write: b.Operation != ""}
			return nil, nil
		})
	case dispatch.KindSettlement:
		return decode(e, func(b dispatch.SettlementEntry) ([]Event, error) {
			t.ran = &ran{write: true, settled: true}
			return []Event{{Kind: string(b.Kind), Call: b.CallID, Tool: b.Tool, Target: b.Target, Operation: b.Operation, Status: dispatch.Status(b.State), Reviewer: b.By}}, nil
		})
	case dispatch.KindReview, dispatch.KindReopen:
		return decode(e, func(b dispatch.ReviewEntry) ([]Event, error) {
			ev := Event{Kind: string(b.Kind), Task: b.Task, Actor: b.Actor, ProposalRef: b.CallID, Status: dispatch.Status(b.Decision)}
			if b.Reviewer != b.Actor {
				ev.Reviewer = b.Reviewer
			}
			return []Event{ev}, nil
		})
	default:
		return decode(e, func(b dispatch.ClosingEntry) ([]Event, error) {
			return []Event{{Kind: string(b.Kind), Task: b.Task, Reviewer: b.By}}, nil
		})
	}
}

func (t *tracer) decision(d dispatch.DecisionEntry) ([]Event, error) {
	var in dispatch.Input
	if err := ijson.Unmarshal(d.Input, &in); err != nil {
		return nil, err
	}
	call := id(d.CallID)
	proposal := Event{Kind: "proposal", Call: call, Tool: in.Call.Tool}
	if in.Call.Malformed == nil {
		proposal.Arguments = in.Call.Arguments
	}
	decision := Event{Kind: "decision", Call: call, Status: d.Decision.Status}
	if d.Decision.Effect == dispatch.Allow {
		decision.Status = dispatch.Status(dispatch.Allow)
	}
	switch {
	case d.Started != nil:
		if t.begun == nil {
			t.begun = map[int]string{}
		}
		t.begun[d.Step] = call
	case d.Decision.Effect == dispatch.Allow:
		t.ran = &ran{call: call, status: d.Status}
	}
	return []Event{proposal, decision}, nil
}

func (t *tracer) action(a dispatch.ActionEntry) (events []Event) {
	r := ran{call: a.CallID}
	if t.ran != nil {
		r, t.ran = *t.ran, nil
	}
	if r.write || a.Record != nil {
		events = append(events, Event{Kind: "action", Tool: a.Tool, Target: a.Target, Operation: a.Operation, Status: committed})
	}
	if r.settled {
		return events
	}
	result := Event{Kind: "result", Call: a.CallID, Status: r.status}
	if r.status == dispatch.StatusOK {
		result.observe(a.Value)
	}
	return append(events, result)
}

// result tells that of a call which no action followed: nothing ran, or nothing came of it.
func (t *tracer) result() []Event {
	r := t.ran
	t.ran = nil
	if r == nil || r.settled {
		return nil
	}
	return []Event{{Kind: "result", Call: r.call, Status: r.status}}
}

// finish tells what only the end shows: the calls of outside tools whose outcome is not on record.
func (t *tracer) finish() []Event {
	events := t.result()
	for _, step := range slices.Sorted(maps.Keys(t.begun)) {
		events = append(events, Event{Kind: "result", Call: t.begun[step], Status: dispatch.StatusStarted})
	}
	return events
}

func id(callID *string) string {
	if callID == nil {
		return ""
	}
	return *callID
}

// observe shows what an adapter wrapped: a document's text with its source and its trust label, and any other
// value as it is.
func (e *Event) observe(value ijson.Raw) {
	text, isDocument := ijson.Lookup(value, "/text")
	if !isDocument {
		e.Value = value
		return
	}
	e.Value = text
	for pointer, field := range map[string]*string{"/source": &e.Source, "/trust": &e.Trust} {
		if v, ok := ijson.Lookup(value, pointer); ok {
			*field, _ = ijson.String(v)
		}
	}
}
