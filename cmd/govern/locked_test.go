package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	zsqlite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// impatientLab is a lab over a file, with an approved draft, whose store does not wait long for anybody.
func impatientLab(t *testing.T) *lab {
	t.Helper()
	c, err := parseConfig("")
	require.NoError(t, err)
	g, err := assemble(t.Context(), c)
	require.NoError(t, err)
	l := emptyLab(t, g, filepath.Join(t.TempDir(), "govern.db"))
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved"))
	require.NoError(t, l.store.Close())
	l.store, err = sqlite.Open(t.Context(), l.file, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	require.NoError(t, err)
	l.serve()
	t.Cleanup(func() { _ = l.store.Close() }) // of which a damaged one complains
	return l
}

// B012, the store: a state that another keeps locked, or that cannot be read, never lets a call through. The call gets an
// error that names the file, nothing runs, and the approval is still good.
func TestB012ALockedStateLetsNothingThrough(t *testing.T) {
	for name, lock := range map[string][]string{
		"a commit that does not end":        {"BEGIN IMMEDIATE", "UPDATE tasks SET steps = steps"},
		"a commit that shuts out everybody": {"BEGIN EXCLUSIVE"},
	} {
		t.Run(name, func(t *testing.T) {
			l := impatientLab(t)
			before := l.entries()
			conn, err := zsqlite.OpenConn(l.file, zsqlite.OpenReadWrite)
			require.NoError(t, err)
			conn.SetBusyTimeout(0)
			for _, sql := range lock {
				require.NoError(t, sqlitex.ExecuteTransient(conn, sql, nil))
			}
			for _, proposal := range []string{draft("d1"), read("r1", "/warehouse/labels.txt"), add("m1"), "no JSON"} {
				r, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{}, []byte(proposal))
				require.ErrorIs(t, err, dispatch.ErrUnavailable)
				require.ErrorContains(t, err, l.file)
				require.Zero(t, r)
			}
			require.NoError(t, conn.Close())
			assert.Equal(t, before, l.entries())
			assert.Equal(t, dispatch.StatusOK, l.propose(draft("d1")).Status)
		})
	}
}

// A state that a program keeps for itself is not even opened.
func TestB012AStateOfAnotherIsNotOpened(t *testing.T) {
	l := impatientLab(t)
	require.NoError(t, l.store.Close())
	conn, err := zsqlite.OpenConn(l.file, zsqlite.OpenReadWrite)
	require.NoError(t, err)
	conn.SetBusyTimeout(0)
	for _, sql := range []string{"PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"} {
		require.NoError(t, sqlitex.ExecuteTransient(conn, sql, nil))
	}
	_, err = sqlite.Open(t.Context(), l.file, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	require.ErrorContains(t, err, l.file)
	require.ErrorIs(t, err, dispatch.ErrUnavailable)
	require.NoError(t, conn.Close())
	l.open()
	assert.Equal(t, dispatch.StatusOK, l.propose(draft("d1")).Status)
}

func TestB012AnUnreadableStateLetsNothingThrough(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, file string){
		"its pages are lost": func(t *testing.T, file string) {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			for i := range b[4096:] {
				b[4096+i] = 'x'
			}
			require.NoError(t, os.WriteFile(file, b, 0o600))
		},
		"it is cut": func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 4096)) },
		"its tables are gone": func(t *testing.T, file string) {
			conn, err := zsqlite.OpenConn(file, zsqlite.OpenReadWrite)
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, sqlitex.ExecuteScript(conn, "DROP TABLE approvals", nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := impatientLab(t)
			spoil(t, l.file)
			for _, proposal := range []string{draft("d1"), read("r1", "/warehouse/labels.txt"), add("m1"), "no JSON"} {
				r, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{}, []byte(proposal))
				require.Error(t, err)
				require.Equal(t, dispatch.Broken, dispatch.KindOf(err), "%v", err)
				require.Zero(t, r)
			}
			require.Error(t, l.review(draft("d1"), "approved"))
		})
	}
}
