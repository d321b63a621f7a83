package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// lab is the real thing without a command line: the shipped configuration, policy and tools over a fresh state, and a
// clock that stands still.
type lab struct {
	t testing.TB
	governed
	store      *sqlite.Store
	file       string // of the store, empty if it is in memory
	dispatcher *dispatch.Dispatcher
	now        time.Time
	who        dispatch.Principal
	task       string
	abroad     bool // it has had tools outside, and so its log is audited at the end
}

// edit changes the shipped configuration before it is used.
type edit func(*config.Config)

func newLab(t testing.TB, edits ...edit) *lab {
	t.Helper()
	c, err := parseConfig("")
	require.NoError(t, err)
	for _, e := range edits {
		e(&c)
	}
	g, err := assemble(t.Context(), c)
	require.NoError(t, err)
	l := emptyLab(t, g, "")
	t.Cleanup(func() {
		if l.abroad {
			l.auditLog()
		}
		require.NoError(t, l.store.Close())
	})
	return l
}

// emptyLab is a lab over a fresh state, in memory or in a file, with one task. Its store is the caller's to close.
func emptyLab(t testing.TB, g governed, file string) *lab {
	t.Helper()
	l := &lab{t: t, governed: g, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), file: file,
		who: dispatch.Principal{Tenant: dispatch.DefaultTenant, Actor: g.config.Actor}, task: g.config.Task}
	l.open()
	l.create(l.task, l.who.Actor)
	return l
}

// open opens the store, as a process does when it starts.
func (l *lab) open() {
	l.t.Helper()
	var err error
	if l.file == "" {
		l.store, err = sqlite.OpenMemory(context.Background())
	} else {
		l.store, err = sqlite.Open(context.Background(), l.file, sqlite.Options{})
	}
	require.NoError(l.t, err)
	l.serve()
}

// serve makes a dispatcher over the state, as a process does when it starts.
func (l *lab) serve() {
	l.dispatcher = dispatch.New(l.store, l.store.Key(), l.clock, l.snapshot)
}

func (l *lab) clock() time.Time { return l.now }

func (l *lab) create(task, actor string) {
	l.t.Helper()
	require.NoError(l.t, l.dispatcher.CreateTask(context.Background(), dispatch.Task{
		TaskKey: dispatch.TaskKey{Tenant: l.who.Tenant, ID: task}, Profile: "warehouse", Actor: actor}, "operator"))
}

func (l *lab) key() dispatch.TaskKey { return dispatch.TaskKey{Tenant: l.who.Tenant, ID: l.task} }

// propose dispatches a proposal that is judged.
func (l *lab) propose(proposal string) dispatch.Result {
	l.t.Helper()
	r, err := l.dispatcher.Dispatch(context.Background(), l.who, l.task, dispatch.Origin{Door: "test"}, []byte(proposal))
	require.NoError(l.t, err)
	return r
}

func (l *lab) review(proposal, decision string, lifetime ...int) error {
	r := dispatch.Review{Reviewer: "maya", Decision: decision}
	if len(lifetime) == 1 {
		r.Lifetime = &lifetime[0]
	}
	_, err := l.dispatcher.ReviewCall(context.Background(), l.who, l.task, dispatch.Enforce, []byte(proposal), r)
	return err
}

func (l *lab) entries() []dispatch.Entry {
	l.t.Helper()
	var out []dispatch.Entry
	for e, err := range l.store.Entries(context.Background(), l.who.Tenant, "") {
		require.NoError(l.t, err)
		out = append(out, e)
	}
	return out
}

// count counts the entries of one kind.
func (l *lab) count(kind dispatch.Kind) int {
	n := 0
	for _, e := range l.entries() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// drafts are the records of record_draft by target.
func (l *lab) drafts() map[string]string {
	l.t.Helper()
	records, err := l.store.Records(context.Background(), l.who.Tenant, "")
	require.NoError(l.t, err)
	out := map[string]string{}
	for _, r := range records {
		out[r.Target] = string(r.Value)
	}
	return out
}

func call(id, tool string, arguments map[string]any) string {
	b, err := ijson.Marshal(map[string]any{"call_id": id, "tool": tool, "arguments": arguments})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func draft(id string, changes ...string) string {
	arguments := map[string]any{"draft_id": "labels-note", "purpose": "inventory-summary", "body": "There are 84 labels.", "idempotency_key": "draft-1"}
	for i := 0; i+1 < len(changes); i += 2 {
		arguments[changes[i]] = changes[i+1]
	}
	return call(id, "record_draft", arguments)
}

func add(id string) string {
	return call(id, "calculate", map[string]any{"op": "add", "a": 1, "b": 1})
}

func read(id, path string) string {
	return call(id, "read_document", map[string]any{"path": path})
}

func ptr[T any](v T) *T { return &v }
