//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The checker finds what it is there to find: each row changes one thing of a state, or of what the tool received.
func TestTheCheckerCanFail(t *testing.T) {
	u := newUpstream(t)
	h := u.home(t, time.Minute)
	asked := pay("p1", "pay_"+byKey+"_always", "a-1", "k-1")
	require.Equal(t, exitWaiting, h.propose(asked).code)
	require.Zero(t, h.govern("review", "approve", "--proposal", "calls.jsonl").code)
	require.Zero(t, h.propose(asked, pay("p2", "pay_"+byOperator+"_by_rule", "a-2", "k-2"), pay("p3", "balance_by_rule", "a-1", "")).code)
	u.of(h.dir).behave(refuses)
	require.Equal(t, exitDenied, h.propose(pay("p4", "pay_"+byLookup+"_by_rule", "a-3", "k-3")).code)
	u.killed(h, pay("p5", "pay_"+byOperator+withoutKey, "a-4", ""))
	u.holdsUp(t, h)

	operation := func(s *standing, key string) *operationRow {
		return &s.operations[slices.IndexFunc(s.operations, func(o operationRow) bool { return o.key == key })]
	}
	drop := func(s *standing, kind string) {
		at := slices.IndexFunc(s.entries, func(e entryRow) bool { return e.kind == kind && e.Dispatch > 0 })
		s.entries = slices.Delete(s.entries, at, at+1)
	}
	for _, row := range []struct {
		name   string
		tamper func(*standing, *[]received)
		says   string
	}{
		{"an effect came twice", func(_ *standing, got *[]received) { *got = append(*got, (*got)[0]) }, "effects, and only"},
		{"an effect without a key came twice", func(_ *standing, got *[]received) { *got = append(*got, (*got)[1]) }, "effects, and only"},
		{"a request came twice, without effect", func(_ *standing, got *[]received) {
			*got = append(*got, (*got)[0])
			(*got)[len(*got)-1].acted = false
		}, "2 requests like"},
		{"a request nobody started", func(_ *standing, got *[]received) { (*got)[0].key = "another" }, "and 0 calls started"},
		{"an effect nobody asked for", func(_ *standing, got *[]received) { (*got)[0].path = "/pay_none" }, "and no operation"},
		{"a request before its start", func(_ *standing, got *[]received) { (*got)[2].unstarted = true }, "before its call was on record"},
		{"an effect is missing", func(_ *standing, got *[]received) { (*got)[0].acted = false }, "0 effects, and 1 operations are committed"},
		{"an effect without a key is missing", func(_ *standing, got *[]received) { (*got)[1].acted = false }, "0 effects, and 1 operations are committed"},
		{"what is absent took place", func(_ *standing, got *[]received) { (*got)[3].acted = true }, "1 effects, and only 0"},
		{"a committed operation is lost", func(s *standing, _ *[]received) { s.operations = slices.Delete(s.operations, 0, 1) }, "no operation"},
		{"unknown, though it was heard", func(s *standing, _ *[]received) { operation(s, "k-1").state = "unknown" }, "whoever called heard"},
		{"absent, though nobody heard", func(s *standing, _ *[]received) { operation(s, "").state = "absent" }, "1 effects, and only 0"},
		{"an outcome is lost", func(s *standing, _ *[]received) { drop(s, "outcome") }, "in flight"},
		{"an action is lost", func(s *standing, _ *[]received) { drop(s, "action") }, "has 0 actions"},
		{"an approval is as it was", func(s *standing, _ *[]received) { s.approvals[0].state = "approved" }, "1 calls consumed it"},
		{"an approval is gone for nothing", func(s *standing, _ *[]received) {
			s.entries = slices.DeleteFunc(slices.Clone(s.entries), func(e entryRow) bool { return e.kind == "decision" && e.used() != "" && e.effect() == "allow" })
		}, "0 calls consumed it"},
		{"an attempt is not counted", func(s *standing, _ *[]received) { s.tasks[0].attempts-- }, "has spent"},
		{"a cost is counted twice", func(s *standing, _ *[]received) { s.tasks[0].cost += 3 }, "has spent"},
		{"a call is not in flight any more", func(s *standing, _ *[]received) { s.tasks[0].inFlight = nil }, "in flight"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, got := standingOf(t, h.state()), u.of(h.dir).requests()
			require.Empty(t, check(s, got))
			row.tamper(&s, &got)
			require.Contains(t, strings.Join(check(s, got), "\n"), row.says)
		})
	}
}
