package journal

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// record is a record that is made up for a test, of one task.
type record []dispatch.Entry

func (r record) EntriesIn(_ context.Context, tenant, task string, kind dispatch.Kind, span dispatch.Span[dispatch.Place]) iter.Seq2[dispatch.Entry, error] {
	before := func(e dispatch.Entry, p *dispatch.Place) bool {
		return p != nil && (e.Step < p.Step || e.Step == p.Step && e.N < p.N)
	}
	return func(yield func(dispatch.Entry, error) bool) {
		for _, e := range r {
			in := e.Task.Tenant == tenant && e.Task.ID == task && e.Kind == kind
			if in && !(span.After != nil && (before(e, span.After) || e.Place() == *span.After)) && (span.Before == nil || before(e, span.Before)) && !yield(e, nil) {
				return
			}
		}
	}
}

func (r record) all() iter.Seq2[dispatch.Entry, error] {
	return func(yield func(dispatch.Entry, error) bool) {
		for _, e := range r {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// add appends an entry at a place.
func (r *record) add(t *testing.T, kind dispatch.Kind, step, n int, body func(h dispatch.EntryHeader) any) {
	h := header(kind)
	h.Step, h.N = step, n
	*r = append(*r, entryOf(t, h, body(h)))
}

// abroad is a task with calls of outside tools: a read that is answered behind another dispatch (step 1), a write that is
// refused (2), a write that took place (4), one that an operator settled (5), one that a look-up did (6), and one of which
// nothing is on record (7).
func abroad(t *testing.T) (r record) {
	decision := func(step int, effect dispatch.Effect, tool string, started bool) {
		r.add(t, dispatch.KindDecision, step, 0, func(h dispatch.EntryHeader) any {
			id := fmt.Sprint("c", step)
			d := dispatch.DecisionEntry{EntryHeader: h, CallID: &id, Actor: "learner", Status: "resource_denied",
				Input:    ijson.Raw(`{"call":{"tool":"` + tool + `","arguments":{}},"tool":{"effect":"write"}}`),
				Decision: dispatch.Decision{Effect: effect, Status: "ok", PolicyVersion: "v1", Reasons: []dispatch.Reason{{Code: "judged", Message: "judged"}}}}
			if effect == dispatch.Deny {
				d.Decision.Status = d.Status
			}
			if effect == dispatch.Resume {
				d.Decision.Status = dispatch.StatusResumed
			}
			if started {
				d.Status, d.Started = dispatch.StatusStarted, &dispatch.Start{Definition: "d"}
			}
			return d
		})
	}
	outcome := func(step, n, of int, o dispatch.OutcomeEntry) {
		r.add(t, dispatch.KindOutcome, step, n, func(h dispatch.EntryHeader) any {
			o.EntryHeader, o.Dispatch, o.CallID, o.Actor, o.Tool = h, of, fmt.Sprint("c", of), "learner", "send"
			return o
		})
	}
	action := func(step, n, of int, value string) {
		r.add(t, dispatch.KindAction, step, n, func(h dispatch.EntryHeader) any {
			a := dispatch.ActionEntry{EntryHeader: h, Dispatch: of, CallID: fmt.Sprint("c", of), Actor: "learner", Tool: "send"}
			if value != "" {
				a.Value = ijson.Raw(value)
			}
			return a
		})
	}
	settlement := func(step, n int, state dispatch.OperationState, by string) {
		r.add(t, dispatch.KindSettlement, step, n, func(h dispatch.EntryHeader) any {
			return dispatch.SettlementEntry{EntryHeader: h, Operation: fmt.Sprint("op-", step), Dispatch: step, Run: 1, CallID: fmt.Sprint("c", step), Actor: "learner", Tool: "send", State: state, By: by}
		})
	}
	r.add(t, dispatch.KindTask, 0, 0, func(h dispatch.EntryHeader) any {
		return dispatch.TaskEntry{EntryHeader: h, Actor: "learner", By: "root"}
	})
	decision(1, dispatch.Allow, "fetch", true)
	decision(2, dispatch.Allow, "send", true)
	outcome(2, 1, 2, dispatch.OutcomeEntry{Operation: "op-2", Run: 1, State: dispatch.Absent, Status: dispatch.StatusUnavailable, Reasons: []dispatch.Reason{{Code: "http_422", Message: "422"}}, Detail: "refused"})
	outcome(2, 2, 1, dispatch.OutcomeEntry{Status: dispatch.StatusOK})
	action(2, 3, 1, `{"price":7}`)
	decision(3, dispatch.Deny, "send", false)
	decision(4, dispatch.Resume, "send", true)
	outcome(4, 1, 4, dispatch.OutcomeEntry{Operation: "op-2", Run: 2, State: dispatch.Committed, Status: dispatch.StatusOK})
	action(4, 2, 4, `{"sent":true}`)
	decision(5, dispatch.Allow, "send", true)
	outcome(5, 1, 5, dispatch.OutcomeEntry{Operation: "op-5", Run: 1, State: dispatch.Unknown, Status: dispatch.StatusOutcomeUnknown})
	settlement(5, 2, dispatch.Unknown, "")
	settlement(5, 3, dispatch.Committed, "root")
	action(5, 4, 5, "")
	decision(6, dispatch.Allow, "send", true)
	settlement(6, 1, dispatch.Committed, "")
	action(6, 2, 6, `{"sent":true}`)
	decision(7, dispatch.Allow, "send", true)
	return r
}

// The status of a decision is what the caller got, wherever that stands.
func TestDecisionsAreJoinedWithTheirOutcomes(t *testing.T) {
	r := abroad(t)
	want := map[int]dispatch.Status{1: "ok", 2: "unavailable", 3: "resource_denied", 4: "ok", 5: "outcome_unknown", 6: "started", 7: "started"}
	for d, err := range Decisions(t.Context(), r, r.all()) {
		require.NoError(t, err)
		assert.Equal(t, want[d.Step], d.Status, d.Step)
		delete(want, d.Step)
		if d.Step == 2 {
			assert.Equal(t, "refused", d.Detail)
			assert.Equal(t, []dispatch.Reason{{Code: "judged", Message: "judged"}, {Code: "http_422", Message: "422"}}, d.Reasons)
		}
	}
	assert.Empty(t, want)
}

// Filters see the joined status, and outcomes by their own.
func TestFilterByTheJoinedStatus(t *testing.T) {
	r := abroad(t)
	for status, want := range map[string][]dispatch.Place{
		"ok":          {{Task: "labels-1", Step: 1}, {Task: "labels-1", Step: 2, N: 2}, {Task: "labels-1", Step: 4}, {Task: "labels-1", Step: 4, N: 1}},
		"unavailable": {{Task: "labels-1", Step: 2}, {Task: "labels-1", Step: 2, N: 1}},
		"started":     {{Task: "labels-1", Step: 6}, {Task: "labels-1", Step: 7}},
		"resumed":     nil,
	} {
		var got []dispatch.Place
		f := Filter{Statuses: []string{status}}
		for _, e := range r {
			wanted, err := f.Match(t.Context(), r, e)
			require.NoError(t, err)
			if wanted {
				got = append(got, e.Place())
			}
		}
		assert.Equal(t, want, got, status)
	}
}

// An action is of the dispatch that called, and says who found out that it took place.
func TestActionsOfOutsideCalls(t *testing.T) {
	r := abroad(t)
	type row struct {
		step    int
		settled string
	}
	var got []row
	for a, err := range Actions(t.Context(), r, r.all()) {
		require.NoError(t, err)
		assert.EqualValues(t, "committed", a.Status)
		got = append(got, row{a.Step, a.Settled})
	}
	assert.Equal(t, []row{{1, ""}, {4, ""}, {5, "root"}, {6, "lookup"}}, got)
}

// OPA's event of a call outside has what the caller got, and the policy's answer as it was.
func TestOPAEventOfAnOutsideCall(t *testing.T) {
	r := abroad(t)
	l := NewOPALog(oneLeaf{}, r, "")
	for step, want := range map[int]string{2: "unavailable", 4: "ok", 7: "started"} {
		i := slices.IndexFunc(r, func(e dispatch.Entry) bool { return e.Step == step && e.Kind == dispatch.KindDecision })
		event, err := l.Event(t.Context(), r[i])
		require.NoError(t, err)
		assert.EqualValues(t, want, event.Custom.Status)
		result, _ := ijson.Lookup(r[i].Body, "/decision")
		assert.Equal(t, string(result), string(event.Result))
	}
}

// oneLeaf is a log that can be told from others.
type oneLeaf struct{ merkle.Log }

func (oneLeaf) Hashes(context.Context, []int64) ([]merkle.Hash, error) {
	return make([]merkle.Hash, 1), nil
}

// The trace tells a call's result when it comes, and what was settled by itself.
func TestTraceOfOutsideCalls(t *testing.T) {
	var got []string
	for e, err := range Trace(abroad(t).all()) {
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%d %s %s %s %s%s%s", e.E, e.Kind, e.Call, e.Status, e.Operation, e.Reviewer, string(e.Value)))
	}
	assert.Equal(t, []string{
		"1 user_task   ",
		"2 proposal c1  ", "3 decision c1 allow ",
		"4 proposal c2  ", "5 decision c2 allow ",
		"6 result c2 unavailable ",
		`7 result c1 ok {"price":7}`,
		"8 proposal c3  ", "9 decision c3 resource_denied ",
		"10 proposal c4  ", "11 decision c4 resumed ", "12 action  committed ", `13 result c4 ok {"sent":true}`,
		"14 proposal c5  ", "15 decision c5 allow ", "16 result c5 outcome_unknown ",
		"17 settlement c5 unknown op-5", "18 settlement c5 committed op-5root", "19 action  committed ",
		"20 proposal c6  ", "21 decision c6 allow ", "22 settlement c6 committed op-6", "23 action  committed ",
		"24 proposal c7  ", "25 decision c7 allow ",
		"26 result c6 started ", "27 result c7 started ",
	}, got)
}
