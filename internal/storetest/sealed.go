package storetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

var exact = ijson.Raw(`{"value":"S3CR3T"}`)

// secretive gives a store one of each row that keeps exact bytes.
func secretive(t *testing.T, s dispatch.Store) (dispatch.Task, dispatch.Commit) {
	task := apply(t, s, create(key("labels-1")))
	c := step(task)
	a := ask(task, "a1", "signature-1")
	a.Exact = exact
	c.Approvals = []dispatch.ApprovalChange{a}
	c.Operation, c.Record = operation(task, "draft-1"), record(task, "note")
	c.Operation.Exact, c.Record.Exact = exact, exact
	return apply(t, s, c), c
}

var sealed = []part{
	{"exact bytes come back beside the sealed form, and nowhere in lists of approvals", func(t *testing.T, s dispatch.Store) {
		task, c := secretive(t, s)

		found, err := s.Approval(t.Context(), tenant, "a1")
		require.NoError(t, err)
		assert.Equal(t, c.Approvals[0].Approval, found)
		state := load(t, s, task.TaskKey, dispatch.Lookup{Signature: "signature-1", Mode: dispatch.Enforce, Actor: "learner", Key: "draft-1"})
		assert.Equal(t, &c.Operation.Operation, state.Operation)
		assert.Nil(t, state.Approval.Exact)
		all := everything(t, s)
		assert.Equal(t, []dispatch.Operation{c.Operation.Operation}, all.Operations)
		assert.Equal(t, []dispatch.Record{*c.Record}, all.Records)
		assert.Nil(t, all.Approvals[0].Exact)
		for a, err := range s.ApprovalsIn(t.Context(), tenant, "", false, dispatch.Span[string]{}) {
			require.NoError(t, err)
			assert.Nil(t, a.Exact)
			assert.Equal(t, c.Approvals[0].Proposal, a.Proposal)
		}
	}},
	{"where nothing is sensitive there are no exact bytes", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		c := step(task)
		c.Approvals = []dispatch.ApprovalChange{ask(task, "a1", "signature-1")}
		c.Operation, c.Record = operation(task, "draft-1"), record(task, "note")
		apply(t, s, c)
		found, err := s.Approval(t.Context(), tenant, "a1")
		require.NoError(t, err)
		all := everything(t, s)
		assert.Nil(t, found.Exact)
		assert.Nil(t, all.Operations[0].Exact)
		assert.Nil(t, all.Records[0].Exact)
	}},
	{"an approval keeps its exact call until it is consumed or withdrawn", func(t *testing.T, s dispatch.Store) {
		for _, to := range []dispatch.ApprovalState{dispatch.Consumed, dispatch.Withdrawn} {
			task := apply(t, s, create(key("labels-"+string(to))))
			id := "a-" + string(to)
			a := ask(task, id, "signature-1")
			a.Exact = exact
			task = judged(t, s, task, a)
			kept := func() ijson.Raw {
				found, err := s.Approval(t.Context(), tenant, id)
				require.NoError(t, err)
				a = dispatch.ApprovalChange{Approval: found}
				return found.Exact
			}
			// Whoever changes it has it without its call: it came so from Load.
			for _, next := range []dispatch.ApprovalState{dispatch.Rejected, dispatch.Pending, dispatch.Expired, dispatch.Pending, dispatch.Approved} {
				a.Exact = nil
				task = judged(t, s, task, move(a.Approval, next))
				assert.Equal(t, exact, kept(), next)
			}
			judged(t, s, task, move(a.Approval, to))
			assert.Nil(t, kept(), to)
		}
	}},
	{"a change gives an approval no other exact call", func(t *testing.T, s dispatch.Store) {
		task, c := secretive(t, s)
		other := move(c.Approvals[0].Approval, dispatch.Approved)
		other.Exact = ijson.Raw(`{"value":"another"}`)
		judged(t, s, task, other)
		found, err := s.Approval(t.Context(), tenant, "a1")
		require.NoError(t, err)
		assert.Equal(t, exact, found.Exact)
	}},
}
