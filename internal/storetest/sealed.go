package storetest

import (
	"fmt"
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
	}}, {"an approval that comes back has its exact call again, and a change that does not bring it back has none", func(t *testing.T, s dispatch.Store) {
		for _, c := range []struct {
			name    string
			to      dispatch.ApprovalState
			given   ijson.Raw
			restore ijson.Raw
		}{
			{"released", dispatch.Approved, exact, exact},
			{"released, of a call that is not sensitive", dispatch.Approved, nil, nil},
			{"withdrawn", dispatch.Withdrawn, exact, nil},
		} {
			task := apply(t, s, create(key("labels-"+c.name)))
			a := ask(task, "a-"+c.name, "signature-1")
			a.Exact = c.given
			task = judged(t, s, task, a)
			task = judged(t, s, task, move(a.Approval, dispatch.Approved))
			a.State = dispatch.Approved
			task = judged(t, s, task, move(a.Approval, dispatch.Consumed))
			a.State = dispatch.Consumed
			found, err := s.Approval(t.Context(), tenant, a.ID)
			require.NoError(t, err)
			require.Nil(t, found.Exact, c.name)

			task = judged(t, s, task, move(a.Approval, c.to))
			found, err = s.Approval(t.Context(), tenant, a.ID)
			require.NoError(t, err)
			assert.Equal(t, c.restore, found.Exact, c.name)
			assert.Equal(t, c.to, found.State, c.name)

			// It serves once more, and is gone then.
			if c.to == dispatch.Approved {
				judged(t, s, task, move(found, dispatch.Consumed))
				found, err = s.Approval(t.Context(), tenant, a.ID)
				require.NoError(t, err)
				assert.Nil(t, found.Exact, c.name)
			}
		}
	}},
	{"an operation keeps its exact call until it is committed, whatever a change brings", func(t *testing.T, s dispatch.Store) {
		other := ijson.Raw(`{"value":"another"}`)
		for _, given := range []ijson.Raw{nil, other, exact} {
			task := apply(t, s, create(key("labels-"+string(given))))
			change := outside(task, "message-1", "effect-1")
			change.ExactProposal = exact
			task, o := operated(t, s, task, change)
			look := dispatch.Lookup{Actor: "learner", Key: "message-1"}
			kept := func() ijson.Raw {
				assert.Equal(t, find(t, s, o.ID), *load(t, s, task.TaskKey, look).Operation)
				return find(t, s, o.ID).ExactProposal
			}
			assert.Equal(t, exact, kept())
			changed := func(change *dispatch.OperationChange) {
				change.ExactProposal = given
				task, o = operated(t, s, task, change)
			}
			changed(become(o, dispatch.Unknown))
			assert.Equal(t, exact, kept())
			changed(again(o, task))
			assert.Equal(t, exact, kept(), "it is called again as it was")
			changed(become(o, dispatch.Absent))
			assert.Equal(t, exact, kept())
			changed(again(o, task))
			assert.Equal(t, given, kept(), "the next run is of the call that it brings")

			commit := become(o, dispatch.Committed)
			commit.Exact = exact
			changed(commit)
			assert.Nil(t, kept(), "it took place")
			assert.Equal(t, exact, find(t, s, o.ID).Exact)
			assert.Equal(t, ijson.Raw(`{"sent":true}`), find(t, s, o.ID).Result)
		}
	}},
	{"an operation that is committed at once keeps no exact call", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		change := outside(task, "message-1", "effect-1")
		change.State, change.ExactProposal, change.Exact = dispatch.Committed, exact, exact
		operated(t, s, task, change)
		found := find(t, s, change.ID)
		assert.Nil(t, found.ExactProposal)
		assert.Equal(t, exact, found.Exact)
	}},
	{"an operation without a key has its exact bytes in its own place", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		var all []dispatch.Operation
		for i := range 2 {
			change := keyless(task, fmt.Sprint("effect-", i))
			change.ExactProposal = ijson.Raw(fmt.Sprintf(`{"call":%d}`, i))
			var o dispatch.Operation
			task, o = operated(t, s, task, change)
			assert.Equal(t, o, find(t, s, o.ID))
			all = append(all, o)
		}
		for i := range all {
			change := become(all[i], dispatch.Committed)
			change.Exact = ijson.Raw(fmt.Sprintf(`{"result":%d}`, i))
			task, all[i] = operated(t, s, task, change)
			all[i].ExactProposal = nil
		}
		assert.Equal(t, all, everything(t, s).Operations)
	}},
}
