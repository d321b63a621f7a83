package journal

import (
	"iter"

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
	// Reviewer is the person who voted, where that is another than the actor.
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
// also gives a result, and before it, for a write, the action that took place.
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

// tracer joins an allowed decision with the action that follows it.
type tracer struct {
	n       int
	allowed *dispatch.DecisionEntry
}

func (t *tracer) tell(e dispatch.Entry) ([]Event, error) {
	if e.Kind == dispatch.KindAction {
		return decode(e, func(a dispatch.ActionEntry) ([]Event, error) { return t.action(a), nil })
	}
	before := t.finish()
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
		t.allowed = &d
	}
	return []Event{proposal, decision}, nil
}

func (t *tracer) action(a dispatch.ActionEntry) []Event {
	result := Event{Kind: "result", Call: a.CallID}
	if t.allowed != nil {
		result.Status = t.allowed.Status
		t.allowed = nil
	}
	if result.Status == dispatch.StatusOK {
		result.observe(a.Value)
	}
	if a.Record == nil {
		return []Event{result}
	}
	return []Event{{Kind: "action", Tool: a.Tool, Target: a.Target, Operation: a.Operation, Status: committed}, result}
}

// finish tells the result of an allowed call that no action followed: nothing ran, or nothing came of it.
func (t *tracer) finish() []Event {
	d := t.allowed
	if d == nil {
		return nil
	}
	t.allowed = nil
	return []Event{{Kind: "result", Call: id(d.CallID), Status: d.Status}}
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
