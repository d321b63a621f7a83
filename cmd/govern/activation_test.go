package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/journal"
)

// activations are those on record, in order.
func (l *lab) activations() (all []dispatch.ActivationEntry) {
	l.t.Helper()
	for e, err := range l.store.EntriesFrom(context.Background(), 0) {
		require.NoError(l.t, err)
		if e.Kind == dispatch.KindActivation {
			var a dispatch.ActivationEntry
			require.NoError(l.t, ijson.Unmarshal(e.Body, &a))
			all = append(all, a)
		}
	}
	return all
}

// with puts another configuration in place, as a reload does.
func (l *lab) with(edit func(*config.Config)) {
	l.t.Helper()
	c := l.config
	edit(&c)
	g, err := assemble(l.t.Context(), c)
	require.NoError(l.t, err)
	l.dispatcher.Use(g.snapshot)
}

// An activation is not later than the decision that it is for: who asks which policy was in force at the time of a decision
// finds it.
func TestAnActivationIsNotLaterThanItsDecision(t *testing.T) {
	l := newLab(t)
	l.dispatcher = dispatch.New(l.store, l.store.Key(), func() time.Time {
		l.now = l.now.Add(time.Second)
		return l.now
	}, l.snapshot)
	l.propose(add("m1"))
	var activated, decided string
	for e, err := range l.store.EntriesFrom(t.Context(), 0) {
		require.NoError(t, err)
		at, _ := journal.Member(e, "/time")
		switch e.Kind {
		case dispatch.KindActivation:
			activated = at
		case dispatch.KindDecision:
			decided = at
		}
	}
	assert.NotEmpty(t, activated)
	assert.LessOrEqual(t, activated, decided)
}

// The policy is on record before its first decision, with everything that it is made of; and again whenever another was
// on record since.
func TestActivationsAreOnRecord(t *testing.T) {
	l := newLab(t)
	assert.Empty(t, l.activations(), "nothing is decided by making a task")
	for range 2 {
		l.propose(add("m1"))
	}
	l.serve() // another process
	l.propose(add("m1"))
	require.Len(t, l.activations(), 1)

	less := func(c *config.Config) {
		p := c.Profiles["warehouse"]
		p.Tools = []string{"read_document"}
		c.Profiles = map[string]config.Profile{"warehouse": p}
	}
	l.with(less)
	assert.Equal(t, dispatch.StatusToolDenied, l.propose(add("m1")).Status)
	l.with(func(*config.Config) {})
	assert.Equal(t, dispatch.StatusOK, l.propose(add("m1")).Status)

	all := l.activations()
	require.Len(t, all, 3)
	assert.NotEqual(t, all[0].PolicyVersion, all[1].PolicyVersion)
	assert.Equal(t, all[0].PolicyVersion, all[2].PolicyVersion)
	assert.Equal(t, []string{all[0].Policy, all[0].Config}, []string{all[2].Policy, all[2].Config})
	assert.NotEqual(t, all[0].Config, all[1].Config)
	for i, a := range all {
		assert.Equal(t, []any{"", "", 0, i, operator()}, []any{a.Tenant, a.Task, a.Step, a.N, a.By})
		for _, digest := range []string{a.Policy, a.Config} {
			content, err := l.store.Content(t.Context(), digest)
			require.NoError(t, err)
			sum := sha256.Sum256(content)
			assert.Equal(t, digest, hex.EncodeToString(sum[:]))
		}
	}
	policy, err := l.store.Content(t.Context(), all[0].Policy)
	require.NoError(t, err)
	for _, want := range []string{`"name":"decision.rego"`, "package policy", `"/warehouse/labels.txt":true`, `"revision":"lab-1"`} {
		assert.Contains(t, string(policy), want)
	}
	var decisions int
	for _, e := range l.entries() {
		if e.Kind == dispatch.KindDecision {
			decisions++
		}
	}
	assert.Equal(t, 5, decisions, "no activation is an entry of a task")
}

// Where the activation cannot be put on record, nothing is decided.
func TestNoDecisionWithoutItsActivation(t *testing.T) {
	l := newLab(t)
	full := errors.New("disk full")
	l.dispatcher = dispatch.New(inactive{l.store, full}, l.store.Key(), l.clock, l.snapshot)
	before := len(l.entries())
	_, err := l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{}, []byte(add("m1")))
	require.ErrorIs(t, err, full)
	assert.Len(t, l.entries(), before)
	assert.Zero(t, l.steps())
	l.serve()
	assert.Equal(t, dispatch.StatusOK, l.propose(add("m1")).Status)
	assert.Len(t, l.activations(), 1)
}

// inactive is a store that takes no activation.
type inactive struct {
	dispatch.Store
	err error
}

func (s inactive) Apply(ctx context.Context, c dispatch.Commit) error {
	if c.Task.TaskKey == (dispatch.TaskKey{}) {
		return s.err
	}
	return s.Store.Apply(ctx, c)
}

// Of many who begin at once, one puts the policy on record.
func TestOneActivationForManyAtOnce(t *testing.T) {
	l := newLab(t)
	for i := range 8 {
		l.create("task-"+strings.Repeat("x", i+1), l.who.Actor)
	}
	var all sync.WaitGroup
	for i := range 8 {
		d := dispatch.New(l.store, l.store.Key(), l.clock, l.snapshot)
		for range 4 {
			all.Go(func() {
				_, err := d.Dispatch(context.Background(), l.who, "task-"+strings.Repeat("x", i+1), dispatch.Origin{Door: "test"}, []byte(add("m1")))
				assert.NoError(t, err)
			})
		}
	}
	all.Wait()
	assert.Len(t, l.activations(), 1)
}
