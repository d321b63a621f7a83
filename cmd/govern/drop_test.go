package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// redefine gives one tool a changed definition from here on.
func (l *lab) redefine(tool string, change func(*dispatch.Definition)) {
	changed := *l.snapshot
	changed.Tools = map[string]dispatch.Tool{}
	for name, t := range l.snapshot.Tools {
		changed.Tools[name] = t
	}
	changed.Tools[tool] = changedTool{l.snapshot.Tools[tool], change}
	l.snapshot = &changed
	l.dispatcher.Use(l.snapshot)
}

type changedTool struct {
	dispatch.Tool
	change func(*dispatch.Definition)
}

func (c changedTool) Definition() dispatch.Definition {
	d := c.Tool.Definition()
	c.change(&d)
	return d
}

func dropping(pointers ...string) func(*dispatch.Definition) {
	return func(d *dispatch.Definition) { d.Drop = pointers }
}

// What is dropped is gone before anything looks at the call: two proposals that differ in it alone are one call, for
// the schema, the signature, the person and the record.
func TestDroppedArguments(t *testing.T) {
	l := newLab(t)
	l.redefine("record_draft", dropping("/trace_id", "/client~1timeout", "/absent"))
	traced := func(trace string) string { return draft("d1", "trace_id", trace, "client/timeout", "SECRET-TIMEOUT") }

	first := l.propose(traced("SECRET-TRACE"))
	require.Equal(t, dispatch.StatusApprovalRequired, first.Status, "the schema, which has no such argument, does not see it")
	assert.Equal(t, first.Approval.Signature, l.propose(draft("d1")).Approval.Signature)

	// Approving the proposal as the agent wrote it finds the approval, and so does its id.
	waiting, err := l.store.Approval(t.Context(), l.who.Tenant, first.Approval.ID)
	require.NoError(t, err)
	assert.JSONEq(t, draft("d1"), string(waiting.Proposal))
	require.NoError(t, l.review(traced("SECRET-OTHER"), "rejected"))
	_, err = l.dispatcher.ReopenCall(t.Context(), l.who, l.task, dispatch.Enforce, []byte(traced("SECRET-THIRD")), "maya", "again")
	require.NoError(t, err)
	_, err = l.dispatcher.Review(t.Context(), l.who.Tenant, first.Approval.ID, first.Approval.Signature, dispatch.Review{Reviewer: "maya", Decision: "approved"})
	require.NoError(t, err)

	require.Equal(t, dispatch.StatusOK, l.propose(traced("SECRET-FOURTH")).Status)
	assert.Equal(t, dispatch.StatusReplayed, l.propose(draft("d1")).Status)
	for _, e := range l.entries() {
		assert.NotContains(t, string(e.Body), "SECRET")
	}
}

// Only what the tool that is called drops is dropped, and only where the pointer points.
func TestWhatIsNotDropped(t *testing.T) {
	l := newLab(t)
	l.redefine("record_draft", dropping("/trace_id", "/list/0"))
	for _, proposal := range []string{
		call("m1", "calculate", map[string]any{"op": "add", "a": 1, "b": 1, "trace_id": "x"}),
		draft("d1", "Trace_id", "x"),
		call("d2", "record_draft", map[string]any{"draft_id": "labels-note", "purpose": "inventory-summary", "body": "x",
			"idempotency_key": "draft-1", "list": []string{"x"}}),
	} {
		assert.Equal(t, dispatch.StatusInvalidArguments, l.propose(proposal).Status, proposal)
	}
	assert.Equal(t, dispatch.StatusInvalidProposal, l.propose(`{"call_id":"d3","tool":"record_draft","arguments":{},"trace_id":"x"}`).Status)
}

// A definition that comes to drop an argument makes another call of what waits: the stored one stays as it was signed.
func TestDroppedSinceItWasAsked(t *testing.T) {
	l := newLab(t)
	asked := l.propose(draft("d1")).Approval
	l.redefine("record_draft", dropping("/purpose"))
	review := func(decision string) error {
		_, err := l.dispatcher.Review(t.Context(), l.who.Tenant, asked.ID, asked.Signature, dispatch.Review{Reviewer: "maya", Decision: decision})
		return err
	}
	require.ErrorIs(t, review("approved"), dispatch.ErrDefinition, "it could not be used")
	require.NoError(t, review("rejected"), "it is reviewed as it was stored")
	require.ErrorIs(t, l.review(draft("d1"), "approved"), dispatch.ErrNothingPending)
	assert.Equal(t, dispatch.StatusInvalidArguments, l.propose(draft("d1")).Status, "the purpose is required, and gone")
}
