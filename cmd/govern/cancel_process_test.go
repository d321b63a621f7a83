//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Budgets and cancelling, with real processes.

// B089: calls that are sent all at once take from a budget one after the other, in the store: as many run as it has room
// for, and the others are told which budget it was.
func TestB089ABudgetForTwoProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		says   string
	}{
		"attempts": {strings.Replace(roomy, "max_steps: 1000000", "max_steps: 1000000\n    budgets: {attempts: 6}", 1), "attempts"},
		"steps":    {strings.Replace(roomy, "max_steps: 1000000", "max_steps: 6", 1), "step"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.write("config.yaml", c.config)
			// Each of the two processes makes one call beforehand, to be there.
			all := h.twoProcesses(t, func() {}, exitDenied, func(i int) string { return add(fmt.Sprint("m", i)) })
			got := map[dispatch.Status]int{}
			for _, l := range all {
				got[l.Status]++
			}
			require.Equal(t, map[dispatch.Status]int{dispatch.StatusOK: 6, dispatch.StatusBudgetExhausted: 46}, got)
			a := h.open(t)
			require.Equal(t, 6, a.count[dispatch.KindAction])
			require.Equal(t, 6.0, the(t, a.Tasks)["spent"].([3]float64)[1])
			for _, d := range a.decisions {
				if d.Status == dispatch.StatusBudgetExhausted {
					require.Contains(t, d.Decision.Reasons[0].Message, c.says)
				}
			}
		})
	}
}

// cancelled says that the task of a state is cancelled, and that nothing of it runs or is reviewed any more.
func (h home) cancelled(t *testing.T, approvals dispatch.ApprovalState, actions int) {
	t.Helper()
	a := h.govern("run", "draft.json")
	require.Equal(t, exitDenied, a.code, a.stderr)
	require.Equal(t, dispatch.StatusCancelled, a.lines(t)[0].Status)
	a = h.govern("run", "--approved")
	require.Zero(t, a.code, a.stderr)
	require.Empty(t, a.stdout)
	for _, verb := range []string{"approve", "reopen"} {
		a = h.govern("review", verb, "--proposal", "draft.json")
		require.Equal(t, exitDenied, a.code, a.stderr)
		require.Contains(t, a.stderr, "the task was cancelled")
	}
	s := h.open(t)
	require.Equal(t, true, the(t, s.Tasks)["cancelled"])
	require.Equal(t, string(approvals), the(t, s.Approvals)["state"])
	require.Equal(t, actions, s.count[dispatch.KindAction])
	require.Len(t, s.Records, actions)
	require.Equal(t, 1, s.count[dispatch.KindCancel])
}

func (h home) cancel(t *testing.T) {
	t.Helper()
	a := h.govern("cancel", "labels-1")
	require.Zero(t, a.code, a.stderr)
}

// B091, by the command: what waits or was approved never runs, and what has run stays.
func TestB091CancelledFromAnotherProcess(t *testing.T) {
	t.Run("while it waits", func(t *testing.T) {
		h := asked(t)
		h.cancel(t)
		h.cancelled(t, dispatch.Withdrawn, 0)
	})
	t.Run("once it is approved", func(t *testing.T) {
		h := approved(t)
		h.cancel(t)
		h.cancelled(t, dispatch.Withdrawn, 0)
	})
	t.Run("after its end", func(t *testing.T) {
		h := approved(t)
		require.Zero(t, h.govern("run", "--approved").code)
		h.cancel(t)
		h.cancelled(t, dispatch.Consumed, 1)
		a := h.govern("cancel", "labels-1")
		require.Zero(t, a.code, a.stderr)
		require.Contains(t, a.stdout, "was cancelled already")
	})
	t.Run("under a run that goes on", func(t *testing.T) {
		h := approved(t)
		s := h.start("run", "-")
		s.send(add("m1"))
		require.Equal(t, dispatch.StatusOK, s.next().Status)
		h.cancel(t)
		s.send(draft("d1"), add("m2"))
		for range 2 {
			require.Equal(t, dispatch.StatusCancelled, s.next().Status)
		}
		require.Equal(t, exitDenied, s.finish().code)
		require.Equal(t, 1, h.open(t).count[dispatch.KindAction])
	})
}

// B091, in flight: a call of a local tool and the end of its task meet. Either all of the call took place or nothing, and
// both are told which.
func TestB091CancelledInFlight(t *testing.T) {
	before := approved(t)
	won := map[bool]int{}
	for range 3 {
		h := before.copy(t)
		release := h.hold(t)
		run, cancel := h.start("run", "--approved"), h.start("cancel", "labels-1")
		h.startUp(t)
		release()
		a, c := run.finish(), cancel.finish()
		require.Zero(t, c.code, c.stderr)
		ran := a.code == exitOK && strings.Contains(a.stdout, `"status":"ok"`)
		won[ran]++
		if ran {
			h.cancelled(t, dispatch.Consumed, 1)
			continue
		}
		if a.stdout == "" { // it found nothing approved any more
			require.Zero(t, a.code, a.stderr)
		} else {
			require.Equal(t, exitDenied, a.code, a.stderr)
			require.Equal(t, dispatch.StatusCancelled, a.lines(t)[0].Status)
		}
		h.cancelled(t, dispatch.Withdrawn, 0)
	}
	t.Logf("the call came first: %v", won)
}

// B091, by Ctrl-C: at whatever moment of a call it comes, the call takes place as a whole and is told, or not at all.
func TestB091InterruptedInFlight(t *testing.T) {
	needStrace(t)
	v := redeeming(t)
	all := edges(v.plan(t, append(openings, mutations...)...))
	at := append(only(all, []string{"govern.db-wal"}, "pwrite64", "fsync", "fdatasync"), only(all, []string{"govern.db.key"}, "openat")...)
	require.NotEmpty(t, at)
	seen := map[bool]int{}
	for _, m := range at {
		for range 10 {
			h := v.before.copy(t)
			r := h.trace([]string{m.call}, m, fmt.Sprintf("signal=SIGINT:when=%d", m.nth), v.args)
			if r.signal != 0 {
				continue // strace counts for each thread: it came twice, and the second ends a process at once
			}
			printed := strings.HasSuffix(r.stdout, "\n")
			done := v.check(t, h, printed)
			assert.Equal(t, done, printed, "%v: what took place is told: %s", m, r.stderr)
			seen[done]++
			break
		}
	}
	t.Logf("%d moments; in %d nothing had happened, in %d all", len(at), seen[false], seen[true])
	require.Greater(t, 4*(seen[false]+seen[true]), 3*len(at), "an interrupt that is not examined shows nothing")
}
