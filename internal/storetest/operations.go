package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// outside is the first call of an outside tool under a key.
func outside(task dispatch.Task, key, effect string) *dispatch.OperationChange {
	return named(dispatch.Operation{Task: task.TaskKey, Actor: "learner", Key: key, Signature: "signature-" + key, Tool: "send_message",
		State: dispatch.Started, Step: task.Steps + 1, Run: 1,
		Effect: effect, Definition: "definition-1", Outward: "outward-" + key, Since: at(time.Second), Lease: at(time.Minute),
		Target: "hallway", Approval: "approval-" + key, PolicyVersion: "1@sha256:aa", Proposal: ijson.Raw(`{"tool":"send_message"}`)})
}

// keyless is the only call of an operation that has no key.
func keyless(task dispatch.Task, effect string) *dispatch.OperationChange {
	o := outside(task, "", effect).Operation
	o.Dispatch = o.Step
	return named(o)
}

// become is a change of an operation to another state, as its call or a look-up makes it.
func become(o dispatch.Operation, to dispatch.OperationState) *dispatch.OperationChange {
	change := &dispatch.OperationChange{Operation: o, From: o.State, FromRun: o.Run}
	change.State = to
	switch {
	case to == dispatch.Committed:
		change.Result = ijson.Raw(`{"sent":true}`)
	case to == dispatch.Unknown && o.State == dispatch.Unknown:
		change.Lookups++
	}
	return change
}

// again is a change of an operation to its next run.
func again(o dispatch.Operation, task dispatch.Task) *dispatch.OperationChange {
	change := become(o, dispatch.Started)
	change.Step, change.Run, change.Lookups, change.Lease = task.Steps+1, o.Run+1, 0, at(2*time.Minute)
	return change
}

// operating is a commit of the task's next step with a change of an operation.
func operating(task dispatch.Task, change *dispatch.OperationChange) dispatch.Commit {
	c := step(task)
	c.Operation = change
	return c
}

// operated applies the change of an operation, and gives both as they are now.
func operated(t *testing.T, s dispatch.Store, task dispatch.Task, change *dispatch.OperationChange) (dispatch.Task, dispatch.Operation) {
	t.Helper()
	return apply(t, s, operating(task, change)), change.Operation
}

// stand brings an operation of a new task to a state.
func stand(t *testing.T, s dispatch.Store, id string, state dispatch.OperationState) (dispatch.Task, dispatch.Operation) {
	t.Helper()
	task := apply(t, s, create(key(id)))
	task, o := operated(t, s, task, outside(task, "message-1", "effect-1"))
	if state != dispatch.Started {
		task, o = operated(t, s, task, become(o, state))
	}
	return task, o
}

// faulty checks that a commit is refused in any way, and leaves no trace.
func faulty(t *testing.T, s dispatch.Store, c dispatch.Commit, name string) {
	t.Helper()
	before := everything(t, s)
	require.Error(t, s.Apply(t.Context(), c), name)
	assert.Equal(t, before, everything(t, s), name)
}

func find(t *testing.T, s dispatch.Store, id string) dispatch.Operation {
	t.Helper()
	o, err := s.Operation(t.Context(), tenant, id)
	require.NoError(t, err)
	return o
}

func keys(operations []dispatch.Operation) []string {
	keys := []string{}
	for _, o := range operations {
		keys = append(keys, o.Task.ID+" "+o.Key)
	}
	return keys
}

var operationStates = []dispatch.OperationState{dispatch.Started, dispatch.Unknown, dispatch.Committed, dispatch.Absent}

var operations = []part{
	{"an operation of an outside tool comes back as it was written", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		change := outside(task, "message-1", "effect-1")
		task, o := operated(t, s, task, change)
		for _, to := range []dispatch.OperationState{dispatch.Started, dispatch.Unknown, dispatch.Unknown, dispatch.Committed} {
			if to != dispatch.Started {
				task, o = operated(t, s, task, become(o, to))
			}
			assert.Equal(t, &o, load(t, s, task.TaskKey, dispatch.Lookup{Actor: "learner", Key: "message-1"}).Operation)
			assert.Equal(t, o, find(t, s, o.ID))
			assert.Equal(t, []dispatch.Operation{o}, everything(t, s).Operations)
		}
		assert.Equal(t, 1, o.Lookups)
	}},
	{"an operation's times are kept to the millisecond, in UTC", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		change := outside(task, "message-1", "effect-1")
		change.Since = at(7*time.Millisecond + 999*time.Microsecond).In(time.FixedZone("", 2*60*60))
		change.Lease = at(time.Hour + 1999*time.Microsecond)
		operated(t, s, task, change)
		got := find(t, s, change.ID)
		assert.Equal(t, at(7*time.Millisecond), got.Since)
		assert.Equal(t, at(time.Hour+time.Millisecond), got.Lease)
	}},
	{"an operation without a key is found by its dispatch", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		task, first := operated(t, s, task, keyless(task, "effect-1"))
		task, second := operated(t, s, task, keyless(task, "effect-2"))
		_, keyed := operated(t, s, task, outside(task, "message-1", "effect-3"))

		look := func(l dispatch.Lookup) *dispatch.Operation { return load(t, s, task.TaskKey, l).Operation }
		assert.Equal(t, &first, look(dispatch.Lookup{Actor: "learner", Dispatch: 1}))
		assert.Equal(t, &second, look(dispatch.Lookup{Actor: "learner", Dispatch: 2}))
		assert.Equal(t, &keyed, look(dispatch.Lookup{Actor: "learner", Key: "message-1", Dispatch: 1}), "where there is a key, it is the name")
		assert.Nil(t, look(dispatch.Lookup{Actor: "learner", Dispatch: 3}))
		assert.Nil(t, look(dispatch.Lookup{Actor: "teacher", Dispatch: 1}))
		assert.Nil(t, look(dispatch.Lookup{Actor: "learner"}))
		assert.Equal(t, second, find(t, s, second.ID))
	}},
	{"an operation has a key or a dispatch, and not both", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		both, neither := outside(task, "message-1", "effect-1").Operation, outside(task, "", "effect-1").Operation
		both.Dispatch = 1
		faulty(t, s, operating(task, named(both)), "both")
		faulty(t, s, operating(task, named(neither)), "neither")
	}},
	{"an unknown operation is an error when asked for by name", func(t *testing.T, s dispatch.Store) {
		_, o := stand(t, s, "labels-1", dispatch.Started)
		for _, name := range [][2]string{{tenant, "op-other"}, {"elsewhere", o.ID}, {tenant, ""}} {
			_, err := s.Operation(t.Context(), name[0], name[1])
			assert.ErrorIs(t, err, dispatch.ErrUnknownOperation)
		}
	}},
	{"an operation begins with its first call, or as it is committed", func(t *testing.T, s dispatch.Store) {
		for _, state := range operationStates {
			for run := range 3 {
				task := apply(t, s, create(key(fmt.Sprint(state, run))))
				change := outside(task, "message-1", "effect-1")
				change.State, change.Run = state, run
				name := fmt.Sprintf("%s, run %d", state, run)
				if run == 1 && (state == dispatch.Started || state == dispatch.Committed) {
					_, o := operated(t, s, task, change)
					assert.Equal(t, o, find(t, s, o.ID), name)
				} else {
					faulty(t, s, operating(task, change), name)
				}
			}
		}
	}},
	{"an operation moves as it may, and never otherwise", func(t *testing.T, s dispatch.Store) {
		type move struct {
			from, to dispatch.OperationState
			more     int
		}
		allowed := map[move]bool{
			{dispatch.Started, dispatch.Committed, 0}: true,
			{dispatch.Started, dispatch.Absent, 0}:    true,
			{dispatch.Started, dispatch.Unknown, 0}:   true,
			{dispatch.Started, dispatch.Started, 1}:   true, // called again once the lease has ended
			{dispatch.Unknown, dispatch.Started, 1}:   true, // called again
			{dispatch.Unknown, dispatch.Unknown, 0}:   true, // looked up, to no avail
			{dispatch.Unknown, dispatch.Committed, 0}: true,
			{dispatch.Unknown, dispatch.Absent, 0}:    true,
			{dispatch.Absent, dispatch.Started, 1}:    true, // called anew
			{dispatch.Absent, dispatch.Committed, 0}:  true, // a late outcome
			{dispatch.Absent, dispatch.Committed, 1}:  true, // by a local tool
		}
		for _, from := range operationStates {
			for _, to := range operationStates {
				for more := -1; more <= 2; more++ {
					name := fmt.Sprintf("%s to %s, run %+d", from, to, more)
					task, o := stand(t, s, fmt.Sprint(from, "-", to, "-", more+1), from)
					change := become(o, to)
					change.Run += more
					if to == dispatch.Started {
						change.Lease = at(2 * time.Minute)
					}
					if !allowed[move{from, to, more}] {
						faulty(t, s, operating(task, change), name)
						continue
					}
					require.NoError(t, s.Apply(t.Context(), operating(task, change)), name)
					assert.Equal(t, change.Operation, find(t, s, o.ID), name)
				}
			}
		}
	}},
	{"an operation moves only from the state and run that were seen", func(t *testing.T, s dispatch.Store) {
		task, o := stand(t, s, "labels-1", dispatch.Unknown)
		late := become(o, dispatch.Committed) // a settlement of the first run
		task, o = operated(t, s, task, again(o, task))
		refused(t, s, operating(task, late), dispatch.ErrMoved)
		task, o = operated(t, s, task, become(o, dispatch.Unknown))
		refused(t, s, operating(task, late), dispatch.ErrMoved)
		for _, from := range []dispatch.OperationState{dispatch.Started, dispatch.Committed, dispatch.Absent, "other"} {
			change := become(o, dispatch.Absent)
			change.From = from
			refused(t, s, operating(task, change), dispatch.ErrMoved)
		}
		operated(t, s, task, become(o, dispatch.Committed))
	}},
	{"an operation that does not exist cannot move", func(t *testing.T, s dispatch.Store) {
		task, o := stand(t, s, "labels-1", dispatch.Started)
		for name, rename := range map[string]func(*dispatch.Operation){
			"actor":    func(o *dispatch.Operation) { o.Actor = "teacher" },
			"key":      func(o *dispatch.Operation) { o.Key = "message-2" },
			"dispatch": func(o *dispatch.Operation) { o.Key, o.Dispatch = "", 1 },
			"id":       func(o *dispatch.Operation) { o.ID = "op-other" },
		} {
			change := become(o, dispatch.Unknown)
			rename(&change.Operation)
			t.Log(name)
			refused(t, s, operating(task, change), dispatch.ErrMoved)
		}
	}},
	{"a run is of one call", func(t *testing.T, s dispatch.Store) {
		for name, spoil := range map[string]func(*dispatch.Operation){
			"signature":  func(o *dispatch.Operation) { o.Signature = "signature-2" },
			"tool":       func(o *dispatch.Operation) { o.Tool = "other" },
			"target":     func(o *dispatch.Operation) { o.Target = "kitchen" },
			"effect":     func(o *dispatch.Operation) { o.Effect = "effect-2" },
			"definition": func(o *dispatch.Operation) { o.Definition = "definition-2" },
			"outward":    func(o *dispatch.Operation) { o.Outward = "outward-2" },
			"no outward": func(o *dispatch.Operation) { o.Outward = "" },
			"since":      func(o *dispatch.Operation) { o.Since = at(time.Hour) },
			"proposal":   func(o *dispatch.Operation) { o.Proposal = ijson.Raw(`{"tool":"other"}`) },
			// These are the run's own.
			"step":   func(o *dispatch.Operation) { o.Step++ },
			"lease":  func(o *dispatch.Operation) { o.Lease = at(time.Hour) },
			"policy": func(o *dispatch.Operation) { o.PolicyVersion = "2@sha256:bb" },
		} {
			task, o := stand(t, s, "to-unknown-"+name, dispatch.Started)
			change := become(o, dispatch.Unknown)
			spoil(&change.Operation)
			faulty(t, s, operating(task, change), name)

			task, o = stand(t, s, "late-"+name, dispatch.Absent)
			change = become(o, dispatch.Committed)
			spoil(&change.Operation)
			faulty(t, s, operating(task, change), name)

			task, o = stand(t, s, "again-"+name, dispatch.Unknown)
			change = again(o, task)
			spoil(&change.Operation)
			if name == "step" || name == "lease" || name == "policy" {
				operated(t, s, task, change)
			} else {
				faulty(t, s, operating(task, change), name)
			}
		}
	}},
	{"after one that did not take place the next call may be another", func(t *testing.T, s dispatch.Store) {
		task, o := stand(t, s, "labels-1", dispatch.Absent)
		change := again(o, task)
		change.Signature, change.Tool, change.Target, change.Effect, change.Definition = "signature-2", "other", "kitchen", "effect-2", "definition-2"
		change.Since, change.Approval, change.PolicyVersion, change.Proposal = at(time.Hour), "", "2@sha256:bb", ijson.Raw(`{"tool":"other"}`)
		change.Outward = "outward-2"
		task, o = operated(t, s, task, change)
		assert.Equal(t, o, find(t, s, o.ID))

		task, o = operated(t, s, task, become(o, dispatch.Absent))
		local := become(operation(task, "message-1").Operation, dispatch.Committed)
		local.From, local.FromRun, local.Run = o.State, o.Run, o.Run+1
		_, o = operated(t, s, task, local)
		assert.Equal(t, o, find(t, s, o.ID), "a local tool leaves nothing of the outside")
	}},
	{"a call is not called again under a lease that may last", func(t *testing.T, s dispatch.Store) {
		task, o := stand(t, s, "labels-1", dispatch.Started)
		for _, lease := range []time.Time{o.Lease, o.Lease.Add(-time.Millisecond)} {
			change := again(o, task)
			change.Lease = lease
			faulty(t, s, operating(task, change), lease.String())
		}
		operated(t, s, task, again(o, task))
	}},
	{"what may still take place says what it is and until when, and has no result", func(t *testing.T, s dispatch.Store) {
		for name, spoil := range map[string]func(*dispatch.Operation){
			"effect":     func(o *dispatch.Operation) { o.Effect = "" },
			"definition": func(o *dispatch.Operation) { o.Definition = "" },
			"since":      func(o *dispatch.Operation) { o.Since = time.Time{} },
			"lease":      func(o *dispatch.Operation) { o.Lease = time.Time{} },
			"proposal":   func(o *dispatch.Operation) { o.Proposal = nil },
			"result":     func(o *dispatch.Operation) { o.Result = ijson.Raw(`1`) },
			"exact":      func(o *dispatch.Operation) { o.Exact = exact },
			"lookups":    func(o *dispatch.Operation) { o.Lookups = 1 },
			"no state":   func(o *dispatch.Operation) { o.State = "" },
			"odd state":  func(o *dispatch.Operation) { o.State = "pending" },
		} {
			task := apply(t, s, create(key(name)))
			change := outside(task, "message-1", "effect-1")
			spoil(&change.Operation)
			faulty(t, s, operating(task, change), name)
		}
	}},
	{"look-ups are counted one by one", func(t *testing.T, s dispatch.Store) {
		task, o := stand(t, s, "labels-1", dispatch.Unknown)
		for _, more := range []int{-1, 0, 2} {
			change := become(o, dispatch.Unknown)
			change.Lookups = o.Lookups + more
			faulty(t, s, operating(task, change), fmt.Sprint(more))
		}
		operated(t, s, task, become(o, dispatch.Unknown))
	}},
	{"of the calls that may take place, one has an effect in a task", func(t *testing.T, s dispatch.Store) {
		for _, state := range operationStates {
			task, _ := stand(t, s, "labels-"+string(state), state)
			other := operating(task, outside(task, "message-2", "effect-1"))
			unnamed := operating(task, keyless(task, "effect-1"))
			if state == dispatch.Started || state == dispatch.Unknown {
				refused(t, s, other, dispatch.ErrMoved)
				refused(t, s, unnamed, dispatch.ErrMoved)
				other.Operation = outside(task, "message-2", "effect-2")
			}
			apply(t, s, other)
		}
	}},
	{"no call begins again beside another of its effect", func(t *testing.T, s dispatch.Store) {
		task, o := stand(t, s, "labels-1", dispatch.Absent)
		task, other := operated(t, s, task, outside(task, "message-2", "effect-1"))
		refused(t, s, operating(task, again(o, task)), dispatch.ErrMoved)
		task, _ = operated(t, s, task, become(other, dispatch.Committed))
		operated(t, s, task, again(o, task))
	}},
	{"an id names one operation of a tenant", func(t *testing.T, s dispatch.Store) {
		task, o := stand(t, s, "labels-1", dispatch.Committed)
		same := outside(task, "message-2", "effect-2")
		same.ID = o.ID
		refused(t, s, operating(task, same), dispatch.ErrMoved)
		foreign := create(dispatch.TaskKey{Tenant: "elsewhere", ID: "labels-1"})
		foreign.Operation = operation(foreign.Task, "message-1")
		foreign.Operation.ID = o.ID
		apply(t, s, foreign)
	}},
	{"of many who begin one call, or one effect, exactly one does", func(t *testing.T, s dispatch.Store) {
		for name, begin := range map[string]func(task dispatch.Task, i int) *dispatch.OperationChange{
			"key": func(task dispatch.Task, i int) *dispatch.OperationChange {
				return outside(task, "message-1", fmt.Sprint(i))
			},
			"effect": func(task dispatch.Task, i int) *dispatch.OperationChange {
				return outside(task, fmt.Sprint(i), "effect-1")
			},
		} {
			apply(t, s, create(key(name)))
			const racers = 10
			outcomes := make([]error, racers)
			var all sync.WaitGroup
			for i := range racers {
				all.Go(func() {
					for { // the task moves on: only the row itself stops who comes late
						task, err := s.Task(t.Context(), key(name))
						if !assert.NoError(t, err) {
							return
						}
						outcomes[i] = s.Apply(t.Context(), operating(task, begin(task, i)))
						now, err := s.Task(t.Context(), key(name))
						if !assert.NoError(t, err) || outcomes[i] == nil || now.Revision == task.Revision {
							return
						}
					}
				})
			}
			all.Wait()
			won := 0
			for _, err := range outcomes {
				if err == nil {
					won++
					continue
				}
				assert.ErrorIs(t, err, dispatch.ErrMoved)
			}
			assert.Equal(t, 1, won, name)
			assert.Len(t, load(t, s, key(name), dispatch.Lookup{}).Open, 1, name)
		}
	}},
	{"what is open of a task comes with every load, by step", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		assert.Empty(t, load(t, s, task.TaskKey, dispatch.Lookup{}).Open)
		var all []dispatch.Operation
		for i := range 4 {
			change := outside(task, fmt.Sprint(4-i), fmt.Sprint("effect-", i))
			change.ExactProposal = exact
			var o dispatch.Operation
			task, o = operated(t, s, task, change)
			all = append(all, o)
		}
		task, unnamed := operated(t, s, task, keyless(task, "effect-keyless"))
		task, all[1] = operated(t, s, task, become(all[1], dispatch.Committed))
		task, all[2] = operated(t, s, task, become(all[2], dispatch.Absent))
		task, all[0] = operated(t, s, task, become(all[0], dispatch.Unknown))
		task, all[0] = operated(t, s, task, again(all[0], task)) // the last step is its
		task, all[3] = operated(t, s, task, become(all[3], dispatch.Unknown))
		all[0].ExactProposal, all[3].ExactProposal = nil, nil
		assert.Equal(t, []dispatch.Operation{all[3], unnamed, all[0]}, load(t, s, task.TaskKey, dispatch.Lookup{}).Open)

		other := apply(t, s, create(key("labels-2")))
		assert.Empty(t, load(t, s, other.TaskKey, dispatch.Lookup{}).Open)
	}},
	{"operations are listed by their states", func(t *testing.T, s dispatch.Store) {
		for _, id := range []string{"b", "a"} {
			task := apply(t, s, create(key(id)))
			for _, state := range operationStates {
				name := string(state)
				var o dispatch.Operation
				task, o = operated(t, s, task, outside(task, name, "effect-"+name))
				if state != dispatch.Started {
					task, _ = operated(t, s, task, become(o, state))
				}
			}
		}
		for _, list := range []struct {
			task   string
			states []dispatch.OperationState
			want   []string
		}{
			{"", nil, []string{"a started", "a unknown", "a committed", "a absent", "b started", "b unknown", "b committed", "b absent"}},
			{"a", nil, []string{"a started", "a unknown", "a committed", "a absent"}},
			{"", []dispatch.OperationState{dispatch.Started}, []string{"a started", "b started"}},
			{"", []dispatch.OperationState{dispatch.Unknown, dispatch.Started}, []string{"a started", "a unknown", "b started", "b unknown"}},
			{"b", []dispatch.OperationState{dispatch.Unknown, dispatch.Started}, []string{"b started", "b unknown"}},
			{"b", []dispatch.OperationState{dispatch.Unknown, dispatch.Absent}, []string{"b unknown", "b absent"}},
			{"", []dispatch.OperationState{dispatch.Committed}, []string{"a committed", "b committed"}},
			{"c", nil, []string{}},
		} {
			got, err := s.Operations(t.Context(), tenant, list.task, list.states...)
			require.NoError(t, err)
			assert.Equal(t, list.want, keys(got), "task %q, states %v", list.task, list.states)
		}
		got, err := s.Operations(t.Context(), "elsewhere", "", dispatch.Started)
		require.NoError(t, err)
		assert.Empty(t, got)
	}},
}
