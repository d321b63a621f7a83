//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Calls of tools outside, with real processes: killed, stopped, cancelled by another, and many at once.

// propose runs calls in one process.
func (h home) propose(calls ...string) answer {
	h.t.Helper()
	h.write("calls.jsonl", strings.Join(calls, "\n")+"\n")
	return h.govern("run", "calls.jsonl")
}

func (a answer) statuses(t testing.TB) (out []dispatch.Status) {
	t.Helper()
	for _, l := range a.lines(t) {
		out = append(out, l.Status)
	}
	return out
}

// calling starts a process whose call the tool holds.
func (u *upstream) calling(h home, call string) *running {
	h.t.Helper()
	u.of(h.dir).behave(holds)
	s := h.start("run", "-")
	s.send(call)
	<-u.of(h.dir).came
	return s
}

// killed kills a process while the tool has its call.
func (u *upstream) killed(h home, call string) {
	h.t.Helper()
	s := u.calling(h, call)
	require.NoError(h.t, s.cmd.Process.Kill())
	require.Equal(h.t, syscall.SIGKILL, s.rest().signal)
	u.of(h.dir).behave(answers)
}

// untilUnknown waits for the end of the lease of the one operation.
func (h home) untilUnknown(t *testing.T) operationView {
	t.Helper()
	require.Eventually(t, func() bool { return h.operation(t).State == dispatch.Unknown }, patience, 100*time.Millisecond)
	return h.operation(t)
}

func (h home) operation(t testing.TB) operationView {
	t.Helper()
	a := h.govern("operations", "list", "--all", "--format", "json")
	require.Zero(t, a.code, a.stderr)
	require.Equal(t, 1, strings.Count(a.stdout, "\n"), a.stdout)
	var o operationView
	require.NoError(t, json.Unmarshal([]byte(a.stdout), &o))
	return o
}

// The process dies while the tool acts: until the lease ends its call is under way, and then nobody knows what came of it.
func TestKilledBetweenCallAndOutcome(t *testing.T) {
	u := newUpstream(t)
	for _, kind := range recoveries {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := u.home(t, 2*time.Second)
			tool := "pay_" + kind + "_always"
			asked := h.propose(pay("p1", tool, "a-1", "k-1"))
			require.Equal(t, exitWaiting, asked.code, asked.stderr)
			require.Zero(t, h.govern("review", "approve", "--proposal", "calls.jsonl").code)
			u.killed(h, pay("p2", tool, "a-1", "k-1"))
			s := u.holdsUp(t, h)
			require.Equal(t, "consumed", s.approvals[0].state)

			all := []string{pay("p3", tool, "a-1", "k-1"), pay("p4", tool, "a-1", "k-2")}
			a := h.propose(all...)
			require.Equal(t, exitDenied, a.code, a.stderr)
			require.Equal(t, []dispatch.Status{dispatch.StatusInProgress, dispatch.StatusInProgress}, a.statuses(t))
			o := h.operation(t)
			require.Equal(t, dispatch.Started, o.State)
			for _, flag := range []string{"--committed", "--absent"} {
				a = h.govern("operations", "resolve", o.Operation, flag, "--reason", "impatience")
				require.Equal(t, exitDenied, a.code, a.stderr)
				require.Contains(t, a.stderr, "under way")
			}

			h.untilUnknown(t)
			a = h.govern("operations", "show", o.Operation)
			require.Zero(t, a.code, a.stderr)
			require.Contains(t, a.stdout, "Nobody knows whether it took place.")
			require.Contains(t, a.stdout, "key       k-1\n")
			a = h.govern("task", "show", "labels-1")
			require.Contains(t, a.stdout, "1 of unknown outcome")
			require.Len(t, u.of(h.dir).requests(), 1)

			a = h.propose(all...)
			switch kind {
			case byKey: // called again under its key, which the tool remembers; then it is done, and others are new
				require.Equal(t, []dispatch.Status{dispatch.StatusOK, dispatch.StatusApprovalRequired}, a.statuses(t))
				require.Equal(t, exitWaiting, a.code, a.stderr)
				require.Len(t, u.of(h.dir).requests(), 2)
			case byLookup: // asked, and answered from the record
				require.Equal(t, []dispatch.Status{dispatch.StatusReplayed, dispatch.StatusApprovalRequired}, a.statuses(t))
				require.Equal(t, exitWaiting, a.code, a.stderr)
			case byOperator: // a person has to say
				require.Equal(t, []dispatch.Status{dispatch.StatusOutcomeUnknown, dispatch.StatusOutcomeUnknown}, a.statuses(t))
				require.Equal(t, exitUnknown, a.code, a.stderr)
				a = h.govern("operations", "lookup", o.Operation)
				require.Equal(t, exitDenied, a.code, a.stderr)
				a = h.govern("operations", "resolve", o.Operation, "--committed", "--result", `{"id":"p-0"}`, "--reason", "in the ledger")
				require.Zero(t, a.code, a.stderr)
				a = h.propose(all[0])
				require.Equal(t, []dispatch.Status{dispatch.StatusReplayed}, a.statuses(t))
				require.Contains(t, a.stdout, `"value":{"id":"p-0"}`)
			}
			require.Equal(t, dispatch.Committed, h.operation(t).State)
			s = u.holdsUp(t, h)
			require.Equal(t, 1, effects(u.of(h.dir).requests()))
			require.Equal(t, "consumed", s.approvals[0].state)
		})
	}
	t.Run("without a key", func(t *testing.T) {
		t.Parallel()
		h := u.home(t, 2*time.Second)
		call := pay("p1", "pay_"+byOperator+withoutKey, "a-1", "")
		u.killed(h, call)
		a := h.propose(call)
		require.Equal(t, []dispatch.Status{dispatch.StatusInProgress}, a.statuses(t))
		o := h.untilUnknown(t)
		a = h.propose(call)
		require.Equal(t, []dispatch.Status{dispatch.StatusOutcomeUnknown}, a.statuses(t))
		require.Equal(t, exitUnknown, a.code, a.stderr)
		a = h.govern("operations", "resolve", o.Operation, "--committed", "--reason", "in the ledger")
		require.Zero(t, a.code, a.stderr)
		a = h.propose(call)
		require.Equal(t, []dispatch.Status{dispatch.StatusOK}, a.statuses(t), "nothing says that it is the same intention")
		require.Equal(t, 2, effects(u.of(h.dir).requests()))
		u.holdsUp(t, h)
	})
}

// Ctrl-C ends a call under way, and what is known of it is on record before the process ends.
func TestInterruptedInFlight(t *testing.T) {
	u := newUpstream(t)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		h := u.home(t, time.Minute)
		s := u.calling(h, pay("p1", "pay_"+byOperator+"_by_rule", "a-1", "k-1"))
		require.NoError(t, s.cmd.Process.Signal(signal))
		<-u.of(h.dir).closed
		a := s.rest()
		require.Equal(t, syscall.Signal(0), a.signal)
		require.Equal(t, exitBroken, a.code, a.stderr)
		require.Equal(t, []dispatch.Status{dispatch.StatusOutcomeUnknown}, a.statuses(t))
		require.Equal(t, dispatch.Unknown, h.operation(t).State)
		require.Empty(t, u.holdsUp(t, h).tasks[0].inFlight)
	}
}

// B091, in flight, with a tool outside: another process cancels the task, and the call ends as what is known of it.
func TestB091CancelledInFlightOutside(t *testing.T) {
	u := newUpstream(t)
	h := u.home(t, time.Minute)
	s := u.calling(h, pay("p1", "pay_"+byKey+"_by_rule", "a-1", "k-1"))
	h.cancel(t)
	<-u.of(h.dir).closed
	require.Equal(t, dispatch.StatusOutcomeUnknown, s.next().Status)
	s.send(pay("p2", "pay_"+byKey+"_by_rule", "a-1", "k-1"))
	require.Equal(t, dispatch.StatusCancelled, s.next().Status)
	a := s.finish()
	require.Equal(t, exitUnknown, a.code, a.stderr)
	require.Equal(t, dispatch.Unknown, h.operation(t).State)
	u.holdsUp(t, h)
}

// B089: ten processes with five calls each, on a budget of six attempts of which one is taken: whatever is under way counts.
func TestB089ABudgetForManyProcessesOutside(t *testing.T) {
	u := newUpstream(t)
	h := u.home(t, time.Minute, "max_steps: 1000000", "max_steps: 1000000\n    budgets: {attempts: 7}")
	u.of(h.dir).behave(holds)
	var all []*running
	for p := range 10 {
		s := h.start("run", "-")
		for i := range 5 {
			s.send(pay(fmt.Sprintf("p%d-%d", p, i), "balance_by_rule", fmt.Sprintf("a-%d-%d", p, i), ""))
		}
		require.NoError(t, s.stdin.Close())
		all = append(all, s)
	}
	for range 6 {
		<-u.of(h.dir).came
	}
	require.Len(t, u.holdsStill(t, h).tasks[0].inFlight, 6)
	close(u.of(h.dir).release)
	got := map[dispatch.Status]int{}
	for _, s := range all {
		a := s.rest()
		require.Equal(t, exitDenied, a.code, a.stderr)
		for _, status := range a.statuses(t) {
			got[status]++
		}
	}
	require.Equal(t, map[dispatch.Status]int{dispatch.StatusOK: 6, dispatch.StatusBudgetExhausted: 44}, got)
	require.Len(t, u.of(h.dir).requests(), 6)
	u.holdsUp(t, h)
}

// B061: fifty calls with one key from two processes are one request, and no caller is told of a failure. As long as it is under
// way the others are told that, and afterwards they get its result.
func TestB061OneKeyFromTwoProcessesOutside(t *testing.T) {
	u := newUpstream(t)
	calls := func(from int) (out []string) {
		for i := range 25 {
			out = append(out, pay(fmt.Sprintf("p%d", from+i), "pay_"+byKey+"_by_rule", "a-1", "k-1"))
		}
		return out
	}
	t.Run("one long call", func(t *testing.T) {
		h := u.home(t, time.Minute)
		long := u.calling(h, calls(0)[0])
		long.send(calls(0)[1:]...)
		a := h.propose(calls(25)...)
		require.Equal(t, exitDenied, a.code, a.stderr)
		for _, l := range a.lines(t) {
			require.Equal(t, dispatch.StatusInProgress, l.Status)
		}
		close(u.of(h.dir).release)
		a = long.finish()
		require.Zero(t, a.code, a.stderr)
		got := a.statuses(t)
		require.Len(t, got, 25)
		require.Equal(t, dispatch.StatusOK, got[0])
		require.NotContains(t, got[1:], dispatch.StatusOK)
		require.Len(t, u.of(h.dir).requests(), 1)
		u.holdsUp(t, h)
	})
	t.Run("all at once", func(t *testing.T) {
		h := u.home(t, time.Minute)
		got := map[dispatch.Status]int{}
		both := []*running{h.start("run", "-"), h.start("run", "-")}
		for i, s := range both {
			s.send(calls(25 * i)...)
		}
		for _, s := range both {
			a := s.finish()
			require.Contains(t, []int{exitOK, exitDenied}, a.code, a.stderr)
			for _, status := range a.statuses(t) {
				got[status]++
			}
		}
		require.Equal(t, 1, got[dispatch.StatusOK])
		require.Equal(t, 49, got[dispatch.StatusReplayed]+got[dispatch.StatusInProgress], "%v", got)
		require.Len(t, u.of(h.dir).requests(), 1)
		u.holdsUp(t, h)
	})
}
