package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/snapshot"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// template is a real commit, that of an approved draft, with the state that it was computed from. The commit is a task's
// next step, its approval consumed, an operation, a record, and the entries of the decision and the action. It comes from
// the built-in configuration.
type template struct {
	made   snapshot.Made
	before dispatch.State
	commit dispatch.Commit
	lookup dispatch.Lookup
}

// recorder keeps the last commit that passes through it.
type recorder struct {
	dispatch.Store
	last dispatch.Commit
}

func (r *recorder) Apply(ctx context.Context, c dispatch.Commit) error {
	r.last = c
	return r.Store.Apply(ctx, c)
}

// sample is the template of every subject that wants one.
var sample = sync.OnceValues(func() (template, error) { return newTemplate(context.Background()) })

// newTemplate dispatches a draft to its end and keeps what the store was given.
func newTemplate(ctx context.Context) (t template, err error) {
	if _, t.made, err = shipped(ctx); err != nil {
		return t, err
	}
	store, err := sqlite.OpenMemory(ctx)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r := &recorder{Store: store}
	g := gate{dispatch.New(r, store.Key(), time.Now, t.made.Snapshot)}
	task, id := name('t'), name('d')
	proposal := draft(id)
	if err := errors.Join(g.create(ctx, task), g.propose(ctx, task, proposal, dispatch.StatusApprovalRequired), g.approve(ctx, task, proposal)); err != nil {
		return t, err
	}
	approval := r.last.Approvals[0]
	t.lookup = dispatch.Lookup{Signature: approval.Signature, Mode: approval.Mode, Actor: who.Actor, Key: id, Tool: "record_draft", Target: id}
	if t.before, err = store.Load(ctx, keyOf(task), t.lookup); err != nil {
		return t, err
	}
	if err := g.propose(ctx, task, proposal, dispatch.StatusOK); err != nil {
		return t, err
	}
	t.commit = r.last
	c := t.commit
	if len(c.Approvals) != 1 || c.Approvals[0].State != dispatch.Consumed || c.Operation == nil || c.Record == nil || len(c.Entries) != 2 {
		return t, fmt.Errorf("the commit of a draft is not what it was: %+v", c)
	}
	return t, nil
}

// fresh gives the template to a task and an approval of new names: the commit, and the one that it builds on. The names are
// as long as those of the template, and so are the entries.
func (t template) fresh() (ground, next dispatch.Commit) {
	task := keyOf(name('t'))
	approval := "ap-" + name('a')[:len(t.before.Approval.ID)-len("ap-")]
	renamed := func(a dispatch.Approval) dispatch.Approval {
		a.Task, a.ID = task, approval
		return a
	}
	ground = dispatch.Commit{Task: t.before.Task, Approvals: []dispatch.ApprovalChange{{Approval: renamed(*t.before.Approval)}}}
	ground.Task.TaskKey, ground.Task.Revision = task, 1

	next = t.commit
	next.Revision = 1
	next.Task.TaskKey, next.Task.Revision = task, 2
	next.Approvals = []dispatch.ApprovalChange{{Approval: renamed(t.commit.Approvals[0].Approval), From: t.commit.Approvals[0].From}}
	operation, record := *t.commit.Operation, *t.commit.Record
	operation.Task, record.Task = task, task
	operation.ID = dispatch.OperationID(task, operation.Actor, operation.Key, operation.Dispatch)
	next.Operation, next.Record = &operation, &record
	next.Entries = nil
	for _, entry := range t.commit.Entries {
		entry.Task = task
		body := bytes.ReplaceAll(entry.Body, []byte(t.before.Task.ID), []byte(task.ID))
		entry.Body = ijson.Raw(bytes.ReplaceAll(body, []byte(t.before.Approval.ID), []byte(approval)))
		next.Entries = append(next.Entries, entry)
	}
	return ground, next
}

// commits gives n commits to a state that has everything they build on. Each is on a task of its own with a random name, so
// that none waits for another, and all meet the indexes anywhere.
func (t template) commits(ctx context.Context, e *env, n int) (*state, []dispatch.Commit, error) {
	commits := make([]dispatch.Commit, n)
	s, err := newState(ctx, e, "state", func(store *sqlite.Store) error {
		return prepare(n, func(i int) error {
			ground, next := t.fresh()
			commits[i] = next
			return store.Apply(ctx, ground)
		})
	})
	return s, commits, err
}

// arrived asserts that a store has all of a commit.
func (t template) arrived(ctx context.Context, store dispatch.Store, c dispatch.Commit) error {
	got, err := store.Load(ctx, c.Task.TaskKey, t.lookup)
	if err != nil {
		return err
	}
	var entries []dispatch.Entry
	for entry, err := range store.Entries(ctx, c.Task.Tenant, c.Task.ID) {
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	want := dispatch.State{Task: c.Task, Approval: &c.Approvals[0].Approval, Operation: &c.Operation.Operation, TargetExists: true}
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(entries, c.Entries) {
		return fmt.Errorf("the wrong answer: a store keeps something else than it was given:\n%+v\n%+v", got, want)
	}
	return nil
}
