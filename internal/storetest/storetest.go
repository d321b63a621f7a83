// Package storetest is the contract of dispatch.Store as tests. Every store passes all of it.
package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Run checks that a store keeps every promise of dispatch.Store. Each part gets a new, empty store from open, which
// also sees to its end.
func Run(t *testing.T, open func(t *testing.T) dispatch.Store) {
	for _, group := range []struct {
		name  string
		parts []part
	}{
		{"tasks", tasks},
		{"approvals", approvals},
		{"effects", effects},
		{"operations", operations},
		{"sealed", sealed},
		{"entries", entries},
		{"log", log},
		{"spans", spans},
		{"commits", commits},
		{"holds", holds},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, p := range group.parts {
				t.Run(p.promise, func(t *testing.T) { p.check(t, open(t)) })
			}
		})
	}
}

type part struct {
	promise string
	check   func(t *testing.T, s dispatch.Store)
}

const tenant = dispatch.DefaultTenant

// Times here are whole milliseconds in UTC, as a store keeps them.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

// moment is a time as votes hold it.
func moment(t time.Time) string { return t.Format(time.RFC3339Nano) }

func key(id string) dispatch.TaskKey { return dispatch.TaskKey{Tenant: tenant, ID: id} }

// create is a commit that makes a task, with its entry.
func create(task dispatch.TaskKey) dispatch.Commit {
	return dispatch.Commit{
		Task: dispatch.Task{
			TaskKey: task, Profile: "labels", Actor: "learner",
			Deadline: at(time.Hour), Updated: at(0), Entries: 1, Revision: 1,
		},
		Entries: []dispatch.Entry{entry(task, 0, 0, dispatch.KindTask)},
	}
}

// step is a commit that judges the task's next call, with its entry.
func step(task dispatch.Task) dispatch.Commit {
	c := dispatch.Commit{Revision: task.Revision, Task: task}
	c.Task.Revision++
	c.Task.Steps++
	c.Task.Entries = 1
	c.Task.Updated = at(time.Duration(c.Task.Steps) * time.Second)
	c.Entries = []dispatch.Entry{entry(task.TaskKey, c.Task.Steps, 0, dispatch.KindDecision)}
	return c
}

func entry(task dispatch.TaskKey, step, n int, kind dispatch.Kind) dispatch.Entry {
	return dispatch.Entry{Task: task, Step: step, N: n, Kind: kind,
		Body: ijson.Raw(fmt.Sprintf(`{"n":%d,"step":%d}`, n, step))}
}

func ask(task dispatch.Task, id, signature string) dispatch.ApprovalChange {
	return dispatch.ApprovalChange{Approval: dispatch.Approval{
		ID: id, Task: task.TaskKey, Actor: "learner", Signature: signature, Definition: "definition-1",
		Mode: dispatch.Enforce, Step: task.Steps + 1, Proposal: ijson.Raw(`{"tool":"record_draft"}`),
		State: dispatch.Pending, ExpiresAt: at(24 * time.Hour), PolicyVersion: "1@sha256:aa",
	}}
}

// move is a change of an approval to another state.
func move(a dispatch.Approval, to dispatch.ApprovalState) dispatch.ApprovalChange {
	change := dispatch.ApprovalChange{Approval: a, From: a.State}
	change.State = to
	return change
}

// operation is a local tool's, which comes to be as it is committed.
func operation(task dispatch.Task, key string) *dispatch.OperationChange {
	o := dispatch.Operation{Task: task.TaskKey, Actor: "learner", Key: key, Signature: "signature-" + key, Tool: "record_draft",
		State: dispatch.Committed, Step: task.Steps + 1, Run: 1, Result: ijson.Raw(`{"draft":"` + key + `"}`)}
	return named(o)
}

// named is the creation of an operation under its name.
func named(o dispatch.Operation) *dispatch.OperationChange {
	o.ID = dispatch.OperationID(o.Task, o.Actor, o.Key, o.Dispatch)
	return &dispatch.OperationChange{Operation: o}
}

func record(task dispatch.Task, target string) *dispatch.Record {
	return &dispatch.Record{Task: task.TaskKey, Tool: "record_draft", Target: target,
		Value: ijson.Raw(`{"target":"` + target + `"}`)}
}

// apply applies a commit that must succeed, and gives its task.
func apply(t *testing.T, s dispatch.Store, c dispatch.Commit) dispatch.Task {
	t.Helper()
	require.NoError(t, s.Apply(t.Context(), c))
	return c.Task
}

// judged applies a task's next step with some approval changes.
func judged(t *testing.T, s dispatch.Store, task dispatch.Task, changes ...dispatch.ApprovalChange) dispatch.Task {
	t.Helper()
	c := step(task)
	c.Approvals = changes
	return apply(t, s, c)
}

func load(t *testing.T, s dispatch.Store, task dispatch.TaskKey, l dispatch.Lookup) dispatch.State {
	t.Helper()
	state, err := s.Load(t.Context(), task, l)
	require.NoError(t, err)
	return state
}

func read(t *testing.T, s dispatch.Reader, tenant, task string) []dispatch.Entry {
	t.Helper()
	var all []dispatch.Entry
	for e, err := range s.Entries(t.Context(), tenant, task) {
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

func ids(approvals []dispatch.Approval) []string {
	ids := []string{}
	for _, a := range approvals {
		ids = append(ids, a.ID)
	}
	return ids
}

// contents is everything that a tenant has in a store.
type contents struct {
	Tasks      []dispatch.Task
	Approvals  []dispatch.Approval
	Operations []dispatch.Operation
	Records    []dispatch.Record
	Entries    []dispatch.Entry
}

func everything(t *testing.T, s dispatch.Store) contents {
	t.Helper()
	var all contents
	var err error
	all.Tasks, err = s.Tasks(t.Context(), tenant)
	require.NoError(t, err)
	all.Approvals, err = s.Approvals(t.Context(), tenant, "")
	require.NoError(t, err)
	all.Operations, err = s.Operations(t.Context(), tenant, "")
	require.NoError(t, err)
	all.Records, err = s.Records(t.Context(), tenant, "")
	require.NoError(t, err)
	all.Entries = read(t, s, tenant, "")
	return all
}

// refused checks that a commit gives an error and leaves no trace.
func refused(t *testing.T, s dispatch.Store, c dispatch.Commit, want error) {
	t.Helper()
	before := everything(t, s)
	require.ErrorIs(t, s.Apply(t.Context(), c), want)
	assert.Equal(t, before, everything(t, s), "a refused commit changed something")
}
