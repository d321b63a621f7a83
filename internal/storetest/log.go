package storetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// log is the contract of every store as a log: merkle.Log, and the readings of dispatch.Reader that go with it.
var log = []part{
	{"the tree has the entries of every tenant as its leaves, in the order of their commits", func(t *testing.T, s dispatch.Store) {
		want := newLog(t, s)
		want.agrees()
		z, other := want.apply(create(key("z"))), want.apply(create(dispatch.TaskKey{Tenant: "elsewhere", ID: "a"}))
		for range 20 {
			c := step(z)
			c.Entries = append(c.Entries, entry(z.TaskKey, c.Task.Steps, 1, dispatch.KindAction))
			c.Task.Entries = 2
			z, other = want.apply(c), want.apply(step(other))
			want.agrees()
		}
	}},
	{"a commit that was refused is no part of the log", func(t *testing.T, s dispatch.Store) {
		want := newLog(t, s)
		a := want.apply(create(key("a")))
		c := step(a)
		c.Operation = operation(a, "k")
		b := want.apply(c)
		refused(t, s, step(a), dispatch.ErrMoved)
		again := step(b)
		again.Operation = operation(a, "k") // refused once its task's row has changed
		refused(t, s, again, dispatch.ErrMoved)
		want.agrees()
		want.apply(step(b))
		want.agrees()
	}},
	{"what is of no task has its own entries", func(t *testing.T, s dispatch.Store) {
		want := newLog(t, s)
		act := dispatch.Commit{Task: dispatch.Task{Updated: at(0), Entries: 1, Revision: 1},
			Entries: []dispatch.Entry{entry(dispatch.TaskKey{}, 0, 0, dispatch.KindActivation)}}
		want.apply(act)
		want.apply(create(key("a")))
		want.agrees()
		refused(t, s, act, dispatch.ErrTaskExists)
		assert.Equal(t, act.Task, load(t, s, dispatch.TaskKey{}, dispatch.Lookup{}).Task)
		last, found, err := s.LastEntry(t.Context(), "", dispatch.KindActivation)
		require.NoError(t, err)
		assert.True(t, found)
		assert.Equal(t, act.Entries[0], last)
		assert.Len(t, read(t, s, tenant, ""), 1, "and no tenant sees them")
	}},
	{"contents are kept once, with the commit that names them", func(t *testing.T, s dispatch.Store) {
		_, err := s.Content(t.Context(), "none")
		require.ErrorIs(t, err, dispatch.ErrUnknownContent)
		c := create(key("a"))
		c.Contents = []dispatch.Content{dispatch.NewContent([]byte("policy")), dispatch.NewContent(nil)}
		a := apply(t, s, c)
		c = step(a)
		c.Contents = []dispatch.Content{dispatch.NewContent([]byte("policy"))}
		apply(t, s, c)
		c.Contents = []dispatch.Content{dispatch.NewContent([]byte("never"))}
		refused(t, s, c, dispatch.ErrMoved)
		_, err = s.Content(t.Context(), dispatch.NewContent([]byte("never")).Digest)
		require.ErrorIs(t, err, dispatch.ErrUnknownContent)
		got, err := s.Content(t.Context(), "823412d1eacb67956220e532959f0104603057c88704863ca38e7cd188fda812") // as sha256sum prints it
		require.NoError(t, err)
		assert.Equal(t, "policy", string(got))
	}},
}

// expected is what a log must be: rebuilt leaf by leaf from what was committed.
type expected struct {
	t       *testing.T
	store   dispatch.Store
	log     merkle.Log
	edge    merkle.Edge
	entries []dispatch.Entry
}

func newLog(t *testing.T, s dispatch.Store) *expected {
	log, ok := s.(merkle.Log)
	require.True(t, ok, "a store is a log")
	return &expected{t: t, store: s, log: log}
}

func (e *expected) apply(c dispatch.Commit) dispatch.Task {
	e.t.Helper()
	for _, entry := range c.Entries {
		e.edge.Append(merkle.Leaf(entry.Body), nil)
		e.entries = append(e.entries, entry)
	}
	return apply(e.t, e.store, c)
}

func (e *expected) agrees() {
	e.t.Helper()
	head, err := e.log.Head(e.t.Context())
	require.NoError(e.t, err)
	require.Equal(e.t, e.edge.Head(), head)
	roots, err := e.log.Hashes(e.t.Context(), merkle.EdgeNodes(head.Size))
	require.NoError(e.t, err)
	edge, err := merkle.EdgeOf(head.Size, roots)
	require.NoError(e.t, err)
	require.Equal(e.t, head, edge.Head())
	for from := range len(e.entries) + 1 {
		var got []dispatch.Entry
		for entry, err := range e.store.EntriesFrom(e.t.Context(), int64(from)) {
			require.NoError(e.t, err)
			got = append(got, entry)
		}
		require.Equal(e.t, append([]dispatch.Entry(nil), e.entries[from:]...), got)
	}
	_, err = e.log.Hashes(e.t.Context(), []int64{merkle.LeafNode(head.Size)})
	require.Error(e.t, err, "there is no such leaf yet")
}
