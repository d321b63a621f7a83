package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Whatever an outside tool does with the calls that reach it, and whoever dies, waits, asks or says what: an operation has at
// most one effect, every effect is on record or said to be unknown, and the record agrees with the tables.
func TestAnySequenceOutsideKeepsThePromises(t *testing.T) {
	c, err := parseConfig("")
	require.NoError(t, err)
	budget(200)(&c)
	g, err := assemble(t.Context(), c)
	require.NoError(t, err)
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rt, g, seen)
		defer func() { require.NoError(rt, w.store.Close()) }()
		for range rapid.IntRange(8, 40).Draw(rt, "length") {
			events := []func(){w.propose, w.propose, w.propose, w.propose, w.approve, w.wait, w.wake, w.resolve, w.lookUp, w.cancel, w.restart}
			events[rapid.IntRange(0, len(events)-1).Draw(rt, "event")]()
			w.check()
		}
		for len(w.paused) > 0 {
			w.wake()
		}
		w.check()
		require.Equal(rt, fromStore(rt, w.store, w.who.Tenant), fromEntries(rt, w.entries()))
		(&sequence{lab: w.lab, rt: rt}).audited()
	})
	t.Logf("%v", seen)
	for _, what := range []string{"ok", "replayed", "resumed", "outcome_unknown", "in_progress", "absent", "resolved", "looked up"} {
		require.NotZero(t, seen[what], "no sequence had %s", what)
	}
}

// outsideWorld is a lab with an outside tool whose effects are counted.
type outsideWorld struct {
	*lab
	rt   *rapid.T
	seen map[string]int
	tool *outsider
	// effects are what the tool really did, by the key that it was given.
	effects  map[string]int
	remember bool
	calls    []string
	paused   []func()
}

func newWorld(t *testing.T, rt *rapid.T, g governed, seen map[string]int) *outsideWorld {
	w := &outsideWorld{lab: emptyLab(t, g, ""), rt: rt, seen: seen, effects: map[string]int{}}
	changes := []func(*dispatch.Definition){func(d *dispatch.Definition) { d.Cost = 1 }}
	switch kind := rapid.SampledFrom([]string{"remembers", "findable", "operator"}).Draw(rt, "recovery"); kind {
	case "remembers":
		w.remember = true
		changes = append(changes, remembers)
	case "findable":
		changes = append(changes, findable)
	}
	if rapid.Bool().Draw(rt, "by rule") {
		changes = append(changes, byRule)
	}
	if rapid.IntRange(0, 3).Draw(rt, "keyless") == 0 {
		changes = append(changes, keyless)
	}
	if rapid.Bool().Draw(rt, "sensitive") {
		changes = append(changes, func(d *dispatch.Definition) { d.Sensitive = []string{"/body"} })
	}
	w.tool = w.outside("record_draft", changes...)
	w.tool.find = func(c dispatch.Call) dispatch.Finding {
		if w.effects[c.Sending.Key] > 0 {
			return dispatch.Finding{State: dispatch.Committed, Value: landed.Value}
		}
		return dispatch.Finding{State: rapid.SampledFrom([]dispatch.OperationState{dispatch.Absent, dispatch.Unknown}).Draw(rt, "found")}
	}
	return w
}

func (w *outsideWorld) draft() string {
	return draft(fmt.Sprint("d", len(w.calls)), "idempotency_key", rapid.SampledFrom([]string{"k1", "k2"}).Draw(w.rt, "key"),
		"draft_id", rapid.SampledFrom([]string{"n1", "n2"}).Draw(w.rt, "target"))
}

// happen has the tool do what it was asked, as a tool that remembers keys or as one that does not.
func (w *outsideWorld) happen(c dispatch.Call) {
	if w.effects[c.Sending.Key] == 0 || !w.remember {
		w.effects[c.Sending.Key]++
	}
}

// propose sends a call, of which comes what the drawing says. Some of its owners fall asleep.
func (w *outsideWorld) propose() {
	proposal := w.draft()
	w.calls = append(w.calls, proposal)
	fate := rapid.SampledFrom([]string{"lands", "lands", "lost after", "lost before", "refused", "unsent", "unsent", "sleeps after", "sleeps before"}).Draw(w.rt, "fate")
	asleep, wake := make(chan struct{}, 1), make(chan struct{})
	w.tool.mu.Lock()
	w.tool.run = func(_ context.Context, c dispatch.Call) dispatch.Outcome {
		switch fate {
		case "lands":
			w.happen(c)
			return landed
		case "lost after":
			w.happen(c)
			return lost
		case "lost before":
			return lost
		case "refused":
			if w.effects[c.Sending.Key] > 0 {
				return landed // a tool that remembers gives its first answer
			}
			return denied
		case "unsent":
			return unsent
		case "sleeps after":
			w.happen(c)
			asleep <- struct{}{}
			<-wake
			return landed
		default:
			asleep <- struct{}{}
			<-wake
			if c.Sending.Fence() != nil {
				return unsent
			}
			w.happen(c)
			return landed
		}
	}
	w.tool.mu.Unlock()
	before := len(w.approvals(dispatch.Approved))
	result := make(chan dispatch.Result, 1)
	go func() { result <- w.lab.propose(proposal) }()
	select {
	case r := <-result:
		w.told(r)
		if fate == "unsent" && r.Status == dispatch.StatusUnavailable && before > 0 && len(w.approvals(dispatch.Approved)) == before {
			w.seen["approval back"]++
		}
	case <-asleep:
		w.paused = append(w.paused, func() {
			close(wake)
			w.told(<-result)
		})
	}
}

func (w *outsideWorld) told(r dispatch.Result) {
	w.seen[string(r.Status)]++
	for _, reason := range r.Reasons {
		if reason.Code == dispatch.LateOutcome {
			w.seen["late"]++
		}
	}
}

func (w *outsideWorld) approve() {
	proposal := w.draft()
	if w.lab.review(proposal, "approved") == nil {
		return
	}
	w.tool.mu.Lock()
	w.tool.run = func(_ context.Context, c dispatch.Call) dispatch.Outcome {
		w.happen(c)
		return landed
	}
	w.tool.mu.Unlock()
	w.told(w.lab.propose(proposal))
}

func (w *outsideWorld) wait() {
	w.pass(time.Duration(rapid.SampledFrom([]int{1, 16, 46, 3700}).Draw(w.rt, "seconds")) * time.Second)
}

// wake lets an owner that was asleep go on.
func (w *outsideWorld) wake() {
	if len(w.paused) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.paused)-1).Draw(w.rt, "who")
	next := w.paused[i]
	w.paused = append(w.paused[:i:i], w.paused[i+1:]...)
	next()
}

// resolve is an operator who looks at what the tool really did.
func (w *outsideWorld) resolve() {
	for _, o := range w.operations(dispatch.Started, dispatch.Unknown) {
		r := dispatch.Resolution{State: dispatch.Absent, Reason: "looked", By: "olga"}
		if w.effects[o.Outward] > 0 {
			r.State = dispatch.Committed
		}
		_, err := w.dispatcher.Resolve(context.Background(), w.who.Tenant, o.ID, r)
		if mayRefuse(w.rt, err); err == nil {
			w.seen["resolved"]++
		}
	}
}

func (w *outsideWorld) lookUp() {
	for _, o := range w.operations(dispatch.Started, dispatch.Unknown) {
		_, err := w.dispatcher.LookUp(context.Background(), w.who.Tenant, o.ID)
		if mayRefuse(w.rt, err); err == nil {
			w.seen["looked up"]++
		}
	}
}

func (w *outsideWorld) cancel() {
	if rapid.IntRange(0, 14).Draw(w.rt, "rarely") == 0 {
		mayRefuse(w.rt, w.dispatcher.Cancel(context.Background(), w.key(), "maya"))
	}
}

func (w *outsideWorld) restart() { w.serve() }

// check compares the tables with what the tool did, and the entries with both.
func (w *outsideWorld) check() {
	w.rt.Helper()
	did := map[string]int{}
	ids := map[string]string{}
	for e, err := range w.store.EntriesFrom(context.Background(), 0) {
		require.NoError(w.rt, err)
		if start := startOf(w.rt, e); start != nil {
			ids[start.Outward] = start.Operation
		}
	}
	for key, n := range w.effects {
		require.Contains(w.rt, ids, key, "an effect that is not on record")
		did[ids[key]] += n
	}
	for _, o := range w.operations() {
		n := did[o.ID]
		require.LessOrEqual(w.rt, n, 1, "%s has two effects", o.ID)
		switch o.State {
		case dispatch.Committed:
			require.Equal(w.rt, 1, n, "%s is committed", o.ID)
		case dispatch.Absent:
			require.Zero(w.rt, n, "%s is absent", o.ID)
			w.seen["absent"]++
		}
		if o.Run > 1 && o.State == dispatch.Committed && w.remember {
			w.seen["resumed"]++
		}
	}
}
