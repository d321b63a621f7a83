//go:build linux

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Faults of the disk, injected below SQLite.

// openings are the calls that open or make a file.
var openings = []string{"open", "openat"}

// fault is what a call gives instead of taking place: once, or from there on whenever it is about the same file.
type fault struct {
	error   string
	onwards bool
}

var (
	ioError = fault{error: "EIO"}
	full    = fault{error: "ENOSPC", onwards: true}
)

func (f fault) at(nth int) string {
	s := fmt.Sprintf("error=%s:when=%d", f.error, nth)
	if f.onwards {
		s += "+"
	}
	return s
}

// fail lets a fault happen to the command once at each of the moments.
func (v victim) fail(t *testing.T, f fault, at []moment) {
	t.Helper()
	require.NotEmpty(t, at)
	hit := 0
	seen := map[bool]int{}
	for _, m := range at {
		// strace counts for each thread, and a busy machine may move a run to another in the middle of its calls.
		for range 10 {
			h := v.before.copy(t)
			r := h.trace([]string{m.call}, m, f.at(m.nth), v.args)
			if slices.ContainsFunc(r.calls, func(s string) bool { return strings.HasSuffix(s, "(INJECTED)") }) {
				hit++
				done := v.survived(t, fmt.Sprint(m, " ", f), m, r)
				seen[done]++
				break
			}
			require.Equal(t, []any{v.unhurt, syscall.Signal(0)}, []any{r.code, r.signal}, r.stderr)
		}
	}
	t.Logf("%d moments, %d times %v; in %d nothing had happened, in %d all", len(at), hit, f, seen[false], seen[true])
	require.Greater(t, 4*hit, 3*len(at), "a fault that does not take place shows nothing")
}

// remedy is what a person is told to do about a fault of the disk.
var remedy = regexp.MustCompile(`free some space on its disk|see that its disk works`)

// survived examines what a run with a fault said and left, and whether the same command works without the fault.
func (v victim) survived(t *testing.T, name string, m moment, r traced) (done bool) {
	t.Helper()
	said := r.stderr
	require.Zero(t, r.signal, name)
	require.NotContains(t, said, "goroutine ", "%s: it ends in an orderly way", name)
	done = v.check(t, r.home, strings.HasSuffix(r.stdout, "\n"))
	switch {
	case r.code == v.unhurt:
		require.True(t, done, "%s: what went well is there", name)
	case m.file == "stdout":
		assert.Equal(t, exitBroken, r.code, name)
		assert.Contains(t, said, "could not be written", name)
	default:
		assert.Contains(t, []int{exitBroken, exitMisuse}, r.code, "%s: %s", name, said)
		assert.Contains(t, said, r.home.state(), name)
		assert.Regexp(t, remedy, said, name)
		assert.False(t, done && r.code == exitMisuse, "%s: a mistake in the command does nothing", name)
	}
	return done
}

// edges are the first and the last of each row of equal calls.
func edges(all []moment) []moment {
	var out []moment
	for i, m := range all {
		equal := func(j int) bool {
			return j >= 0 && j < len(all) && all[j].call == m.call && all[j].file == m.file
		}
		if !equal(i-1) || !equal(i+1) {
			out = append(out, m)
		}
	}
	return out
}

// only picks the moments of some calls about some files.
func only(all []moment, files []string, calls ...string) []moment {
	return slices.DeleteFunc(slices.Clone(all), func(m moment) bool {
		return !slices.Contains(calls, m.call) || !slices.Contains(files, m.file)
	})
}

// A disk that fails or is full around the commit: the command says so and what to do, answers nothing that is not
// durable, leaves all of its work or nothing of it, and works again once the disk does. The journal is that of a new file
// which turns to its write-ahead log.
func TestFaultsAroundTheCommit(t *testing.T) {
	needStrace(t)
	for name, of := range victims {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := of(t)
			all := edges(v.plan(t, append(openings, mutations...)...))
			v.fail(t, ioError, only(all, []string{"govern.db-wal", "govern.db-journal"}, "fsync", "fdatasync"))
			v.fail(t, full, only(all, []string{"govern.db-wal", "govern.db.key.new", "stdout"}, "pwrite64", "write"))
			v.fail(t, full, only(all, []string{"govern.db.lock"}, "openat"))
		})
	}
}
