package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/audit"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Whatever is proposed, reviewed, cancelled, configured, lost and restarted, in whatever order: the promises hold,
// read from the entries alone.
func TestAnySequenceKeepsThePromises(t *testing.T) {
	site := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(site, "site.rego"), []byte(`package site

# METADATA
# title: Two stages
# custom:
#   code: two_stages
#   message: the shift agrees first, and then the office
#   remedy: Ask the shift, and then the office.
require_approval contains {
	"code": "two_stages", "message": "the shift agrees first, and then the office",
	"approval": {"stages": [{"name": "shift", "roles": ["shift"]}, {"name": "office", "roles": ["office"]}], "reason_required": true},
} if {
	input.call.target == "n2"
}
`), 0o600))
	plain, secretive := governments(t, site, nil), governments(t, site, []string{"/body"})
	files, seen := t.TempDir(), map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		file := ""
		if rapid.IntRange(0, 4).Draw(rt, "a file of its own") == 0 {
			folder, err := os.MkdirTemp(files, "")
			require.NoError(rt, err)
			defer os.RemoveAll(folder)
			file = filepath.Join(folder, "govern.db")
		}
		all, isSecret := plain, rapid.Bool().Draw(rt, "what is written is sensitive")
		if isSecret {
			all = secretive
		}
		l := emptyLab(t, all[0], file)
		s := &sequence{lab: l, rt: rt, all: all, seen: seen, tasks: map[string]string{l.task: l.who.Actor}}
		func() {
			defer func() { require.NoError(rt, l.store.Close()) }()
			for range rapid.IntRange(10, 50).Draw(rt, "length") {
				s.events()[rapid.IntRange(0, len(s.events())-1).Draw(rt, "event")](rt)
			}
			s.check()
			for _, e := range s.entries() {
				if isSecret && strings.Contains(string(e.Body), "There are 84") {
					rt.Fatalf("an entry shows what is sensitive: %s", e.Body)
				}
			}
		}()
		if file != "" {
			noFaults(rt, file)
			b, err := os.ReadFile(file)
			require.NoError(rt, err)
			require.False(rt, isSecret && strings.Contains(string(b), "There are 84"), "the file holds what is sensitive")
		}
	})
	t.Logf("%v", seen)
	for _, what := range []string{"run under an approval", "run under two stages", "replay", "simulation", "answer of a run lost", "decided again", "reopening", "reopened file"} {
		require.NotZero(t, seen[what], "no sequence had a %s", what)
	}
}

// governments are what a state may be put under, the usual one first: each the same tools and another configuration.
func governments(t *testing.T, site string, sensitive []string) []governed {
	whole := newLab(t, budgets(config.Budgets{Cost: ptr(int64(40)), Attempts: ptr(int64(12)), Output: ptr(int64(1200))}))
	whole.redefine("read_document", costing(3))
	whole.redefine("record_draft", func(d *dispatch.Definition) { d.Cost, d.Sensitive = 5, sensitive })
	// another is what the same tools are governed by when an operator has changed the configuration.
	another := func(change func(*config.Config, *config.Profile)) governed {
		c := whole.config
		p := c.Profiles["warehouse"]
		change(&c, &p)
		c.Profiles = map[string]config.Profile{"warehouse": p}
		g, err := assemble(t.Context(), c)
		require.NoError(t, err)
		g.snapshot.Tools = whole.snapshot.Tools
		return g
	}
	reduced := another(func(_ *config.Config, p *config.Profile) {
		p.Tools, p.Budgets = []string{"read_document", "calculate"}, config.Budgets{}
	})
	poor := another(func(_ *config.Config, p *config.Profile) {
		p.Budgets = config.Budgets{Cost: ptr(int64(12)), Attempts: ptr(int64(3)), Output: ptr(int64(400))}
	})
	layered := another(func(c *config.Config, _ *config.Profile) { c.Site = []string{site} })
	return []governed{whole.governed, layered, reduced, poor}
}

// sequence is one random run.
type sequence struct {
	*lab
	rt       *rapid.T
	all      []governed        // in any of which the operator may put the state
	tasks    map[string]string // task → actor
	answered int
	seen     map[string]int // what the sequences came to
}

// events are weighted: what leads to effects comes often, what ends a story seldom.
func (s *sequence) events() []func(*rapid.T) {
	return []func(*rapid.T){
		s.propose, s.propose, s.propose, s.agree, s.agree, s.agree, s.agree, s.review, s.review, s.reopen, s.another,
		s.configure, s.configure, s.cancel, s.assign, s.wait, s.restart, s.expire, s.fault, s.fault,
	}
}

// agree proposes a draft, has it approved by whoever may be needed, and proposes it again.
func (s *sequence) agree(rt *rapid.T) {
	if rapid.IntRange(0, 3).Draw(rt, "by two stages") == 0 {
		s.use(s.all[1])
	}
	d, mode := s.draft(rt), s.mode(rt)
	s.approved(rt, mode, d)
	s.approved(rt, mode, d)
}

func (s *sequence) approved(rt *rapid.T, mode dispatch.Mode, proposal string) {
	s.judge(rt, mode, proposal)
	for _, reviewer := range []string{"maya", "noor"} {
		s.vote(rt, mode, proposal, dispatch.Review{Reviewer: reviewer, Decision: "approved"})
	}
}

func (s *sequence) mode(rt *rapid.T) dispatch.Mode {
	return rapid.SampledFrom([]dispatch.Mode{dispatch.Enforce, dispatch.Enforce, dispatch.Enforce, dispatch.DryRun}).Draw(rt, "mode")
}

// vote gives a person's word. Who is of the shift or of the office does not change.
func (s *sequence) vote(rt *rapid.T, mode dispatch.Mode, proposal string, r dispatch.Review) {
	r.Roles = map[string][]string{"maya": {"shift"}, "noor": {"office"}}[r.Reviewer]
	r.Reason = "seen"
	_, err := s.dispatcher.ReviewCall(context.Background(), s.who, s.task, mode, []byte(proposal), r)
	mayRefuse(rt, err)
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
		"body", rapid.SampledFrom([]string{"There are 84.", "There are 840."}).Draw(rt, "body"))
}

func (s *sequence) propose(rt *rapid.T) { s.judge(rt, s.mode(rt), s.call(rt)) }

// judge dispatches a proposal and compares the answer with what took place: an action and a record only where the answer
// says ok, and no record of a dry run.
func (s *sequence) judge(rt *rapid.T, mode dispatch.Mode, proposal string) {
	before, drafts := s.kinds()[dispatch.KindAction], len(s.drafts())
	r, err := s.dispatch(mode, proposal)
	require.NoError(rt, err)
	s.answered++
	grown := s.kinds()[dispatch.KindAction] - before
	ran, written := r.Status == dispatch.StatusOK, len(s.drafts()) > drafts
	if ran != (grown == 1) || grown > 1 || written && (!ran || mode != dispatch.Enforce) {
		rt.Fatalf("%s, and %d action(s) more", r.Status, grown)
	}
}

// kinds counts the entries of each kind, and under no name all of them.
func (s *sequence) kinds() map[dispatch.Kind]int {
	n := map[dispatch.Kind]int{}
	for _, e := range s.entries() {
		n[e.Kind]++
		n[""]++
	}
	return n
}

func (s *sequence) dispatch(mode dispatch.Mode, proposal string) (dispatch.Result, error) {
	return s.dispatcher.Dispatch(context.Background(), s.who, s.task, dispatch.Origin{Door: "test", Mode: mode}, []byte(proposal))
}

// mayRefuse passes over what a person is told, and stops at what is broken.
func mayRefuse(rt *rapid.T, err error) {
	if err != nil && dispatch.KindOf(err) == dispatch.Broken {
		rt.Fatal(err)
	}
}

func (s *sequence) review(rt *rapid.T) {
	s.vote(rt, s.mode(rt), s.draft(rt), dispatch.Review{
		Reviewer: rapid.SampledFrom([]string{"maya", "noor", "learner"}).Draw(rt, "reviewer"),
		Decision: rapid.SampledFrom([]string{"approved", "approved", "rejected", "yes"}).Draw(rt, "word"),
		Lifetime: ptr(rapid.IntRange(0, 11).Draw(rt, "lifetime"))})
}

func (s *sequence) reopen(rt *rapid.T) {
	mode, proposal := s.mode(rt), s.draft(rt)
	if rapid.Bool().Draw(rt, "of a rejected draft") {
		s.judge(rt, mode, proposal)
		s.vote(rt, mode, proposal, dispatch.Review{Reviewer: "maya", Decision: "rejected"})
	}
	a, err := s.dispatcher.ReopenCall(context.Background(), s.who, s.task, mode, []byte(proposal), "maya", "")
	if mayRefuse(rt, err); err == nil {
		s.seen["reopening"]++
		require.Equal(rt, []any{dispatch.Pending, 0}, []any{a.State, len(a.Votes)}, "people vote anew")
	}
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
	s.use(s.all[rapid.IntRange(0, len(s.all)-1).Draw(rt, "configuration")])
}

func (s *sequence) use(g governed) {
	s.snapshot = g.snapshot
	s.dispatcher.Use(g.snapshot)
}

func (s *sequence) wait(rt *rapid.T) {
	s.now = s.now.Add(time.Duration(rapid.IntRange(-2, 30).Draw(rt, "hours")) * time.Hour)
}

// restart ends the process and starts another. One whose state is a file finds there what it left.
func (s *sequence) restart(rt *rapid.T) {
	if s.file == "" {
		s.serve()
		return
	}
	s.seen["reopened file"]++
	before := fromStore(rt, s.store, s.who.Tenant)
	require.NoError(rt, s.store.Close())
	noFaults(rt, s.file)
	s.open()
	require.Equal(rt, before, fromStore(rt, s.store, s.who.Tenant))
}

func (s *sequence) expire(rt *rapid.T) {
	mayRefuse(rt, s.dispatcher.Expire(context.Background(), s.who.Tenant))
}

// fault lets the store fail under one act. What it says afterwards is what the entries show: nothing of a commit that
// was lost, all of one whose answer was, and nothing twice.
func (s *sequence) fault(rt *rapid.T) {
	broken := errors.New("the disk is broken")
	mode, proposal := s.mode(rt), s.call(rt)
	if rapid.Bool().Draw(rt, "of an approved draft") {
		proposal = s.draft(rt)
		s.approved(rt, mode, proposal)
	}
	before := s.kinds()
	kind := rapid.SampledFrom([]string{"commit lost", "answer lost", "state unreadable", "state moved"}).Draw(rt, "fault")
	durable, others, moves := 0, 0, rapid.IntRange(1, 3).Draw(rt, "moves")
	switch kind {
	case "commit lost":
		s.through(func(func() error) error { return broken })
	case "answer lost":
		s.through(func(real func() error) error {
			if err := real(); err != nil {
				return err
			}
			if durable++; s.kinds()[dispatch.KindAction] > before[dispatch.KindAction] {
				s.seen["answer of a run lost"]++
			}
			return broken
		})
	case "state unreadable":
		s.dispatcher = dispatch.New(unreadable{s.store, broken}, s.store.Key(), s.clock, s.snapshot)
	case "state moved": // by another process that does not wait
		beside := dispatch.New(noHold{s.store}, s.store.Key(), s.clock, s.snapshot)
		s.through(func(real func() error) error {
			if moves--; moves >= 0 {
				_, err := beside.Dispatch(context.Background(), s.who, s.task, dispatch.Origin{Door: "test"}, []byte(add("b")))
				require.NoError(rt, err)
				others++
			}
			return real()
		})
	}
	var err error
	if rapid.IntRange(0, 3).Draw(rt, "of a vote") == 0 {
		_, err = s.dispatcher.ReviewCall(context.Background(), s.who, s.task, dispatch.Enforce, []byte(s.draft(rt)), dispatch.Review{Reviewer: "maya", Decision: "approved"})
	} else {
		_, err = s.dispatch(mode, proposal)
	}
	s.serve()
	after := s.kinds()
	judged := after[dispatch.KindDecision] - before[dispatch.KindDecision] - others
	s.answered += judged + others
	if judged > 1 || kind != "state moved" && err == nil {
		rt.Fatalf("%s, and yet %v with %d decision(s) more", kind, err, judged)
	}
	grown := after[""] - before[""]
	if (kind == "commit lost" || kind == "state unreadable") && grown != 0 || kind == "answer lost" && (grown > 0) != (durable == 1) || durable > 1 {
		rt.Fatalf("%s, and %d entries more", kind, grown)
	}
	if errors.Is(err, dispatch.ErrUnavailable) && judged != 0 {
		rt.Fatalf("unavailable, and a decision more")
	}
}

// unreadable is a store that cannot be read.
type unreadable struct {
	dispatch.Store
	err error
}

func (u unreadable) Load(context.Context, dispatch.TaskKey, dispatch.Lookup) (dispatch.State, error) {
	return dispatch.State{}, u.err
}

// check reads the promises from the bytes of the entries.
func (s *sequence) check() {
	s.audited()
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
			s.replays(entry)
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
			s.asked(allowed)
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
	open, err := s.store.Approvals(context.Background(), s.who.Tenant, "", dispatch.Pending, dispatch.Approved)
	require.NoError(rt, err)
	for _, a := range open {
		require.False(rt, cancelled[a.Task.ID], "nothing of a cancelled task waits")
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

// asked counts what ran under an approval. Whether it is the right one, the audit says.
func (s *sequence) asked(decision map[string]any) {
	terms, asked := decision["decision"].(map[string]any)["approval"].(map[string]any)
	if !asked {
		return
	}
	if s.seen["run under an approval"]++; terms["stages"] != nil {
		s.seen["run under two stages"]++
	}
}

// audited holds the entries against every promise, without the state.
func (s *sequence) audited() {
	var export bytes.Buffer
	for e, err := range s.store.EntriesFrom(context.Background(), 0) {
		require.NoError(s.rt, err)
		export.Write(e.Body)
		export.WriteByte('\n')
	}
	r, err := audit.Export(context.Background(), &export, audit.Options{})
	require.NoError(s.rt, err)
	require.Empty(s.rt, r.Findings)
}

func (s *sequence) replays(entry dispatch.Entry) {
	var recorded dispatch.DecisionEntry
	require.NoError(s.rt, ijson.Unmarshal(entry.Body, &recorded))
	switch {
	case recorded.Attempt > 1:
		s.seen["decided again"]++
	case recorded.Decision.Effect == dispatch.Replay:
		s.seen["replay"]++
	case recorded.Decision.Effect == dispatch.Simulate:
		s.seen["simulation"]++
	}
	for _, g := range s.all {
		if recorded.Decision.PolicyVersion == g.policy.Version() {
			again, err := dispatch.Judge(context.Background(), g.policy, g.policy.Version(), recorded.Input)
			require.NoError(s.rt, err)
			require.Equal(s.rt, recorded.Decision, again)
			return
		}
	}
	s.rt.Fatalf("unknown policy version %s", recorded.Decision.PolicyVersion)
}
