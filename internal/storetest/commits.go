package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// full is a commit with a row of every kind.
func full(task dispatch.Task, name string) dispatch.Commit {
	c := step(task)
	c.Approvals = []dispatch.ApprovalChange{ask(task, "approval-"+name, "signature-"+name)}
	c.Operation = operation(task, name)
	c.Record = record(task, name)
	c.Entries = append(c.Entries, entry(task.TaskKey, c.Task.Steps, 1, dispatch.KindAction))
	c.Task.Entries = 2
	return c
}

var commits = []part{
	{"a commit is applied whole", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		c := full(task, "one")
		apply(t, s, c)
		assert.Equal(t, contents{
			Tasks:      []dispatch.Task{c.Task},
			Approvals:  []dispatch.Approval{c.Approvals[0].Approval},
			Operations: []dispatch.Operation{c.Operation.Operation},
			Records:    []dispatch.Record{*c.Record},
			Entries:    append([]dispatch.Entry{entry(task.TaskKey, 0, 0, dispatch.KindTask)}, c.Entries...),
		}, everything(t, s))
	}},
	{"a commit on a revision that moved changes nothing at all", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		now := apply(t, s, step(task))
		refused(t, s, full(task, "late"), dispatch.ErrMoved)
		early := now
		early.Revision++
		refused(t, s, full(early, "early"), dispatch.ErrMoved)
		apply(t, s, full(now, "in time"))
	}},
	{"a commit that fails at its last row changes nothing at all", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		c := full(task, "one")
		c.Entries = append(c.Entries, c.Entries[0])
		refused(t, s, c, dispatch.ErrMoved)
	}},
	{"of many commits on one revision exactly one wins", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		const racers = 100
		outcomes := make([]error, racers)
		var all sync.WaitGroup
		for i := range racers {
			all.Go(func() { outcomes[i] = s.Apply(t.Context(), full(task, fmt.Sprint(i))) })
		}
		all.Wait()

		winner := -1
		for i, err := range outcomes {
			if err == nil {
				require.Equal(t, -1, winner, "two commits won")
				winner = i
				continue
			}
			require.ErrorIs(t, err, dispatch.ErrMoved)
		}
		require.NotEqual(t, -1, winner, "no commit won")
		got := everything(t, s)
		require.Len(t, got.Operations, 1)
		assert.Equal(t, fmt.Sprint(winner), got.Operations[0].Key)
		assert.Len(t, got.Records, 1)
		assert.Len(t, got.Approvals, 1)
		assert.Len(t, got.Entries, 3)
	}},
	{"of many creations of one task exactly one wins", func(t *testing.T, s dispatch.Store) {
		const racers = 20
		outcomes := make([]error, racers)
		var all sync.WaitGroup
		for i := range racers {
			all.Go(func() { outcomes[i] = s.Apply(t.Context(), create(key("labels-1"))) })
		}
		all.Wait()
		won := 0
		for _, err := range outcomes {
			if err == nil {
				won++
				continue
			}
			require.ErrorIs(t, err, dispatch.ErrTaskExists)
		}
		assert.Equal(t, 1, won)
	}},
	{"commits that are refused leave those beside them alone", func(t *testing.T, s dispatch.Store) {
		const callers = 60
		made := make([]dispatch.Task, callers)
		for i := range made {
			made[i] = apply(t, s, create(key(fmt.Sprintf("task-%02d", i))))
		}
		outcomes := make([]error, callers)
		var all sync.WaitGroup
		for i, task := range made {
			all.Go(func() {
				c := full(task, fmt.Sprint(i))
				if i%3 == 0 {
					c.Entries = append(c.Entries, c.Entries[0]) // fails at its last row
				}
				outcomes[i] = s.Apply(t.Context(), c)
			})
		}
		all.Wait()
		for i, task := range made {
			state := load(t, s, task.TaskKey, dispatch.Lookup{Actor: "learner", Key: fmt.Sprint(i)})
			if i%3 == 0 {
				assert.ErrorIs(t, outcomes[i], dispatch.ErrMoved)
				assert.Equal(t, dispatch.State{Task: task}, state)
			} else {
				assert.NoError(t, outcomes[i])
				assert.Equal(t, task.Revision+1, state.Task.Revision)
				assert.NotNil(t, state.Operation)
			}
		}
	}},
	{"what was applied is seen by every read that follows", func(t *testing.T, s dispatch.Store) {
		const callers, steps = 8, 10
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				c := create(key(fmt.Sprint(i)))
				for range steps {
					if !assert.NoError(t, s.Apply(t.Context(), c)) {
						return
					}
					state, err := s.Load(t.Context(), c.Task.TaskKey, dispatch.Lookup{})
					if !assert.NoError(t, err) || !assert.Equal(t, c.Task, state.Task) {
						return
					}
					c = step(state.Task)
				}
			})
		}
		all.Wait()
	}},
	{"a load is of one revision", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		var all sync.WaitGroup
		all.Go(func() {
			for task.Steps < 40 { // every step adds an approval
				c := step(task)
				c.Approvals = []dispatch.ApprovalChange{ask(task, fmt.Sprint(c.Task.Steps), fmt.Sprint(c.Task.Steps))}
				if !assert.NoError(t, s.Apply(t.Context(), c)) {
					return
				}
				task = c.Task
			}
		})
		for range 200 {
			state := load(t, s, key("labels-1"), dispatch.Lookup{})
			require.Equal(t, state.Task.Steps, state.Pending)
		}
		all.Wait()
	}},
	{"a context that is over applies nothing", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		before := everything(t, s)
		require.ErrorIs(t, s.Apply(ctx, full(task, "one")), context.Canceled)
		assert.Equal(t, before, everything(t, s))
	}},
	{"a context that ends at any moment never makes a no of a yes", func(t *testing.T, s dispatch.Store) {
		const callers = 50
		outcomes := make([]error, callers)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				outcomes[i] = s.Apply(ctx, create(key(fmt.Sprint(i))))
				if i == callers/2 {
					cancel()
				}
			})
		}
		all.Wait()
		cancel()
		for i, err := range outcomes {
			_, lookup := s.Task(t.Context(), key(fmt.Sprint(i)))
			if err == nil {
				assert.NoError(t, lookup)
			} else {
				assert.ErrorIs(t, err, context.Canceled)
				assert.ErrorIs(t, lookup, dispatch.ErrUnknownTask)
			}
		}
	}},
}
