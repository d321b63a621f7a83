package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// siteRule is a lab whose site denies under a condition.
func siteRule(t *testing.T, body string, edits ...edit) *lab {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "site.rego"), []byte("package site\n\n# METADATA\n# custom:\n#   code: closed\n#   message: not now\n#   remedy: wait\n"+
		"deny contains {\"code\": \"closed\", \"message\": \"not now\", \"status\": \"closed\"} if {\n\tinput.call.arguments.draft_id == \"broken\"\n\t"+body+"\n}\n"), 0o600))
	return newLab(t, append([]edit{func(c *config.Config) { c.Site = []string{dir} }}, edits...)...)
}

// Calls whose rule never ends are denied when its time is over. The calls of other tasks are decided meanwhile, as if there
// were no such rule.
func TestB012RunawayRuleStopsNobodyElse(t *testing.T) {
	l := siteRule(t, "some i in numbers.range(1, 100000)\n\tsome j in numbers.range(1, 100000)\n\ti + j < 0",
		func(c *config.Config) { c.Limits.DecisionTime = "3s" })
	propose := func(task, proposal string) dispatch.Result {
		r, err := l.dispatcher.Dispatch(context.Background(), l.who, task, dispatch.Origin{Door: "test"}, []byte(proposal))
		assert.NoError(t, err)
		return r
	}
	const each = 6
	for i := range each {
		l.create(fmt.Sprintf("runaway-%d", i), l.who.Actor)
		l.create(fmt.Sprintf("other-%d", i), l.who.Actor)
	}
	var runaways, others sync.WaitGroup
	for i := range each {
		runaways.Go(func() {
			r := propose(fmt.Sprintf("runaway-%d", i), draft("a", "draft_id", "broken"))
			assert.Equal(t, dispatch.StatusPolicyError, r.Status)
			assert.Equal(t, []dispatch.Reason{{Code: "policy_timeout", Message: "the policy gave no usable decision"}}, r.Reasons)
		})
		others.Go(func() {
			task := fmt.Sprintf("other-%d", i)
			assert.Equal(t, dispatch.StatusOK, propose(task, add("a")).Status)
			assert.Equal(t, dispatch.StatusApprovalRequired, propose(task, draft("b")).Status)
		})
	}
	others.Wait()
	runaways.Wait()
	decisions := map[string]int{}
	for _, e := range l.entries() {
		decisions[string(e.Kind)]++
	}
	assert.Equal(t, 3*each, decisions["decision"], "each is on record")
	assert.Equal(t, each, decisions["action"], "and nothing ran but the sums")
}

// Whatever keeps the policy from deciding, the call does not run, and the class of the reason says what it was.
func TestB012PolicyStepFails(t *testing.T) {
	for name, c := range map[string]struct{ body, code string }{
		"a rule without an end":  {"some i in numbers.range(1, 100000)\n\tsome j in numbers.range(1, 100000)\n\ti + j < 0", "policy_timeout"},
		"a built-in that fails":  {"to_number(input.call.arguments.purpose) > 3", "policy_failed"},
		"a huge exponent":        {"to_number(sprintf(\"1e%s\", [\"999999999\"])) > 3", "policy_failed"},
		"two answers of a value": {"count({x: y | some x in [1]; some y in [input.call.arguments.purpose, 2]}) > 0", "policy_conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			l := siteRule(t, c.body, func(c *config.Config) { c.Limits.DecisionTime = "500ms" })
			r := l.propose(draft("a", "draft_id", "broken"))
			require.Equal(t, dispatch.StatusPolicyError, r.Status)
			require.Len(t, r.Reasons, 1)
			assert.Equal(t, c.code, r.Reasons[0].Code)
			var e dispatch.DecisionEntry
			entries := l.entries()
			require.NoError(t, ijson.Unmarshal(entries[len(entries)-1].Body, &e))
			assert.Equal(t, dispatch.Deny, e.Decision.Effect)
		})
	}
	t.Run("the store is held", func(t *testing.T) {
		l := newLab(t)
		before := len(l.entries())
		dispatcher := dispatch.New(stuck{l.store}, l.store.Key(), l.clock, l.snapshot)
		_, err := dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{Door: "test"}, []byte(add("a")))
		require.ErrorIs(t, err, dispatch.ErrUnavailable)
		assert.Len(t, l.entries(), before)
	})
	t.Run("nobody waits any more", func(t *testing.T) {
		l := newLab(t)
		before := len(l.entries())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.dispatcher.Dispatch(ctx, l.who, l.task, dispatch.Origin{Door: "test"}, []byte(add("a")))
		require.ErrorIs(t, err, context.Canceled)
		assert.Len(t, l.entries(), before)
	})
}
