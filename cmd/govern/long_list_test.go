package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// longState is a state with long lists: decisions and actions of one task, and approvals that were rejected. It gives the
// commit of one decision more.
func longState(t *testing.T, length int) (file string, more dispatch.Commit) {
	t.Helper()
	text := strings.Repeat("\U0001F9EA", 400)
	l := newLab(t, budget(10))
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("c1", "body", text)).Status)
	require.Equal(t, dispatch.StatusOK, l.propose(read("c2", "/warehouse/labels.txt")).Status)
	waiting, err := l.store.Approvals(t.Context(), l.who.Tenant, "", dispatch.Pending)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	var decision, action dispatch.Entry
	for _, e := range l.entries() {
		switch {
		case e.Kind == dispatch.KindDecision && e.Step == 1:
			decision = e
		case e.Kind == dispatch.KindAction:
			action = e
		}
	}
	require.Greater(t, len(decision.Body), len(text))

	file = filepath.Join(t.TempDir(), "govern.db")
	store, err := sqlite.Open(t.Context(), file, sqlite.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	task, err := l.store.Task(t.Context(), l.key())
	require.NoError(t, err)
	task.Revision = 0
	for range length / 500 {
		c := dispatch.Commit{Revision: task.Revision, Task: task}
		c.Task.Revision++
		for range 500 {
			c.Task.Steps++
			decision.Step, decision.N, action.Step, action.N = c.Task.Steps, 0, c.Task.Steps, 1
			c.Entries = append(c.Entries, decision, action)
			a := waiting[0]
			a.ID, a.Step, a.State = fmt.Sprintf("ap-%d", c.Task.Steps), c.Task.Steps, dispatch.Rejected
			c.Approvals = append(c.Approvals, dispatch.ApprovalChange{Approval: a})
		}
		require.NoError(t, store.Apply(t.Context(), c))
		task = c.Task
	}
	more = dispatch.Commit{Revision: task.Revision, Task: task, Entries: []dispatch.Entry{decision}}
	more.Task.Revision++
	more.Task.Steps++
	more.Entries[0].Step = more.Task.Steps
	return file, more
}

// A long list needs no more memory than a short one, neither before its first rows nor at its last.
func TestListsNeedNoMoreMemoryForMoreRows(t *testing.T) {
	const few, many = 500, 3_000 // of a kilobyte or more, so that they would show if they were kept
	short, more := longState(t, few)
	long, _ := longState(t, many)
	for _, words := range [][]string{
		{"log", "decisions"},
		{"log", "decisions", "--task", more.Task.ID, "--inputs", "--format", "json"},
		{"log", "decisions", "--last", fmt.Sprint(many), "--inputs", "--format", "json"},
		{"log", "actions", "--limit", fmt.Sprint(many), "--format", "json"},
		{"log", "trace", "--task", more.Task.ID, "--format", "json"},
		{"review", "list", "--all", "--format", "json"},
	} {
		t.Run(strings.Join(words, " "), func(t *testing.T) {
			const early, late = few - 100, many - 100
			heap := func(state string) map[int]uint64 {
				heap := map[int]uint64{}
				out := &lineWriter{written: func(n int, _ []byte) {
					if n == early || n == late {
						var stats runtime.MemStats
						runtime.GC()
						runtime.ReadMemStats(&stats)
						heap[n] = stats.HeapAlloc
					}
				}}
				require.Equal(t, exitOK, run(t.Context(), append(words, "--state", state), nil, out, io.Discard))
				return heap
			}
			ofShort, ofLong := heap(short)[early], heap(long)
			t.Logf("heap after %d of %d rows: %d KiB; of %d, after as many: %d KiB, after %d: %d KiB", early, few, ofShort>>10, many, ofLong[early]>>10, late, ofLong[late]>>10)
			require.NotZero(t, ofShort)
			require.NotZero(t, ofLong[late])
			assert.Less(t, max(ofLong[early], ofLong[late]), ofShort+1<<20)
		})
	}
}

// The rows of a list are there as they are read: what takes place after the first of them was written is in it too. And the
// list holds nothing up while it is written.
func TestListsStream(t *testing.T) {
	file, more := longState(t, 1_000) // more than one transaction reads
	store, err := sqlite.Open(t.Context(), file, sqlite.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	for _, words := range [][]string{
		{"log", "decisions"},
		{"log", "decisions", "--format", "json"},
		{"log", "decisions", "--task", more.Task.ID, "--format", "json"},
		{"log", "trace", "--task", more.Task.ID, "--format", "json"},
	} {
		t.Run(strings.Join(words, " "), func(t *testing.T) {
			id := fmt.Sprint("late-", more.Task.Steps)
			c := more
			c.Entries = slices.Clone(more.Entries)
			c.Entries[0].Body = bytes.ReplaceAll(more.Entries[0].Body, []byte(`"call_id":"c1"`), []byte(`"call_id":"`+id+`"`))
			found := 0
			out := &lineWriter{written: func(n int, line []byte) {
				if n == 1 {
					require.NoError(t, store.Apply(t.Context(), c))
				}
				if bytes.Contains(line, []byte(id)) {
					found++
				}
			}}
			require.Equal(t, exitOK, run(t.Context(), append(words, "--state", file), nil, out, io.Discard))
			assert.NotZero(t, found)
			more.Revision++
			more.Task.Revision++
			more.Task.Steps++
			more.Entries[0].Step++
		})
	}
}

// lineWriter calls written for each line, with its number from 1.
type lineWriter struct {
	written func(n int, line []byte)
	n       int
	rest    []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.n++
		w.written(w.n, w.rest[:i])
		w.rest = w.rest[i+1:]
	}
}
