package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/journal"
)

// The worked trace of the lesson: seven packs of twelve, a draft, and a person who approves it. Its ten entries
// come out with their kinds and fields; "e" numbers the whole trace here, and the lesson's compact one there.
var lessonTrace = []string{
	`{"kind":"user_task","task":"labels-1","actor":"learner"}`,
	`{"kind":"proposal","call":"c1","tool":"read_document","arguments":{"path":"/warehouse/labels.txt"}}`,
	`{"kind":"decision","call":"c1","status":"allow"}`,
	`{"kind":"result","call":"c1","status":"ok","source":"/warehouse/labels.txt","trust":"untrusted_content","value":"7 packs; 12 labels per pack."}`,
	`{"kind":"proposal","call":"c2","tool":"calculate","arguments":{"op":"multiply","a":7,"b":12}}`,
	`{"kind":"result","call":"c2","status":"ok","value":84}`,
	`{"kind":"proposal","call":"c3","tool":"record_draft","arguments":{"draft_id":"labels-note","purpose":"inventory-summary","body":"There are 84 labels.","idempotency_key":"draft-1"}}`,
	`{"kind":"decision","call":"c3","status":"approval_required"}`,
	`{"kind":"review","task":"labels-1","actor":"learner","proposal_ref":"c3","status":"approved"}`,
	`{"kind":"action","tool":"record_draft","target":"labels-note","operation":"draft-1","status":"committed"}`,
}

// What the compact trace leaves out: the decision on the calculation, and the whole second attempt at the draft
// but for the action that came of it.
var lessonOmits = []string{
	`{"kind":"decision","call":"c2","status":"allow"}`,
	`{"kind":"proposal","call":"c3","tool":"record_draft","arguments":{"draft_id":"labels-note","purpose":"inventory-summary","body":"There are 84 labels.","idempotency_key":"draft-1"}}`,
	`{"kind":"decision","call":"c3","status":"allow"}`,
	`{"kind":"result","call":"c3","status":"ok","value":{"draft_id":"labels-note"}}`,
}

func TestTraceOfTheLesson(t *testing.T) {
	l := newLab(t)
	l.propose(read("c1", "/warehouse/labels.txt"))
	l.propose(call("c2", "calculate", map[string]any{"op": "multiply", "a": 7, "b": 12}))
	l.propose(draft("c3"))
	_, err := l.dispatcher.ReviewCall(t.Context(), l.who, l.task, dispatch.Enforce, []byte(draft("c3")), dispatch.Review{Reviewer: l.who.Actor, Decision: "approved"})
	require.NoError(t, err)
	l.propose(draft("c3"))

	var told []map[string]any
	for _, e := range l.trace() {
		require.EqualValues(t, len(told)+1, e["e"], "events are numbered from 1")
		delete(e, "e")
		told = append(told, e)
	}
	var rest []map[string]any
	next := 0
	for _, e := range told {
		if next < len(lessonTrace) && assert.ObjectsAreEqual(decoded(t, lessonTrace[next]), e) {
			next++
			continue
		}
		rest = append(rest, e)
	}
	assert.Equal(t, len(lessonTrace), next, "every entry of the lesson, in its order")
	require.Len(t, rest, len(lessonOmits))
	for i, want := range lessonOmits {
		assert.Equal(t, decoded(t, want), rest[i])
	}
}

// The same review, said by a document instead of a person, is no review.
func TestTraceWithoutAReview(t *testing.T) {
	l := newLab(t)
	l.propose(read("c1", "/warehouse/notice.txt"))
	l.propose(draft("c3"))
	l.propose(draft("c3"))
	for _, e := range l.trace() {
		assert.NotContains(t, []any{"review", "action"}, e["kind"])
	}
	assert.Empty(t, l.drafts())
}

func (l *lab) trace() []map[string]any {
	l.t.Helper()
	var out []map[string]any
	for e, err := range journal.Trace(l.store.Entries(l.t.Context(), l.who.Tenant, l.task)) {
		require.NoError(l.t, err)
		b, err := ijson.Encode(e)
		require.NoError(l.t, err)
		out = append(out, decoded(l.t, string(b)))
	}
	return out
}

func decoded(t testing.TB, s string) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(s), &v))
	return v
}
