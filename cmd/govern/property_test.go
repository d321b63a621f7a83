package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Whatever is proposed, reviewed, cancelled, configured, lost and restarted, in whatever order: the promises hold,
// read from the entries alone.
func TestAnySequenceKeepsThePromises(t *testing.T) {
	whole := newLab(t, budgets(config.Budgets{Cost: ptr(int64(12)), Attempts: ptr(int64(3)), Output: ptr(int64(400))}))
	whole.redefine("read_document", costing(3))
	whole.redefine("record_draft", costing(5))
	c := whole.config
	p := c.Profiles["warehouse"]
	p.Tools, p.Budgets = []string{"read_document", "calculate"}, config.Budgets{}
	c.Profiles = map[string]config.Profile{"warehouse": p}
	reduced, err := assemble(t.Context(), c)
	require.NoError(t, err)
	reduced.snapshot.Tools = whole.snapshot.Tools

	rapid.Check(t, func(rt *rapid.T) {
		l := emptyLab(t, whole.governed, "")
		defer func() { require.NoError(rt, l.store.Close()) }()
		s := &sequence{lab: l, rt: rt, whole: whole.governed, reduced: reduced, tasks: map[string]string{l.task: l.who.Actor}}
		for range rapid.IntRange(10, 60).Draw(rt, "length") {
			s.events()[rapid.IntRange(0, len(s.events())-1).Draw(rt, "event")](rt)
		}
		s.check(whole.policy, reduced.policy)
	})
}

// sequence is one random run.
type sequence struct {
	*lab
	rt             *rapid.T
	whole, reduced governed
	tasks          map[string]string // task → actor
	answered       int
}

// events are weighted: what leads to effects comes often, what ends a story seldom.
func (s *sequence) events() []func(*rapid.T) {
	return []func(*rapid.T){
		s.propose, s.propose, s.propose, s.agree, s.agree, s.agree, s.review, s.review, s.reopen, s.another,
		s.configure, s.configure, s.cancel, s.assign, s.wait, s.restart, s.expire, s.fault,
	}
}

// agree proposes a draft, has it approved, and proposes it again.
func (s *sequence) agree(rt *rapid.T) {
	d := s.draft(rt)
	for range 2 {
		before, drafts := s.count(dispatch.KindAction), len(s.drafts())
		s.judged(rt, s.lab.propose(d), before, drafts)
		mayRefuse(rt, s.lab.review(d, "approved"))
	}
}

// call draws from few calls, so that they meet: two keys, two targets, two bodies.
func (s *sequence) call(rt *rapid.T) string {
	switch rapid.IntRange(0, 7).Draw(rt, "kind") {
	case 0:
		return read("r", rapid.SampledFrom([]string{"/warehouse/labels.txt", "/restricted/planning.txt", "/warehouse/none.txt"}).Draw(rt, "path"))
	case 1:
		return rapid.SampledFrom([]string{"", "{", `{"call_id":"x"}`, call("s", "send_message", nil), call("c", "calculate", nil)}).Draw(rt, "bad")
	case 2:
		return add("c")
	default:
		return s.draft(rt)
	}
}

func (s *sequence) draft(rt *rapid.T) string {
	return draft("d", "idempotency_key", rapid.SampledFrom([]string{"k1", "k2"}).Draw(rt, "key"),
		"draft_id", rapid.SampledFrom([]string{"n1", "n2"}).Draw(rt, "target"),
		"body", rapid.SampledFrom([]string{"84", "840"}).Draw(rt, "body"))
}

func (s *sequence) propose(rt *rapid.T) {
	before, drafts := s.count(dispatch.KindAction), len(s.drafts())
	s.judged(rt, s.lab.propose(s.call(rt)), before, drafts)
}

// judged compares an answer with what took place: an action and a record only where the answer says ok.
func (s *sequence) judged(rt *rapid.T, r dispatch.Result, before, drafts int) {
	s.answered++
	grown := s.count(dispatch.KindAction) - before
	ran := r.Status == dispatch.StatusOK
	if ran != (grown == 1) || grown > 1 || len(s.drafts()) > drafts && !ran {
		rt.Fatalf("%s, and %d action(s) more", r.Status, grown)
	}
}

// mayRefuse passes over what a person is told, and stops at what is broken.
func mayRefuse(rt *rapid.T, err error) {
	if err != nil && dispatch.KindOf(err) == dispatch.Broken {
		rt.Fatal(err)
	}
}

func (s *sequence) review(rt *rapid.T) {
	lifetime := rapid.IntRange(0, 11).Draw(rt, "lifetime")
	mayRefuse(rt, s.lab.review(s.draft(rt), rapid.SampledFrom([]string{"approved", "approved", "rejected", "yes"}).Draw(rt, "word"), lifetime))
}

func (s *sequence) reopen(rt *rapid.T) {
	_, err := s.dispatcher.ReopenCall(context.Background(), s.who, s.task, dispatch.Enforce, []byte(s.draft(rt)), "maya", "")
	mayRefuse(rt, err)
}

func (s *sequence) cancel(rt *rapid.T) {
	if rapid.IntRange(0, 9).Draw(rt, "rarely") == 0 {
		mayRefuse(rt, s.dispatcher.Cancel(context.Background(), s.key(), "maya"))
	}
}

func (s *sequence) assign(rt *rapid.T) {
	actor := rapid.SampledFrom([]string{"learner", "maya"}).Draw(rt, "actor")
	mayRefuse(rt, s.dispatcher.AssignTask(context.Background(), s.key(), actor, "operator"))
	s.who.Actor, s.tasks[s.task] = actor, actor
}

func (s *sequence) another(rt *rapid.T) {
	s.task = fmt.Sprintf("labels-%d", rapid.IntRange(1, 3).Draw(rt, "task"))
	if _, ok := s.tasks[s.task]; !ok {
		s.create(s.task, s.who.Actor)
		s.tasks[s.task] = s.who.Actor
	}
	s.who.Actor = s.tasks[s.task]
}

func (s *sequence) configure(rt *rapid.T) {
	g := rapid.SampledFrom([]governed{s.whole, s.reduced}).Draw(rt, "tools")
	s.snapshot = g.snapshot
	s.dispatcher.Use(g.snapshot)
}

func (s *sequence) wait(rt *rapid.T) {
	s.now = s.now.Add(time.Duration(rapid.IntRange(-2, 30).Draw(rt, "hours")) * time.Hour)
}

func (s *sequence) restart(*rapid.T) { s.serve() }

func (s *sequence) expire(rt *rapid.T) {
	mayRefuse(rt, s.dispatcher.Expire(context.Background(), s.who.Tenant))
}

// fault loses a commit on its way to the disk. Nothing of it may be seen afterwards.
func (s *sequence) fault(rt *rapid.T) {
	before := len(s.entries())
	full := errors.New("disk full")
	s.through(func(func() error) error { return full })
	_, err := s.dispatcher.Dispatch(context.Background(), s.who, s.task, dispatch.Origin{}, []byte(s.call(rt)))
	s.serve()
	if !errors.Is(err, full) || len(s.entries()) != before {
		rt.Fatalf("%v, and %d entries more", err, len(s.entries())-before)
	}
}

// check reads the promises from the bytes of the entries.
func (s *sequence) check(policies ...dispatch.Decider) {
	rt, entries := s.rt, s.entries()
	require.Equal(rt, fromStore(s.rt, s.store, s.who.Tenant), fromEntries(s.rt, entries))
	decisions := 0
	effects, targets, used := map[string]int{}, map[string]int{}, map[string]int{}
	cancelled := map[string]bool{}
	steps, numbers := map[string]int{}, map[string]int{}
	spent := map[string]dispatch.Spent{}
	var allowed map[string]any
	for _, entry := range entries {
		var e map[string]any
		require.NoError(rt, json.Unmarshal(entry.Body, &e))
		task := entry.Task.ID
		if entry.Step == steps[task]+1 {
			require.Equal(rt, dispatch.KindDecision, entry.Kind)
			steps[task], numbers[task] = entry.Step, 0
		}
		require.Equal(rt, steps[task], entry.Step, "no step is skipped or comes twice")
		require.Equal(rt, numbers[task], entry.N)
		numbers[task]++
		switch entry.Kind {
		case dispatch.KindDecision:
			decisions++
			allowed = nil
			if e["decision"].(map[string]any)["effect"] == "allow" {
				allowed = e
				spent[task] = s.affordable(entry, spent[task])
			}
			s.replays(entry, policies)
		case dispatch.KindAction:
			require.False(rt, cancelled[task], "nothing runs in a cancelled task")
			value, _ := ijson.Lookup(entry.Body, "/value")
			sum := spent[task]
			sum.Output += int64(len(value))
			spent[task] = sum
			require.NotNil(rt, allowed, "no action without its decision")
			require.EqualValues(rt, entry.Step, allowed["step"])
			if operation, ok := e["operation"]; ok {
				effects[fmt.Sprint(task, e["actor"], operation)]++
				targets[fmt.Sprint(task, e["target"])]++
				used[e["approval"].(string)]++
				require.NotEmpty(rt, e["reviewers"])
			}
			allowed = nil
		case dispatch.KindCancel:
			cancelled[task] = true
		}
	}
	require.Equal(rt, s.answered, decisions, "one decision for each answer")
	for what, counts := range map[string]map[string]int{"operation": effects, "target": targets, "approval": used} {
		for name, n := range counts {
			require.Equal(rt, 1, n, "%s %s", what, name)
		}
	}
	approvals, err := s.store.Approvals(context.Background(), s.who.Tenant, "", dispatch.Consumed)
	require.NoError(rt, err)
	require.Len(rt, approvals, len(used), "every used approval is consumed, and no other")
}

// affordable holds an allowed run against the budgets that were stated, and against what was spent before it. It gives
// what is spent with it, but for what it gave.
func (s *sequence) affordable(entry dispatch.Entry, before dispatch.Spent) dispatch.Spent {
	var recorded dispatch.DecisionEntry
	var in dispatch.Input
	require.NoError(s.rt, ijson.Unmarshal(entry.Body, &recorded))
	require.NoError(s.rt, ijson.Unmarshal(recorded.Input, &in))
	after := dispatch.Spent{Cost: before.Cost + in.Tool.Cost, Attempts: before.Attempts + 1, Output: before.Output}
	if b := in.State.Budgets; b.Cost != nil {
		require.Equal(s.rt, dispatch.Spent{Cost: b.Cost.Spent, Attempts: b.Attempts.Spent, Output: b.Output.Spent}, before)
		require.LessOrEqual(s.rt, after.Cost, b.Cost.Limit)
		require.LessOrEqual(s.rt, after.Attempts, b.Attempts.Limit)
		require.Less(s.rt, before.Output, b.Output.Limit)
	}
	return after
}

func (s *sequence) replays(entry dispatch.Entry, policies []dispatch.Decider) {
	var recorded dispatch.DecisionEntry
	require.NoError(s.rt, ijson.Unmarshal(entry.Body, &recorded))
	for i, g := range []governed{s.whole, s.reduced} {
		if recorded.Decision.PolicyVersion == g.policy.Version() {
			again, err := dispatch.Judge(context.Background(), policies[i], g.policy.Version(), recorded.Input)
			require.NoError(s.rt, err)
			require.Equal(s.rt, recorded.Decision, again)
			return
		}
	}
	s.rt.Fatalf("unknown policy version %s", recorded.Decision.PolicyVersion)
}
