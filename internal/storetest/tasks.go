package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

var tasks = []part{
	{"a task comes back as it was written", func(t *testing.T, s dispatch.Store) {
		c := create(key("labels-1"))
		c.Task.Steps, c.Task.Entries, c.Task.Cancelled = 7, 3, true
		c.Task.Spent = dispatch.Spent{Cost: 1 << 40, Attempts: 5, Output: 1 << 30}
		c.Task.Deadline, c.Task.Updated = at(time.Hour), at(1500*time.Millisecond)
		want := apply(t, s, c)

		assert.Equal(t, want, load(t, s, want.TaskKey, dispatch.Lookup{}).Task)
		got, err := s.Task(t.Context(), want.TaskKey)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}},
	{"times are kept to the millisecond, in UTC", func(t *testing.T, s dispatch.Store) {
		east := time.FixedZone("", 2*60*60)
		c := create(key("labels-1"))
		c.Task.Deadline, c.Task.Updated = at(time.Hour+1999*time.Microsecond).In(east), at(time.Nanosecond)
		a := ask(c.Task, "a1", "signature-1")
		a.ExpiresAt = at(7*time.Millisecond + 999*time.Microsecond).In(east)
		c.Approvals = []dispatch.ApprovalChange{a}
		apply(t, s, c)

		state := load(t, s, c.Task.TaskKey, dispatch.Lookup{Signature: "signature-1", Mode: dispatch.Enforce})
		assert.Equal(t, at(time.Hour+time.Millisecond), state.Task.Deadline)
		assert.Equal(t, at(0), state.Task.Updated)
		assert.Equal(t, at(7*time.Millisecond), state.Approval.ExpiresAt)
	}},
	{"calls under way come back until they are not any more", func(t *testing.T, s dispatch.Store) {
		c := create(key("labels-1"))
		c.Task.InFlight = []dispatch.InFlight{{Step: 3, Lease: moment(at(time.Minute)), Output: 1 << 20}, {Step: 5, Lease: moment(at(time.Hour))}}
		task := apply(t, s, c)
		assert.Equal(t, task, load(t, s, task.TaskKey, dispatch.Lookup{}).Task)
		assert.Equal(t, []dispatch.Task{task}, everything(t, s).Tasks)

		next := step(task)
		next.Task.InFlight = task.InFlight[1:]
		task = apply(t, s, next)
		assert.Equal(t, task, load(t, s, task.TaskKey, dispatch.Lookup{}).Task)

		next = step(task)
		next.Task.InFlight = []dispatch.InFlight{}
		task = apply(t, s, next)
		assert.Nil(t, load(t, s, task.TaskKey, dispatch.Lookup{}).Task.InFlight)
	}},
	{"no deadline stays none", func(t *testing.T, s dispatch.Store) {
		c := create(key("labels-1"))
		c.Task.Deadline = time.Time{}
		task := apply(t, s, c)
		assert.True(t, load(t, s, task.TaskKey, dispatch.Lookup{}).Task.Deadline.IsZero())
	}},
	{"a change replaces every field", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		c := step(task)
		c.Task.Profile, c.Task.Actor, c.Task.Cancelled, c.Task.Deadline = "other", "teacher", true, time.Time{}
		c.Task.Spent = dispatch.Spent{Cost: 7, Attempts: 2, Output: 300}
		want := apply(t, s, c)
		assert.Equal(t, want, load(t, s, task.TaskKey, dispatch.Lookup{}).Task)
	}},
	{"an unknown task is one error everywhere", func(t *testing.T, s dispatch.Store) {
		apply(t, s, create(dispatch.TaskKey{Tenant: "elsewhere", ID: "labels-1"}))
		_, err := s.Load(t.Context(), key("labels-1"), dispatch.Lookup{})
		assert.ErrorIs(t, err, dispatch.ErrUnknownTask)
		_, err = s.Task(t.Context(), key("labels-1"))
		assert.ErrorIs(t, err, dispatch.ErrUnknownTask)
	}},
	{"a task is created once", func(t *testing.T, s dispatch.Store) {
		apply(t, s, create(key("labels-1")))
		again := create(key("labels-1"))
		again.Task.Actor = "teacher"
		refused(t, s, again, dispatch.ErrTaskExists)
	}},
	{"a task that does not exist cannot be changed", func(t *testing.T, s dispatch.Store) {
		refused(t, s, step(create(key("labels-1")).Task), dispatch.ErrMoved)
	}},
	{"tasks are listed by id, each tenant's apart", func(t *testing.T, s dispatch.Store) {
		for _, id := range []string{"b", "a", "B", "a-1", "é", "a\x00"} {
			apply(t, s, create(key(id)))
		}
		apply(t, s, create(dispatch.TaskKey{Tenant: "elsewhere", ID: "a"}))

		all, err := s.Tasks(t.Context(), tenant)
		require.NoError(t, err)
		var listed []string
		for _, task := range all {
			listed = append(listed, task.ID)
		}
		assert.Equal(t, []string{"B", "a", "a\x00", "a-1", "b", "é"}, listed, "by the bytes of their ids")

		all, err = s.Tasks(t.Context(), "nobody")
		require.NoError(t, err)
		assert.Empty(t, all)
	}},
	{"names and bodies are kept exactly", func(t *testing.T, s dispatch.Store) {
		for _, odd := range oddNames {
			c := create(dispatch.TaskKey{Tenant: tenant + odd, ID: odd})
			c.Task.Actor, c.Task.Profile = odd, odd
			c.Entries[0].Body = []byte(odd)
			c.Operation = operation(c.Task, "key")
			c.Operation.Key, c.Operation.Result = odd, []byte(odd)
			c.Operation = named(c.Operation.Operation)
			c.Record = record(c.Task, "target")
			c.Record.Target, c.Record.Value = odd, []byte(odd)
			a := ask(c.Task, "approval", "signature")
			a.ID, a.Signature, a.Proposal = odd, odd, []byte(odd)
			a.Votes = []dispatch.Vote{{Reviewer: odd, Decision: "approved", Reason: odd, Time: moment(at(0))}}
			c.Approvals = []dispatch.ApprovalChange{a}
			apply(t, s, c)

			got := load(t, s, c.Task.TaskKey, dispatch.Lookup{
				Signature: odd, Mode: dispatch.Enforce, Actor: "learner", Key: odd, Tool: "record_draft", Target: odd})
			assert.Equal(t, dispatch.State{
				Task: c.Task, Approval: &a.Approval, Operation: &c.Operation.Operation, Pending: 1, TargetExists: true}, got)
			assert.Equal(t, c.Entries, read(t, s, c.Task.Tenant, odd))
			records, err := s.Records(t.Context(), c.Task.Tenant, odd)
			require.NoError(t, err)
			assert.Equal(t, []dispatch.Record{*c.Record}, records)
		}
	}},
	{"names that differ in any byte are different names", func(t *testing.T, s dispatch.Store) {
		for _, odd := range oddNames {
			apply(t, s, create(key(odd)))
		}
		all, err := s.Tasks(t.Context(), tenant)
		require.NoError(t, err)
		assert.Len(t, all, len(oddNames))
	}},
	{"a context that is over reads nothing", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Load(ctx, task.TaskKey, dispatch.Lookup{})
		assert.ErrorIs(t, err, context.Canceled)
		_, err = s.Tasks(ctx, tenant)
		assert.ErrorIs(t, err, context.Canceled)
		for _, err := range s.Entries(ctx, tenant, "") {
			assert.ErrorIs(t, err, context.Canceled)
		}
	}},
}

// oddNames are valid UTF-8 that databases have been seen to fold, cut or trim.
var oddNames = []string{
	"a", "A", "a ", " a", "a\x00", "a\x00b", "\x00", "é", "e\u0301", "ﬁ", "fi", "İ", "ı", "\u200b", "\ufeff", "\ufffd",
	"\U0001F9EA", "\U0010FFFF", "%", "_", "'", `"`, `\`, "\r\n", "\n", "1", "01", "1.0", "1e0", "NULL", "0x1",
}
