package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

var approvals = []part{
	{"an approval comes back as it was written", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		a := ask(task, "a1", "signature-1")
		a.Terms = dispatch.Terms{Approvers: 2, DistinctFromActor: true, Lifetime: 4, TTL: "90m", ReasonRequired: true,
			Roles: []string{"lead", "owner"}, Stages: []dispatch.Stage{{Name: "legal", Approvers: 2, Roles: []string{"counsel"}}, {Name: "board"}}}
		a.Votes = []dispatch.Vote{
			{Reviewer: "kim", Roles: []string{"counsel", "lead"}, Stage: "legal", Decision: "approved", Lifetime: 3, Reason: "looks right", Time: moment(at(time.Second))},
			{Reviewer: "lee", Decision: "approved", Time: moment(at(2 * time.Second))},
		}
		a.State, a.ExpiresAtStep = dispatch.Approved, 5
		task = judged(t, s, task, a)

		got, err := s.Approval(t.Context(), tenant, "a1")
		require.NoError(t, err)
		assert.Equal(t, a.Approval, got)
		found := load(t, s, task.TaskKey, dispatch.Lookup{Signature: "signature-1", Mode: dispatch.Enforce}).Approval
		assert.Equal(t, &a.Approval, found)
	}},
	{"a change replaces where an approval stands", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		a := ask(task, "a1", "signature-1")
		task = judged(t, s, task, a)

		change := move(a.Approval, dispatch.Rejected)
		change.Terms = dispatch.Terms{Approvers: 3}
		change.Votes = []dispatch.Vote{{Reviewer: "kim", Decision: "rejected", Time: moment(at(time.Second))}}
		change.ExpiresAtStep, change.ExpiresAt, change.PolicyVersion = 12, time.Time{}, "2@sha256:bb"
		judged(t, s, task, change)

		got, err := s.Approval(t.Context(), tenant, "a1")
		require.NoError(t, err)
		assert.Equal(t, change.Approval, got)
	}},
	{"a change of what an approval is of is a fault, and changes nothing", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		a := ask(task, "a1", "signature-1")
		task = judged(t, s, task, a)
		before := everything(t, s)
		for name, spoil := range map[string]func(*dispatch.Approval){
			"actor":       func(a *dispatch.Approval) { a.Actor = "teacher" },
			"signature":   func(a *dispatch.Approval) { a.Signature = "signature-2" },
			"definition":  func(a *dispatch.Approval) { a.Definition = "definition-2" },
			"mode":        func(a *dispatch.Approval) { a.Mode = "dry_run" },
			"step":        func(a *dispatch.Approval) { a.Step = 9 },
			"proposal":    func(a *dispatch.Approval) { a.Proposal = []byte(`{"tool":"other"}`) },
			"no proposal": func(a *dispatch.Approval) { a.Proposal = nil },
		} {
			c := full(task, "beside it")
			change := move(a.Approval, dispatch.Approved)
			spoil(&change.Approval)
			c.Approvals = append(c.Approvals, change)
			err := s.Apply(t.Context(), c)
			require.Error(t, err, name)
			assert.Equal(t, dispatch.Broken, dispatch.KindOf(err), name)
			assert.False(t, errors.Is(err, dispatch.ErrMoved), "%s: trying again would not help", name)
			assert.Equal(t, before, everything(t, s), name)
		}
		judged(t, s, task, move(a.Approval, dispatch.Approved))
	}},
	{"an unknown approval is an error when asked for by name", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		judged(t, s, task, ask(task, "a1", "signature-1"))
		for _, name := range [][2]string{{tenant, "a2"}, {"elsewhere", "a1"}} {
			_, err := s.Approval(t.Context(), name[0], name[1])
			assert.ErrorIs(t, err, dispatch.ErrUnknownApproval)
		}
	}},
	{"a call finds its latest approval, whatever its state and definition", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		call := dispatch.Lookup{Signature: "signature-1", Mode: dispatch.Enforce}
		assert.Nil(t, load(t, s, task.TaskKey, call).Approval)

		first := ask(task, "z", "signature-1")
		task = judged(t, s, task, first)
		task = judged(t, s, task, move(first.Approval, dispatch.Rejected))
		second := ask(task, "m", "signature-1")
		second.Definition = "definition-2"
		task = judged(t, s, task, second, ask(task, "other", "signature-2"))
		assert.Equal(t, "m", load(t, s, task.TaskKey, call).Approval.ID)

		task = judged(t, s, task, move(second.Approval, dispatch.Withdrawn))
		found := load(t, s, task.TaskKey, call).Approval
		assert.Equal(t, "m", found.ID)
		assert.Equal(t, dispatch.Withdrawn, found.State)

		third := ask(task, "a", "signature-1")
		fourth := ask(task, "b", "signature-1")
		third.State = dispatch.Expired
		task = judged(t, s, task, third, fourth)
		assert.Equal(t, "b", load(t, s, task.TaskKey, call).Approval.ID, "of one step, the one asked for last")
	}},
	{"an approval serves its task, call and mode alone", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		other := apply(t, s, create(key("labels-2")))
		judged(t, s, task, ask(task, "a1", "signature-1"))

		for name, miss := range map[string]struct {
			task dispatch.TaskKey
			look dispatch.Lookup
		}{
			"task":      {other.TaskKey, dispatch.Lookup{Signature: "signature-1", Mode: dispatch.Enforce}},
			"signature": {task.TaskKey, dispatch.Lookup{Signature: "signature-2", Mode: dispatch.Enforce}},
			"mode":      {task.TaskKey, dispatch.Lookup{Signature: "signature-1", Mode: "dry_run"}},
			"nothing":   {task.TaskKey, dispatch.Lookup{}},
		} {
			assert.Nil(t, load(t, s, miss.task, miss.look).Approval, name)
		}
	}},
	{"pending counts what waits for a person in this task", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		other := apply(t, s, create(key("labels-2")))
		judged(t, s, other, ask(other, "elsewhere", "signature-1"))

		a, b, c := ask(task, "a", "signature-1"), ask(task, "b", "signature-2"), ask(task, "c", "signature-3")
		task = judged(t, s, task, a, b, c)
		assert.Equal(t, 3, load(t, s, task.TaskKey, dispatch.Lookup{}).Pending)
		task = judged(t, s, task, move(a.Approval, dispatch.Approved), move(b.Approval, dispatch.Rejected))
		assert.Equal(t, 1, load(t, s, task.TaskKey, dispatch.Lookup{}).Pending)
	}},
	{"one call has at most one open approval", func(t *testing.T, s dispatch.Store) {
		for _, state := range []dispatch.ApprovalState{dispatch.Pending, dispatch.Approved} {
			task := apply(t, s, create(key("labels-"+string(state))))
			first := ask(task, "first-"+string(state), "signature-1")
			first.State = state
			task = judged(t, s, task, first)

			c := step(task)
			c.Approvals = []dispatch.ApprovalChange{ask(task, "second-"+string(state), "signature-1")}
			refused(t, s, c, dispatch.ErrMoved)

			// Of another definition, or in another mode, it is another.
			definition, mode := ask(task, "definition-"+string(state), "signature-1"), ask(task, "mode-"+string(state), "signature-1")
			definition.Definition, mode.Mode = "definition-2", "dry_run"
			task = judged(t, s, task, definition, mode)

			// Once it is closed, there is room for the next.
			judged(t, s, task, move(first.Approval, dispatch.Withdrawn), ask(task, "third-"+string(state), "signature-1"))
		}
	}},
	{"a closed approval cannot be opened beside an open one", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		first := ask(task, "a1", "signature-1")
		first.State = dispatch.Rejected
		task = judged(t, s, task, first, ask(task, "a2", "signature-1"))

		c := step(task)
		c.Approvals = []dispatch.ApprovalChange{move(first.Approval, dispatch.Pending)}
		refused(t, s, c, dispatch.ErrMoved)
	}},
	{"an approval moves only from the state that was seen", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		a := ask(task, "a1", "signature-1")
		task = judged(t, s, task, a)

		for _, from := range []dispatch.ApprovalState{dispatch.Approved, dispatch.Rejected, dispatch.Consumed, "other"} {
			c := step(task)
			change := move(a.Approval, dispatch.Consumed)
			change.From = from
			c.Approvals = []dispatch.ApprovalChange{change}
			refused(t, s, c, dispatch.ErrMoved)
		}
		c := step(task)
		c.Approvals = []dispatch.ApprovalChange{move(a.Approval, dispatch.Approved), move(a.Approval, dispatch.Consumed)}
		refused(t, s, c, dispatch.ErrMoved)
	}},
	{"an approval that does not exist cannot move", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		c := step(task)
		c.Approvals = []dispatch.ApprovalChange{move(ask(task, "a1", "signature-1").Approval, dispatch.Consumed)}
		refused(t, s, c, dispatch.ErrMoved)
	}},
	{"an approval's id is used once in a tenant", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		other := apply(t, s, create(key("labels-2")))
		judged(t, s, task, ask(task, "a1", "signature-1"))
		c := step(other)
		c.Approvals = []dispatch.ApprovalChange{ask(other, "a1", "signature-2")}
		refused(t, s, c, dispatch.ErrMoved)

		foreign := create(dispatch.TaskKey{Tenant: "elsewhere", ID: "labels-1"})
		foreign.Approvals = []dispatch.ApprovalChange{ask(foreign.Task, "a1", "signature-1")}
		apply(t, s, foreign)
	}},
	{"approvals are listed in the order in which they were asked for", func(t *testing.T, s dispatch.Store) {
		one, two := apply(t, s, create(key("z"))), apply(t, s, create(key("a")))
		zz, yy := ask(one, "zz", "signature-1"), ask(one, "yy", "signature-2")
		one = judged(t, s, one, zz, yy)
		xx := ask(two, "xx", "signature-1")
		two = judged(t, s, two, xx)
		approved := move(zz.Approval, dispatch.Approved)
		one = judged(t, s, one, ask(one, "ww", "signature-3"), approved)
		judged(t, s, two, move(xx.Approval, dispatch.Rejected))
		judged(t, s, one, move(approved.Approval, dispatch.Consumed))
		foreign := create(dispatch.TaskKey{Tenant: "elsewhere", ID: "z"})
		foreign.Approvals = []dispatch.ApprovalChange{ask(foreign.Task, "foreign", "signature-1")}
		apply(t, s, foreign)

		for _, list := range []struct {
			task   string
			states []dispatch.ApprovalState
			want   []string
		}{
			{"", nil, []string{"zz", "yy", "xx", "ww"}},
			{"z", nil, []string{"zz", "yy", "ww"}},
			{"a", nil, []string{"xx"}},
			{"none", nil, []string{}},
			{"", []dispatch.ApprovalState{dispatch.Pending}, []string{"yy", "ww"}},
			{"", []dispatch.ApprovalState{dispatch.Pending, dispatch.Consumed}, []string{"zz", "yy", "ww"}},
			{"", []dispatch.ApprovalState{dispatch.Rejected, dispatch.Consumed}, []string{"zz", "xx"}},
			{"z", []dispatch.ApprovalState{dispatch.Rejected, dispatch.Consumed}, []string{"zz"}},
			{"", []dispatch.ApprovalState{dispatch.Withdrawn}, []string{}},
		} {
			got, err := s.Approvals(t.Context(), tenant, list.task, list.states...)
			require.NoError(t, err)
			assert.Equal(t, list.want, ids(got), "task %q, states %v", list.task, list.states)
		}
	}},
}
