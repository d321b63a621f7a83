//go:build linux && long && failpoints

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/failpoint"
)

// The crash matrix: govern is killed at every point that it names, and what it left is held against what the tool received.

const (
	// callTime is the time of a call that is answered, and shortTime that of one that is not.
	callTime  = 10 * time.Second
	shortTime = 400 * time.Millisecond
	// afterAll is later than any lease and the settle time.
	afterAll = callTime + 5*time.Second + settleTime + time.Second
)

// TestLongCrashes kills the real program, built with failpoints.
func TestLongCrashes(t *testing.T) {
	bin := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "failpoints", "-o", filepath.Join(bin, "govern"), ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Run("at every point", killedAtEveryPoint)
	t.Run("while finding out", killedWhileFindingOut)
	t.Run("inside COMMIT", killedInsideCommit)
	t.Run("histories", histories)
}

// at is the folder with its processes killed at a point, and later with their clock ahead.
func (h home) at(point string, nth int) home {
	h.env = append(slices.Clone(h.env), fmt.Sprintf("%s=%s#%d", failpoint.Env, point, nth))
	return h
}

func (h home) later(ahead time.Duration) home {
	h.env = append(slices.Clone(h.env), failpoint.AheadEnv+"="+ahead.String())
	return h
}

// granted has a call approved that waits for a person.
func (h home) granted(t *testing.T, call string) {
	t.Helper()
	h.write("call.json", call+"\n")
	a := h.govern("review", "approve", "--proposal", "call.json", "--lifetime", fmt.Sprint(dispatch.MaxLifetime))
	require.Zero(t, a.code, a.stderr)
}

// crash is one case: a call of a tool that behaves in some way, and where the process is killed.
type crash struct {
	tool, key string
	way       way
	point     string
	nth       int
}

func (c crash) String() string {
	key := c.key
	if key == "" {
		key = "no key"
	}
	return fmt.Sprintf("%s/%s/%s/%s#%d", c.tool, key, c.way, c.point, c.nth)
}

func (c crash) call(id, key string) string { return pay(id, c.tool, "a-1", key) }
func (c crash) is(kind string) bool        { return strings.HasPrefix(c.tool, "pay_"+kind) }
func (c crash) writes() bool               { return strings.HasPrefix(c.tool, "pay_") }

// crashes are all cases that show something else than another does. A call commits twice: as started, and its outcome.
func crashes() (out []crash) {
	combine := func(tool, key string, ways ...way) {
		for _, w := range ways {
			for _, p := range points {
				if p == "before a settlement" {
					continue // of an operation that is known to be unknown; see the second kills
				}
				out = append(out, crash{tool, key, w, p, 1})
				if strings.HasSuffix(p, "COMMIT") {
					out = append(out, crash{tool, key, w, p, 2})
				}
			}
		}
	}
	for _, kind := range recoveries {
		combine("pay_"+kind+"_by_rule", "k-1", answers, hangsUp, refuses, tooSlow)
		combine("pay_"+kind+withoutKey, "", answers, hangsUp)
		combine("pay_"+kind+"_always", "k-1", answers, hangsUp)
	}
	combine("balance_by_rule", "", answers, hangsUp)
	combine("balance_always", "", answers)
	return slices.DeleteFunc(out, func(c crash) bool {
		// No head of an answer comes where none is sent.
		return c.way == tooSlow && !slices.Contains([]string{"after bytes of the request", "after the call", "before the outcome"}, c.point)
	})
}

// prepared are folders in which a call may run, by what it needs.
type prepared struct {
	t     *testing.T
	u     *upstream
	mu    sync.Mutex
	homes map[string]home
}

func (p *prepared) home(t *testing.T, c crash) home {
	t.Helper()
	limit := callTime
	if c.way == tooSlow {
		limit = shortTime
	}
	name := fmt.Sprint(limit)
	if strings.HasSuffix(c.tool, "_always") {
		name = c.tool + c.key
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.homes[name]; !ok {
		h := p.u.home(p.t, limit)
		if strings.HasSuffix(c.tool, "_always") {
			a := h.propose(c.call("ask", c.key))
			require.Equal(t, exitWaiting, a.code, a.stderr)
			h.granted(t, c.call("ask", c.key))
		}
		p.homes[name] = h
	}
	h := p.homes[name].copy(t)
	p.u.of(h.dir).behave(c.way)
	return h
}

// side runs the cases, as many at once as there are processors and one more.
func side[T fmt.Stringer](t *testing.T, cases []T, run func(*testing.T, T)) {
	free := make(chan struct{}, 3)
	var all sync.WaitGroup
	for _, c := range cases {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			t.Run(c.String(), func(t *testing.T) { run(t, c) })
		})
	}
	all.Wait()
}

func killedAtEveryPoint(t *testing.T) {
	p := &prepared{t: t, u: newUpstream(t), homes: map[string]home{}}
	var mu sync.Mutex
	killed := map[string]bool{}
	cases := crashes()
	side(t, cases, func(t *testing.T, c crash) {
		h := p.home(t, c)
		a := h.at(c.point, c.nth).propose(c.call("first", c.key))
		if c.way == answers || c.way == refuses || c.point != "after the head of the answer" {
			require.Equal(t, syscall.SIGKILL, a.signal, a.stdout+a.stderr)
		}
		mu.Lock()
		killed[c.point] = killed[c.point] || a.signal == syscall.SIGKILL
		mu.Unlock()
		p.u.goesOn(t, h, c, 0)
	})
	t.Logf("%d cases", len(cases))
	for _, p := range points {
		assert.True(t, killed[p] || p == "before a settlement", p)
	}
}

// goesOn does after a crash what agents and people would do, and checks after each step. The clock was ahead already by so much.
func (u *upstream) goesOn(t *testing.T, h home, c crash, ahead time.Duration) {
	t.Helper()
	s := u.holdsUp(t, h)
	l := u.of(h.dir)
	state, acted := "", effects(l.requests()) > 0
	if len(s.operations) > 0 {
		state = s.operations[0].state
	}
	h = h.later(ahead + afterAll)

	// An approval is lost only if the call that used it may have been sent.
	if len(s.approvals) == 1 && len(l.requests()) == 0 && startsOf(s) == 0 {
		require.Equal(t, "approved", s.approvals[0].state)
	}
	calls := []string{c.call("again", c.key)}
	if c.key != "" {
		calls = append(calls, c.call("other", "k-2"))
	}
	a := h.propose(calls...)
	require.Contains(t, []int{exitOK, exitDenied, exitWaiting, exitUnknown}, a.code, a.stderr)
	got := a.statuses(t)
	require.Len(t, got, len(calls))
	u.holdsUp(t, h)
	if open := state == "started" || state == "unknown"; open && c.writes() {
		switch {
		case c.is(byOperator):
			require.Equal(t, slices.Repeat([]dispatch.Status{dispatch.StatusOutcomeUnknown}, len(calls)), got)
			require.Equal(t, exitUnknown, a.code)
		case c.is(byKey) && c.key != "" && c.way != refuses && (acted || c.way == answers):
			require.Equal(t, dispatch.StatusOK, got[0], "called again under its key")
		case c.is(byLookup) && c.key != "" && acted:
			require.Equal(t, dispatch.StatusReplayed, got[0], "looked up")
		}
	}

	h = h.later(ahead + 2*afterAll)
	u.settled(t, h)
	l.behave(answers)
	u.redone(t, h, c)
	if c.writes() && c.key != "" {
		s = u.holdsUp(t, h)
		at := slices.IndexFunc(s.operations, func(o operationRow) bool { return o.key == c.key })
		require.Equal(t, "committed", s.operations[at].state)
	}
}

func startsOf(s standing) int {
	c := checker{standing: s}
	return len(c.starts(func(entryRow) bool { return true }))
}

// truth is what the tool knows of an operation that is open: --committed or --absent.
func truth(s standing, got []received, id string) string {
	c := checker{standing: s, got: got}
	at := slices.IndexFunc(s.operations, func(o operationRow) bool { return o.id == id })
	o := s.operations[at]
	n := effects(c.like(o.tool, o.account, o.outward))
	if strings.HasPrefix(o.tool, "pay_"+byOperator) {
		for _, other := range s.operations {
			if other.tool == o.tool && other.account == o.account && other.state == "committed" {
				n--
			}
		}
	}
	if n > 0 {
		return "--committed"
	}
	return "--absent"
}

// settled has everything that is open settled by an operator who asks the tool.
func (u *upstream) settled(t *testing.T, h home) {
	t.Helper()
	s := standingOf(t, h.state())
	for _, o := range s.operations {
		if o.state == "started" || o.state == "unknown" {
			a := h.govern("operations", "resolve", o.id, truth(s, u.of(h.dir).requests(), o.id), "--reason", "asked the tool")
			require.Zero(t, a.code, a.stderr)
		}
	}
	for _, o := range u.holdsUp(t, h).operations {
		require.Contains(t, []string{"committed", "absent"}, o.state)
	}
}

// redone proposes the first call once more, with a person's approval if that is asked for. Now it is done, whoever did it.
func (u *upstream) redone(t *testing.T, h home, c crash) {
	t.Helper()
	a := h.propose(c.call("last", c.key))
	if a.code == exitWaiting {
		h.granted(t, c.call("last", c.key))
		a = h.propose(c.call("last", c.key))
	}
	require.Zero(t, a.code, a.stdout+a.stderr)
	require.Contains(t, []dispatch.Status{dispatch.StatusOK, dispatch.StatusReplayed}, a.lines(t)[0].Status)
	u.holdsUp(t, h)
}

// again is a second kill: of the command that finds out what became of a call whose process was killed.
type again struct {
	crash
	// acted says whether the first call reached the tool.
	acted bool
	// verb is run, lookup or resolve.
	verb string
}

func (a again) String() string { return fmt.Sprintf("%s/%s/acted %v", a.verb, a.crash, a.acted) }

func secondKills() (out []again) {
	for _, acted := range []bool{true, false} {
		for _, p := range points {
			for nth := 1; nth <= 3; nth++ {
				if nth > 1 && !strings.HasSuffix(p, "COMMIT") {
					continue
				}
				add := func(kind, verb string) {
					out = append(out, again{crash{"pay_" + kind + "_by_rule", "k-1", answers, p, nth}, acted, verb})
				}
				add(byKey, "run")
				add(byLookup, "run")
				if nth == 1 && !strings.HasSuffix(p, "start") && !strings.HasSuffix(p, "outcome") && !strings.HasSuffix(p, "call") {
					add(byLookup, "lookup")
				}
				if nth == 1 && (strings.HasSuffix(p, "COMMIT") || p == "before a settlement") {
					add(byOperator, "resolve")
				}
			}
		}
	}
	return out
}

func killedWhileFindingOut(t *testing.T) {
	p := &prepared{t: t, u: newUpstream(t), homes: map[string]home{}}
	var mu sync.Mutex
	killed := map[string]int{}
	cases := secondKills()
	side(t, cases, func(t *testing.T, c again) {
		h := p.home(t, c.crash)
		first := "before the call"
		if c.acted {
			first = "after the call"
		}
		a := h.at(first, 1).propose(c.call("first", c.key))
		require.Equal(t, syscall.SIGKILL, a.signal, a.stderr)

		s := p.u.holdsUp(t, h)
		require.Len(t, s.operations, 1)
		id := s.operations[0].id
		dying := h.later(afterAll).at(c.point, c.nth)
		switch c.verb {
		case "run":
			a = dying.propose(c.call("again", c.key))
		case "lookup":
			a = dying.govern("operations", "lookup", id)
		case "resolve":
			a = dying.govern("operations", "resolve", id, truth(s, p.u.of(h.dir).requests(), id), "--reason", "asked the tool")
		}
		if a.signal == syscall.SIGKILL {
			mu.Lock()
			killed[c.point]++
			mu.Unlock()
		} else {
			require.Zero(t, a.code, a.stdout+a.stderr)
		}
		p.u.goesOn(t, h, c.crash, afterAll)
	})
	t.Logf("%d cases, killed %v", len(cases), killed)
	for _, p := range points {
		assert.NotZero(t, killed[p], p)
	}
}

// Inside COMMIT: at every write to the log of commits, of the start and of the outcome.
func killedInsideCommit(t *testing.T) {
	needStrace(t)
	p := &prepared{t: t, u: newUpstream(t), homes: map[string]home{}}
	var cases []crash
	for _, kind := range recoveries {
		cases = append(cases, crash{tool: "pay_" + kind + "_always", key: "k-1", way: answers})
	}
	for _, c := range cases {
		t.Run(c.tool, func(t *testing.T) {
			h := p.home(t, c)
			h.write("calls.jsonl", c.call("first", c.key)+"\n")
			v := victim{before: h, args: []string{"run", "calls.jsonl"}, unhurt: exitOK, check: func(t *testing.T, h home, printed bool) bool {
				s := standingOf(t, h.state())
				require.False(t, printed && s.operations[0].state != "committed", "what was answered is on record")
				p.u.goesOn(t, h, c, 0)
				return startsOf(s) > 0
			}}
			v.kill(t, slices.DeleteFunc(v.plan(t, "pwrite64", "fdatasync"), func(m moment) bool { return m.file != "govern.db-wal" }))
		})
	}
}
