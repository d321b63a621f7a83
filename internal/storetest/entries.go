package storetest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

var entries = []part{
	{"entries come in the order of their commits", func(t *testing.T, s dispatch.Store) {
		var want []dispatch.Entry
		keep := func(c dispatch.Commit) dispatch.Task {
			want = append(want, c.Entries...)
			return apply(t, s, c)
		}
		z, a := keep(create(key("z"))), keep(create(key("a")))
		apply(t, s, create(dispatch.TaskKey{Tenant: "elsewhere", ID: "a"}))
		for range 12 { // two digits, so that no order of text passes for one of numbers
			c := step(z)
			c.Entries = append(c.Entries, entry(z.TaskKey, c.Task.Steps, 1, dispatch.KindAction))
			c.Task.Entries = 2
			z, a = keep(c), keep(step(a))
		}
		review := dispatch.Commit{Revision: z.Revision, Task: z,
			Entries: []dispatch.Entry{entry(z.TaskKey, z.Steps, z.Entries, dispatch.KindReview)}}
		review.Task.Revision++
		review.Task.Entries++
		keep(review)

		assert.Equal(t, want, read(t, s, tenant, ""))
		var ofZ []dispatch.Entry
		for _, e := range want {
			if e.Task.ID == "z" {
				ofZ = append(ofZ, e)
			}
		}
		assert.Equal(t, ofZ, read(t, s, tenant, "z"))
		assert.Empty(t, read(t, s, tenant, "none"))
		assert.Empty(t, read(t, s, "nobody", ""))
	}},
	{"the last entry of a kind is that of the last commit, whatever its task", func(t *testing.T, s dispatch.Store) {
		last := func() dispatch.Entry {
			t.Helper()
			e, found, err := s.LastEntry(t.Context(), tenant, dispatch.KindDecision)
			require.NoError(t, err)
			assert.Equal(t, e.Kind != "", found)
			return e
		}
		z, a := apply(t, s, create(key("z"))), apply(t, s, create(key("a")))
		assert.Empty(t, last())
		for range 3 {
			z = apply(t, s, step(z))
		}
		c := step(a)
		c.Entries = append(c.Entries, entry(a.TaskKey, c.Task.Steps, 1, dispatch.KindAction))
		c.Task.Entries = 2
		apply(t, s, c)
		elsewhere := apply(t, s, create(dispatch.TaskKey{Tenant: "elsewhere", ID: "z"}))
		apply(t, s, step(elsewhere))
		touched := dispatch.Commit{Revision: z.Revision, Task: z, Entries: []dispatch.Entry{entry(z.TaskKey, z.Steps, z.Entries, dispatch.KindReview)}}
		touched.Task.Revision++
		touched.Task.Entries++
		apply(t, s, touched)
		assert.Equal(t, c.Entries[0], last())
	}},
	{"bodies come back byte for byte", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		c := step(task)
		c.Entries = nil
		for n, body := range [][]byte{all, []byte("null"), []byte(`"\u0000"`), bytes.Repeat([]byte{0}, 4096), bytes.Repeat([]byte("long "), 1<<18)} {
			e := entry(task.TaskKey, c.Task.Steps, n, dispatch.KindDecision)
			e.Body = body
			c.Entries = append(c.Entries, e)
		}
		apply(t, s, c)
		assert.True(t, assert.ObjectsAreEqual(c.Entries, read(t, s, tenant, "labels-1")[1:]))
	}},
	{"an entry's place is taken once", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		task = apply(t, s, step(task))
		c := step(task)
		c.Entries[0].Step = task.Steps
		refused(t, s, c, dispatch.ErrMoved)
	}},
	{"many entries are read to the end", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		const steps, each = 4, 700
		for range steps {
			c := step(task)
			c.Entries = nil
			for n := range each {
				c.Entries = append(c.Entries, entry(task.TaskKey, c.Task.Steps, n, dispatch.KindDecision))
			}
			task = apply(t, s, c)
		}
		for _, scope := range []string{"", "labels-1"} {
			got := read(t, s, tenant, scope)
			require.Len(t, got, 1+steps*each)
			for i, e := range got[1:] {
				require.Equal(t, [2]int{1 + i/each, i % each}, [2]int{e.Step, e.N})
			}
		}
	}},
	{"a consumer that stops or writes while it reads holds nothing up", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		for range 3 {
			task = apply(t, s, step(task))
		}
		for range s.Entries(t.Context(), tenant, "") {
			break
		}
		for e, err := range s.Entries(t.Context(), tenant, "labels-1") {
			require.NoError(t, err)
			if e.Step < 3 {
				task = apply(t, s, step(task))
			}
			for range s.Entries(t.Context(), tenant, "") {
				break
			}
		}
		assert.Len(t, read(t, s, tenant, ""), 1+3+3)
	}},
	{"an entry needs no other row to change", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		c := dispatch.Commit{Revision: task.Revision, Task: task}
		c.Task.Revision++
		task = apply(t, s, c)
		assert.Equal(t, int64(2), load(t, s, task.TaskKey, dispatch.Lookup{}).Task.Revision)
		assert.Len(t, read(t, s, tenant, ""), 1)
	}},
	{"a commit about two tasks is a fault, and changes nothing", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		other := apply(t, s, create(key("labels-2")))
		before := everything(t, s)
		for name, spoil := range map[string]func(*dispatch.Commit){
			"entry":     func(c *dispatch.Commit) { c.Entries[0].Task = other.TaskKey },
			"approval":  func(c *dispatch.Commit) { c.Approvals = []dispatch.ApprovalChange{ask(other, "a1", "signature-1")} },
			"operation": func(c *dispatch.Commit) { c.Operation = operation(other, "draft-1") },
			"record":    func(c *dispatch.Commit) { c.Record = record(other, "note") },
			"revision":  func(c *dispatch.Commit) { c.Task.Revision++ },
		} {
			c := step(task)
			spoil(&c)
			err := s.Apply(t.Context(), c)
			require.Error(t, err, name)
			assert.Equal(t, dispatch.Broken, dispatch.KindOf(err), name)
			assert.False(t, errors.Is(err, dispatch.ErrMoved), name)
		}
		assert.Equal(t, before, everything(t, s))
	}},
}
