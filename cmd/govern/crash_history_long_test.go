//go:build linux && long && failpoints

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// seed is one random history.
type seed uint64

func (s seed) String() string { return fmt.Sprint("seed ", uint64(s)) }

const seeds = 100

// histories are long and random: proposals, votes, kills, settlements, a tool that changes its ways, clocks that jump, two processes
// at once. The state is checked after each command.
func histories(t *testing.T) {
	u := newUpstream(t)
	before := u.home(t, time.Second)
	var killed, ended atomic.Int64
	var all []seed
	for i := range seeds {
		all = append(all, seed(i+1))
	}
	side(t, all, func(t *testing.T, s seed) {
		h := &history{t: t, u: u, home: before.copy(t), random: rand.New(rand.NewPCG(uint64(s), 6)), killed: &killed, done: &ended}
		defer func() {
			if t.Failed() {
				t.Logf("%s:\n%s", s, strings.Join(h.told, "\n"))
			}
		}()
		for range 12 + h.random.IntN(9) {
			h.step()
			u.holdsUp(t, h.home)
		}
		h.end()
	})
	t.Logf("%d commands ended, %d were killed", ended.Load(), killed.Load())
	require.Greater(t, killed.Load(), int64(seeds), "a history without a kill shows little")
}

type history struct {
	t      *testing.T
	u      *upstream
	home   home
	random *rand.Rand
	ahead  time.Duration
	calls  int
	told   []string
	// killed and done count how commands of all histories ended.
	killed, done *atomic.Int64
}

func (h *history) tell(format string, args ...any) {
	h.told = append(h.told, fmt.Sprintf(format, args...))
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// now is the folder with the clock as it is by now, and perhaps with a process that will be killed.
func (h *history) now() home {
	at := h.home.later(h.ahead)
	if h.random.IntN(2) == 0 {
		point, nth := pick(h.random, points...), 1+h.random.IntN(2)
		h.tell("  (killed %s#%d)", point, nth)
		at = at.at(point, nth)
	}
	return at
}

// ended says how a command may end: as it should, or killed.
func (h *history) ended(a answer, args ...any) {
	h.tell("%s: exit code %d, signal %d, %s", fmt.Sprint(args...), a.code, a.signal, strings.TrimSpace(a.stdout))
	if a.signal == syscall.SIGKILL {
		h.killed.Add(1)
	} else {
		h.done.Add(1)
		require.Contains(h.t, []int{exitOK, exitDenied, exitWaiting, exitUnknown}, a.code, a.stderr)
	}
}

func (h *history) call() string {
	h.calls++
	id := fmt.Sprint("c", h.calls)
	account := pick(h.random, "a-1", "a-1", "a-2")
	kind := pick(h.random, recoveries...)
	key := pick(h.random, "k-1", kind+account+"-1", kind+account+"-2")
	switch h.random.IntN(8) {
	case 0:
		return pay(id, pick(h.random, "balance_always", "balance_by_rule"), account, "")
	case 1, 2:
		return pay(id, "pay_"+kind+withoutKey, account, "")
	case 3, 4, 5:
		return pay(id, "pay_"+kind+"_by_rule", account, key)
	default:
		return pay(id, "pay_"+kind+"_always", account, key+"a")
	}
}

func (h *history) step() {
	s := standingOf(h.t, h.home.state())
	switch n := h.random.IntN(100); {
	case n < 40:
		call := h.call()
		h.ended(h.now().propose(call), "propose ", call)
	case n < 50:
		first, second := h.call(), h.call()
		if h.random.IntN(2) == 0 {
			second = first
		}
		both := []*running{h.now().start("run", "-"), h.now().start("run", "-")}
		for i, call := range []string{first, second} {
			both[i].send(call)
		}
		for i, call := range []string{first, second} {
			h.ended(both[i].finish(), "propose at once ", call)
		}
	case n < 65:
		for _, a := range s.approvals {
			if a.state == "pending" {
				h.ended(h.now().govern("review", "approve", a.id, "--signature", a.signature, "--lifetime", fmt.Sprint(dispatch.MaxLifetime)), "approve ", a.id)
			}
		}
	case n < 75:
		for _, o := range s.operations {
			if o.state == "started" || o.state == "unknown" {
				said := truth(s, h.u.of(h.home.dir).requests(), o.id)
				h.ended(h.now().govern("operations", "resolve", o.id, said, "--reason", "asked the tool"), "resolve ", o.id, said)
				break
			}
		}
	case n < 82:
		if len(s.operations) > 0 {
			o := pick(h.random, s.operations...)
			h.ended(h.now().govern("operations", "lookup", o.id), "look up ", o.id)
		}
	case n < 84:
		a := h.home.govern("log", "verify")
		require.Zero(h.t, a.code, a.stdout+a.stderr)
	case n < 90:
		h.ahead += pick(h.random, time.Second, 7*time.Second, 20*time.Second)
		h.tell("the clock is %s ahead", h.ahead)
	case n < 98:
		w := pick(h.random, answers, answers, hangsUp, refuses, breaks, tooSlow)
		h.u.of(h.home.dir).behave(w)
		h.tell("the tool now %s", w)
	default:
		h.ended(h.now().govern("cancel", "labels-1"), "cancel")
	}
}

// end settles everything once no call can be under way any more.
func (h *history) end() {
	h.u.of(h.home.dir).behave(answers)
	h.u.settled(h.t, h.home.later(h.ahead+afterAll))
	a := h.home.govern("log", "verify")
	require.Zero(h.t, a.code, a.stdout+a.stderr)
}
