package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func outputBytes(n int) func(*dispatch.Definition) {
	return func(d *dispatch.Definition) { d.Limits.OutputBytes = n }
}

// A result that breaks its promise takes nothing along: no record, no action, and the approval is still good once the
// tool's definition is mended.
func TestInvalidResult(t *testing.T) {
	l := newLab(t)
	l.redefine("record_draft", outputBytes(1)) // {"draft_id":"labels-note"} has 26
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	r := l.propose(draft("d1"))
	assert.Equal(t, dispatch.Result{Task: l.task, Step: 2, CallID: ptr("d1"), Status: dispatch.StatusInvalidResult, PolicyVersion: r.PolicyVersion}, r)
	assert.Equal(t, exitDenied, statusCode(r))
	assert.Empty(t, l.drafts())
	assert.Zero(t, l.count(dispatch.KindAction))
	approvals, err := l.store.Approvals(t.Context(), l.who.Tenant, "", dispatch.Approved)
	require.NoError(t, err)
	assert.Len(t, approvals, 1)

	var e dispatch.DecisionEntry
	entries := l.entries()
	require.NoError(t, ijson.Unmarshal(entries[len(entries)-1].Body, &e))
	assert.Equal(t, dispatch.StatusInvalidResult, e.Status)
	assert.Equal(t, "record_draft: the result is 26 bytes long; limits.output_bytes is 1", e.Detail)
}

// A saved result passes the present limit again. That the call was carried out is told all the same.
func TestReplayOfAResultThatMayNotBeTold(t *testing.T) {
	l := newLab(t)
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	require.Equal(t, dispatch.StatusOK, l.propose(draft("d1")).Status)
	l.redefine("record_draft", outputBytes(25))
	r := l.propose(draft("d1"))
	assert.Equal(t, dispatch.StatusReplayed, r.Status)
	assert.Nil(t, r.Value)
	assert.Equal(t, ptr(false), r.ResultKnown)
	b, err := ijson.Encode(r)
	require.NoError(t, err)
	assert.Contains(t, string(b), `"result_known":false`)

	l.redefine("record_draft", outputBytes(26))
	r = l.propose(draft("d1"))
	assert.JSONEq(t, `{"draft_id":"labels-note"}`, string(r.Value))
	assert.Nil(t, r.ResultKnown)
}
