package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/journal"
	"github.com/policy-dispatch/govern/internal/tools"
)

// The two stories of docs/guarantees.md, with both of their logs.
func TestTwoStories(t *testing.T) {
	logs := func(l *lab) (decisions, actions []string) {
		for d, err := range journal.Decisions(t.Context(), l.store, l.store.Entries(t.Context(), l.who.Tenant, "")) {
			require.NoError(t, err)
			decisions = append(decisions, fmt.Sprintf("%d %s %s", d.Step, d.Tool, d.Status))
		}
		for a, err := range journal.Actions(t.Context(), l.store, l.store.Entries(t.Context(), l.who.Tenant, "")) {
			require.NoError(t, err)
			actions = append(actions, fmt.Sprintf("%d %s %s", a.Step, a.Tool, a.Target))
		}
		return decisions, actions
	}
	t.Run("the notice", func(t *testing.T) {
		l := newLab(t)
		l.propose(read("n1", "/warehouse/notice.txt"))
		l.propose(draft("n2", "draft_id", "archive-note"))
		decisions, actions := logs(l)
		assert.Equal(t, []string{"1 read_document ok", "2 record_draft approval_required"}, decisions)
		assert.Equal(t, []string{"1 read_document /warehouse/notice.txt"}, actions)
		assert.Zero(t, l.count(dispatch.KindReview))
	})
	t.Run("the lost reply", func(t *testing.T) {
		l := newLab(t)
		failing := *l.snapshot
		failing.Tools = tools.WithFaults(l.tools, &tools.Faults{LoseDraftReply: true})
		l.dispatcher.Use(&failing)
		l.propose(draft("u1"))
		require.NoError(t, l.review(draft("u1"), "approved"))
		r, err := l.dispatcher.DispatchRetry(t.Context(), l.who, l.task, dispatch.Origin{Door: "test"}, []byte(draft("u1")), 2)
		require.NoError(t, err)
		assert.Equal(t, dispatch.StatusReplayed, r.Status)
		decisions, actions := logs(l)
		assert.Equal(t, []string{"1 record_draft approval_required", "2 record_draft outcome_unknown", "3 record_draft replayed"}, decisions)
		assert.Equal(t, []string{"2 record_draft labels-note"}, actions)
		assert.Len(t, l.drafts(), 1)
	})
}
