package storetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

var effects = []part{
	{"an operation comes back under its whole identity, and no other", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		other := apply(t, s, create(key("labels-2")))
		c := step(task)
		c.Operation = operation(task, "draft-1")
		apply(t, s, c)

		assert.Equal(t, &c.Operation.Operation, load(t, s, task.TaskKey, dispatch.Lookup{Actor: "learner", Key: "draft-1"}).Operation)
		for name, miss := range map[string]struct {
			task dispatch.TaskKey
			look dispatch.Lookup
		}{
			"task":    {other.TaskKey, dispatch.Lookup{Actor: "learner", Key: "draft-1"}},
			"actor":   {task.TaskKey, dispatch.Lookup{Actor: "teacher", Key: "draft-1"}},
			"key":     {task.TaskKey, dispatch.Lookup{Actor: "learner", Key: "draft-2"}},
			"nothing": {task.TaskKey, dispatch.Lookup{Actor: "learner"}},
		} {
			assert.Nil(t, load(t, s, miss.task, miss.look).Operation, name)
		}
	}},
	{"an operation without a result has none", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		c := step(task)
		c.Operation = operation(task, "draft-1")
		c.Operation.Result = nil
		apply(t, s, c)
		assert.Nil(t, load(t, s, task.TaskKey, dispatch.Lookup{Actor: "learner", Key: "draft-1"}).Operation.Result)
	}},
	{"an operation is committed once", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		c := step(task)
		c.Operation = operation(task, "draft-1")
		task = apply(t, s, c)

		again := step(task)
		again.Operation, again.Record = operation(task, "draft-1"), record(task, "unrelated")
		again.Operation.Signature = "another"
		again.Approvals = []dispatch.ApprovalChange{ask(task, "a1", "signature-1")}
		refused(t, s, again, dispatch.ErrMoved)

		// Another actor's, or another key's, is another operation.
		for _, o := range []*dispatch.OperationChange{operation(task, "draft-1"), operation(task, "draft-2")} {
			if o.Key == "draft-1" {
				o.Actor = "teacher"
				o = named(o.Operation)
			}
			next := step(task)
			next.Operation = o
			task = apply(t, s, next)
		}
	}},
	{"a record is created once", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		c := step(task)
		c.Record = record(task, "note")
		task = apply(t, s, c)

		again := step(task)
		again.Operation, again.Record = operation(task, "unrelated"), record(task, "note")
		again.Record.Value = []byte(`{"body":"another"}`)
		refused(t, s, again, dispatch.ErrMoved)
	}},
	{"a target exists for its task and tool", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		other := apply(t, s, create(key("labels-2")))
		c := step(task)
		c.Record = record(task, "note")
		task = apply(t, s, c)

		assert.True(t, load(t, s, task.TaskKey, dispatch.Lookup{Tool: "record_draft", Target: "note"}).TargetExists)
		for name, miss := range map[string]struct {
			task dispatch.TaskKey
			look dispatch.Lookup
		}{
			"task":    {other.TaskKey, dispatch.Lookup{Tool: "record_draft", Target: "note"}},
			"tool":    {task.TaskKey, dispatch.Lookup{Tool: "record_note", Target: "note"}},
			"target":  {task.TaskKey, dispatch.Lookup{Tool: "record_draft", Target: "Note"}},
			"nothing": {task.TaskKey, dispatch.Lookup{Tool: "record_draft"}},
		} {
			assert.False(t, load(t, s, miss.task, miss.look).TargetExists, name)
		}
	}},
	{"records are listed by task, tool and target", func(t *testing.T, s dispatch.Store) {
		for _, id := range []string{"b", "a"} {
			task := apply(t, s, create(key(id)))
			for _, name := range [][2]string{{"write", "2"}, {"write", "1"}, {"draft", "3"}} {
				c := step(task)
				c.Record = record(task, name[1])
				c.Record.Tool = name[0]
				task = apply(t, s, c)
			}
		}
		list := func(tenant, task string) (names []string) {
			all, err := s.Records(t.Context(), tenant, task)
			require.NoError(t, err)
			for _, r := range all {
				names = append(names, r.Task.ID+" "+r.Tool+" "+r.Target)
			}
			return names
		}
		ofA := []string{"a draft 3", "a write 1", "a write 2"}
		assert.Equal(t, ofA, list(tenant, "a"))
		assert.Equal(t, append(ofA, "b draft 3", "b write 1", "b write 2"), list(tenant, ""))
		assert.Empty(t, list("elsewhere", ""))
	}},
	{"operations are listed by task, step and key", func(t *testing.T, s dispatch.Store) {
		for _, id := range []string{"b", "a"} {
			task := apply(t, s, create(key(id)))
			for _, name := range []string{"2", "1", "3"} {
				c := step(task)
				c.Operation = operation(task, name)
				if name == "3" {
					c.Operation.Step = 1 // the same step as key 2's
				}
				task = apply(t, s, c)
			}
		}
		list := func(tenant, task string) (names []string) {
			all, err := s.Operations(t.Context(), tenant, task)
			require.NoError(t, err)
			for _, o := range all {
				names = append(names, o.Task.ID+" "+o.Key)
			}
			return names
		}
		ofA := []string{"a 2", "a 3", "a 1"}
		assert.Equal(t, ofA, list(tenant, "a"))
		assert.Equal(t, append(ofA, "b 2", "b 3", "b 1"), list(tenant, ""))
		assert.Empty(t, list("elsewhere", ""))
	}},
}
