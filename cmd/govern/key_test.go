//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/checkpoint"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// keyEntries are the changes of keys that the log of a state holds.
func (h home) keyEntries(t *testing.T) []dispatch.KeyEntry {
	t.Helper()
	s, err := sqlite.Open(t.Context(), h.state(), sqlite.Options{})
	require.NoError(t, err)
	var all []dispatch.KeyEntry
	for e, err := range s.EntriesFrom(t.Context(), 0) {
		require.NoError(t, err)
		if e.Kind == dispatch.KindKey {
			require.Equal(t, dispatch.TaskKey{}, e.Task)
			var k dispatch.KeyEntry
			require.NoError(t, json.Unmarshal(e.Body, &k))
			all = append(all, k)
		}
	}
	require.NoError(t, s.Close())
	return all
}

// keys are those in the file, as they are published.
func (h home) keys(t *testing.T) []string {
	t.Helper()
	keys, err := checkpoint.ReadKeys(h.state() + ".signing-key")
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return keys.Public()
}

func (h home) ok(t *testing.T, args ...string) string {
	t.Helper()
	r := h.govern(args...)
	require.Zero(t, r.code, "%v: %s", args, r.stderr)
	return r.stdout
}

func TestEntriesOfKeys(t *testing.T) {
	h := newHome(t)
	h.ok(t, "key", "new", "--origin", "example.com/log")
	first := h.keys(t)
	h.ok(t, "key", "rotate")
	both := h.keys(t)
	h.ok(t, "key", "rotate", "--finish")
	last := h.keys(t)
	entries := h.keyEntries(t)
	require.Len(t, entries, 3)
	for i, want := range []dispatch.KeyEntry{{Act: "new", Keys: first}, {Act: "rotate", Keys: both}, {Act: "finish", Keys: last}} {
		e := entries[i]
		want.EntryHeader = dispatch.EntryHeader{Kind: "key", N: i, Time: e.Time}
		want.By = operator()
		require.Equal(t, want, e)
	}
	noFaults(t, h.state())
}

// What was changed far behind the end of the log, where no start looks, is proven by nothing.
func TestNoProofOfWhatWasChanged(t *testing.T) {
	whole := newHome(t)
	var proposals strings.Builder
	for i := range 60 {
		proposals.WriteString(add(fmt.Sprint("c", i)) + "\n")
	}
	whole.write("many.jsonl", proposals.String())
	whole.ok(t, "run", "many.jsonl")
	whole.ok(t, "key", "new")
	for _, works := range [][]string{{"log", "prove", "5"}, {"log", "consistency", "9"}} {
		whole.ok(t, works...)
	}
	for name, c := range map[string]struct {
		sql, says string
		args      []string
	}{
		"an entry": {"UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'learner', 'Learner') AS BLOB) WHERE seq = 6",
			"entry 5 does not lead to the root of the log", []string{"log", "prove", "5"}},
		"a leaf": {"UPDATE tree SET hashes = zeroblob(length(hashes)) WHERE leaf = 4",
			"entry 5 does not lead to the root of the log", []string{"log", "prove", "5"}},
		"a hash of what the log was": {"UPDATE tree SET hashes = zeroblob(length(hashes)) WHERE leaf = 8",
			"changed or replaced", []string{"log", "consistency", "9"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := whole.copy(t)
			tamper(t, h.state(), c.sql)
			r := h.govern(c.args...)
			require.Equal(t, exitBroken, r.code)
			require.Empty(t, r.stdout)
			require.Contains(t, r.stderr, c.says)
			require.Contains(t, r.stderr, "govern log verify")
		})
	}
}

// Of several who make a key at once, one does.
func TestKeysMadeAtOnce(t *testing.T) {
	h := newHome(t)
	h.ok(t, "task", "create", "other")
	var group sync.WaitGroup
	codes := make([]int, 4)
	for i := range codes {
		group.Go(func() { codes[i] = h.govern("key", "new").code })
	}
	group.Wait()
	require.ElementsMatch(t, []int{exitOK, exitMisuse, exitMisuse, exitMisuse}, codes)
	entries := h.keyEntries(t)
	require.Len(t, entries, 1)
	require.Equal(t, entries[0].Keys, h.keys(t))
}

// keyChanges are the commands that change the keys of a state. Whatever happens to one leaves no key in use that is not on
// record and no record that lies, and nothing of a secret that others can read; the same command again mends it.
func keyChanges(t *testing.T, do func(t *testing.T, v victim)) {
	acts := [][]string{{"key", "new"}, {"key", "rotate"}, {"key", "rotate", "--finish"}}
	for i, args := range acts {
		t.Run(strings.Join(args[1:], " "), func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.ok(t, "task", "create", "other")
			for _, earlier := range acts[:i] {
				h.ok(t, earlier...)
			}
			before := h.keys(t)
			v := victim{before: h, args: args, unhurt: exitOK, check: func(t *testing.T, h home, printed bool) bool {
				entries := h.copy(t).keyEntries(t)
				done := len(entries) == i+1
				require.Equal(t, i, len(entries[:min(i, len(entries))]))
				require.False(t, printed && !done, "what was answered is there")
				files, err := filepath.Glob(h.state() + ".signing-key*")
				require.NoError(t, err)
				for _, file := range files {
					info, err := os.Stat(file)
					require.NoError(t, err)
					require.EqualValues(t, 0o600, info.Mode().Perm(), file)
				}
				inUse, finished := h.keys(t), false
				if done {
					finished = assert.ObjectsAreEqual(entries[i].Keys, inUse)
				}
				if !finished {
					require.Equal(t, before, inUse, "the file is the old one or the new one")
				}

				looked := h.copy(t)
				r := looked.govern("key", "show")
				switch {
				case done:
					require.Zero(t, r.code, r.stderr)
					require.Equal(t, entries[i].Keys, looked.keys(t), "a look is enough to finish what is on record")
				case i == 0:
					require.Contains(t, r.stderr, "govern key new")
				default:
					require.Zero(t, r.code, r.stderr)
					require.Equal(t, before, looked.keys(t))
				}

				want := exitOK
				if finished {
					want = exitMisuse // it is there, and is not made twice
				}
				require.Equal(t, want, h.govern(args...).code)
				entries = h.keyEntries(t)
				require.Len(t, entries, i+1)
				require.Equal(t, entries[i].Keys, h.keys(t))
				require.NoFileExists(t, h.state()+".signing-key.new")
				return done
			}}
			do(t, v)
		})
	}
}

func TestKilledWhileKeysChange(t *testing.T) {
	needStrace(t)
	keyChanges(t, func(t *testing.T, v victim) { v.kill(t, around(v.plan(t, mutations...))) })
}

func TestFaultsWhileKeysChange(t *testing.T) {
	needStrace(t)
	keyChanges(t, func(t *testing.T, v victim) {
		all := edges(v.plan(t, append(openings, mutations...)...))
		v.fail(t, ioError, only(all, []string{"govern.db-wal", "govern.db.signing-key.new", "."}, "fsync", "fdatasync"))
		v.fail(t, ioError, only(all, []string{"govern.db.signing-key.new"}, "rename", "renameat", "renameat2"))
		v.fail(t, full, only(all, []string{"govern.db-wal", "govern.db.signing-key.new", "stdout"}, "pwrite64", "write"))
	})
}
