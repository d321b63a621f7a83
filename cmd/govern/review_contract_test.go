package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
)

// The contract of a review, row by row: what a review may say, and that everything else changes nothing.
func TestReviewContract(t *testing.T) {
	d := draft("d1")
	pending := func(l *lab) { require.Equal(t, dispatch.StatusApprovalRequired, l.propose(d).Status) }
	for _, row := range []struct {
		name     string
		before   func(*lab)
		proposal string
		decision string
		lifetime []int
		want     error
	}{
		{"approved", pending, d, "approved", nil, nil},
		{"rejected", pending, d, "rejected", nil, nil},
		{"the shortest lifetime", pending, d, "approved", []int{1}, nil},
		{"the longest lifetime", pending, d, "approved", []int{10}, nil},
		{"key order is no difference", pending, `{"tool":"record_draft","arguments":{"purpose":"inventory-summary","idempotency_key":"draft-1","draft_id":"labels-note","body":"There are 84 labels."},"call_id":"d1"}`, "approved", nil, nil},
		{"another attempt of the same call", pending, draft("d9"), "approved", nil, nil},
		{"another word", pending, d, "approve", nil, dispatch.ErrReviewDecision},
		{"another case", pending, d, "Approved", nil, dispatch.ErrReviewDecision},
		{"no word", pending, d, "", nil, dispatch.ErrReviewDecision},
		{"the name of a state", pending, d, "consumed", nil, dispatch.ErrReviewDecision},
		{"lifetime 0", pending, d, "approved", []int{0}, dispatch.ErrReviewLifetime},
		{"lifetime 11", pending, d, "approved", []int{11}, dispatch.ErrReviewLifetime},
		{"lifetime -1", pending, d, "approved", []int{-1}, dispatch.ErrReviewLifetime},
		{"a bad lifetime of a rejection", pending, d, "rejected", []int{0}, dispatch.ErrReviewLifetime},
		{"nothing pending", func(*lab) {}, d, "approved", nil, dispatch.ErrNothingPending},
		{"another body", pending, draft("d1", "body", "There are 840 labels."), "approved", nil, dispatch.ErrNothingPending},
		{"another target", pending, draft("d1", "draft_id", "other-note"), "approved", nil, dispatch.ErrNothingPending},
		{"another key", pending, draft("d1", "idempotency_key", "draft-2"), "approved", nil, dispatch.ErrNothingPending},
		{"one space more", pending, draft("d1", "body", "There are  84 labels."), "approved", nil, dispatch.ErrNothingPending},
		{"no proposal", pending, `{"tool":"record_draft"}`, "approved", nil, &dispatch.Error{Code: "invalid_proposal"}},
		{"approved already", func(l *lab) { pending(l); require.NoError(t, l.review(d, "approved")) }, d, "approved", nil, dispatch.ErrAlreadyReviewed},
		{"rejected already", func(l *lab) { pending(l); require.NoError(t, l.review(d, "rejected")) }, d, "approved", nil, dispatch.ErrAlreadyReviewed},
		{"used already", func(l *lab) {
			pending(l)
			require.NoError(t, l.review(d, "approved"))
			require.Equal(t, dispatch.StatusOK, l.propose(d).Status)
		}, d, "rejected", nil, dispatch.ErrAlreadyReviewed},
		{"past its time limit", func(l *lab) { pending(l); l.now = l.now.Add(24*time.Hour + time.Millisecond) }, d, "approved", nil, dispatch.ErrApprovalExpired},
		{"at its time limit", func(l *lab) { pending(l); l.now = l.now.Add(24 * time.Hour) }, d, "approved", nil, nil},
		{"cancelled", func(l *lab) {
			pending(l)
			require.NoError(t, l.dispatcher.Cancel(context.Background(), l.key(), "maya"))
		}, d, "approved", nil, dispatch.ErrReviewCancelled},
		{"cancelled before anything was asked", func(l *lab) { require.NoError(t, l.dispatcher.Cancel(context.Background(), l.key(), "maya")) }, d, "approved", nil, dispatch.ErrReviewCancelled},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			row.before(l)
			before, steps := len(l.entries()), l.steps()
			err := l.review(row.proposal, row.decision, row.lifetime...)
			assert.Equal(t, steps, l.steps(), "a review counts no step")
			if row.want == nil {
				require.NoError(t, err)
				assert.Len(t, l.entries(), before+1)
				return
			}
			require.ErrorIs(t, err, row.want)
			assert.Len(t, l.entries(), before, "a refused review records nothing")
		})
	}
}

func (l *lab) steps() int {
	t, err := l.store.Task(context.Background(), l.key())
	require.NoError(l.t, err)
	return t.Steps
}

// expires_at_step is the step of the vote plus the lifetime, and the approval is good up to that step.
func TestLifetime(t *testing.T) {
	for lifetime := 1; lifetime <= 3; lifetime++ {
		for between := 0; between <= 3; between++ {
			t.Run(fmt.Sprintf("%d steps, used after %d others", lifetime, between), func(t *testing.T) {
				l := newLab(t)
				l.propose(draft("d1"))
				require.NoError(t, l.review(draft("d1"), "approved", lifetime))
				for range between {
					require.Equal(t, dispatch.StatusOK, l.propose(add("m1")).Status)
				}
				want := dispatch.StatusOK
				if between >= lifetime {
					want = dispatch.StatusApprovalExpired
				}
				r := l.propose(draft("d1"))
				assert.Equal(t, want, r.Status)
				if want == dispatch.StatusApprovalExpired {
					assert.Equal(t, dispatch.Expired, r.Approval.State)
					assert.Equal(t, 1+lifetime, r.Approval.ExpiresAtStep)
					assert.Empty(t, l.drafts())
				}
			})
		}
	}
}

func TestReviewByIDNeedsTheSignatureShown(t *testing.T) {
	l := newLab(t)
	a := l.propose(draft("d1")).Approval
	b := l.propose(draft("d2", "idempotency_key", "draft-2")).Approval
	yes := dispatch.Review{Reviewer: "maya", Decision: "approved"}
	for _, signature := range []string{"", b.Signature, a.Signature[:63], a.Signature + "0"} {
		_, err := l.dispatcher.Review(t.Context(), l.who.Tenant, a.ID, signature, yes)
		require.ErrorIs(t, err, dispatch.ErrSignatureDiffers, "%q", signature)
	}
	_, err := l.dispatcher.Review(t.Context(), l.who.Tenant, "ap-0", a.Signature, yes)
	require.ErrorIs(t, err, dispatch.ErrUnknownApproval)
	_, err = l.dispatcher.Review(t.Context(), "elsewhere", a.ID, a.Signature, yes)
	require.ErrorIs(t, err, dispatch.ErrUnknownApproval, "another tenant's reviewer finds nothing")
	assert.Equal(t, 0, l.count(dispatch.KindReview))

	after, err := l.dispatcher.Review(t.Context(), l.who.Tenant, a.ID, a.Signature, yes)
	require.NoError(t, err)
	assert.Equal(t, dispatch.Approved, after.State)
	assert.Equal(t, "maya", after.Votes[0].Reviewer)
	assert.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d2", "idempotency_key", "draft-2")).Status, "the other one still waits")
}

// A rejected or expired call is not asked again by proposing it; a person can reopen it, with no votes and a new
// time limit.
func TestReopen(t *testing.T) {
	for _, row := range []struct {
		name  string
		close func(*lab)
		until dispatch.Status
	}{
		{"rejected", func(l *lab) { require.NoError(t, l.review(draft("d1"), "rejected")) }, dispatch.StatusApprovalRejected},
		{"expired by steps", func(l *lab) {
			require.NoError(t, l.review(draft("d1"), "approved", 1))
			l.propose(add("m1"))
		}, dispatch.StatusApprovalExpired},
		{"expired by the clock", func(l *lab) { l.now = l.now.Add(25 * time.Hour) }, dispatch.StatusApprovalExpired},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			l.propose(draft("d1"))
			row.close(l)
			for range 2 {
				require.Equal(t, row.until, l.propose(draft("d1")).Status)
			}
			a, err := l.dispatcher.ReopenCall(t.Context(), l.who, l.task, dispatch.Enforce, []byte(draft("d1")), "maya", "looked at it again")
			require.NoError(t, err)
			assert.Equal(t, dispatch.Pending, a.State)
			assert.Empty(t, a.Votes)
			assert.Zero(t, a.ExpiresAtStep)
			assert.Equal(t, l.now.Add(24*time.Hour), a.ExpiresAt)
			require.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status)
			require.NoError(t, l.review(draft("d1"), "approved"))
			assert.Equal(t, dispatch.StatusOK, l.propose(draft("d1")).Status)
		})
	}
	t.Run("what is open or used cannot be", func(t *testing.T) {
		l := newLab(t)
		reopen := func() error {
			_, err := l.dispatcher.ReopenCall(t.Context(), l.who, l.task, dispatch.Enforce, []byte(draft("d1")), "maya", "")
			return err
		}
		require.ErrorIs(t, reopen(), dispatch.ErrNothingPending)
		l.propose(draft("d1"))
		require.ErrorIs(t, reopen(), dispatch.ErrNotReopenable)
		require.NoError(t, l.review(draft("d1"), "approved"))
		require.ErrorIs(t, reopen(), dispatch.ErrNotReopenable)
		l.propose(draft("d1"))
		require.ErrorIs(t, reopen(), dispatch.ErrNotReopenable)
	})
}

// B046: silence never approves, and what has lapsed stays so when the clock is set back.
func TestB046LapsedIsNeverRevived(t *testing.T) {
	t.Run("after the list showed it", func(t *testing.T) {
		l := newLab(t)
		l.propose(draft("d1"))
		l.now = l.now.Add(25 * time.Hour)
		for range 2 {
			require.NoError(t, l.dispatcher.Expire(t.Context(), l.who.Tenant))
			require.Equal(t, 1, l.count(dispatch.KindExpiry), "once, and then there is nothing more to close")
		}
		l.now = l.now.Add(-2 * time.Hour)
		require.ErrorIs(t, l.review(draft("d1"), "approved"), dispatch.ErrAlreadyReviewed)
		assert.Equal(t, dispatch.StatusApprovalExpired, l.propose(draft("d1")).Status)
	})
	t.Run("after a dispatch met it", func(t *testing.T) {
		l := newLab(t)
		l.propose(draft("d1"))
		l.now = l.now.Add(25 * time.Hour)
		require.Equal(t, dispatch.StatusApprovalExpired, l.propose(draft("d1")).Status)
		l.now = l.now.Add(-2 * time.Hour)
		require.ErrorIs(t, l.review(draft("d1"), "approved"), dispatch.ErrAlreadyReviewed)
	})
	t.Run("after the task saw any later moment", func(t *testing.T) {
		l := newLab(t)
		l.propose(draft("d1"))
		l.now = l.now.Add(25 * time.Hour)
		l.propose(add("m1"))
		l.now = l.now.Add(-2 * time.Hour)
		require.ErrorIs(t, l.review(draft("d1"), "approved"), dispatch.ErrApprovalExpired)
		assert.Equal(t, dispatch.StatusApprovalExpired, l.propose(draft("d1")).Status)
	})
	t.Run("an approved call past its time limit", func(t *testing.T) {
		l := newLab(t)
		l.propose(draft("d1"))
		require.NoError(t, l.review(draft("d1"), "approved", 10))
		l.now = l.now.Add(25 * time.Hour)
		assert.Equal(t, dispatch.StatusApprovalExpired, l.propose(draft("d1")).Status)
		assert.Empty(t, l.drafts())
	})
}

// B045: 100 rounds of one person approving and another rejecting at the same moment.
func TestB045OneTerminalState(t *testing.T) {
	l := newLab(t, budget(1000))
	for i := range 100 {
		d := draft("d1", "idempotency_key", fmt.Sprintf("k-%d", i), "draft_id", fmt.Sprintf("n-%d", i))
		require.Equal(t, dispatch.StatusApprovalRequired, l.propose(d).Status)
		reviews := l.count(dispatch.KindReview)
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for j, word := range []string{"approved", "rejected"} {
			wg.Go(func() { errs[j] = l.review(d, word) })
		}
		wg.Wait()
		won := 0
		if errs[0] != nil {
			won = 1
		}
		require.NoError(t, errs[won])
		require.ErrorIs(t, errs[1-won], dispatch.ErrAlreadyReviewed)
		require.Equal(t, reviews+1, l.count(dispatch.KindReview), "one decision on record")
		want := []dispatch.Status{dispatch.StatusOK, dispatch.StatusApprovalRejected}[won]
		require.Equal(t, want, l.propose(d).Status)
		require.True(t, errors.Is(l.review(d, "rejected"), dispatch.ErrAlreadyReviewed), "never denied after a run")
	}
}

// An approval that was replaced by a later one of the same call is history: it cannot come back beside it.
func TestReplacedApproval(t *testing.T) {
	l := newLab(t)
	old := l.propose(draft("d1")).Approval
	require.NoError(t, l.review(draft("d1"), "rejected"))
	l.redefineTools()
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(draft("d1")).Status)
	_, err := l.dispatcher.Reopen(t.Context(), l.who.Tenant, old.ID, old.Signature, "maya", "")
	require.ErrorIs(t, err, dispatch.ErrReplaced)
	_, err = l.dispatcher.Review(t.Context(), l.who.Tenant, old.ID, old.Signature, dispatch.Review{Reviewer: "maya", Decision: "approved"})
	require.ErrorIs(t, err, dispatch.ErrReplaced)
}

// What lapsed by its steps is expired for everybody, and a person can reopen it, without a dispatch having met it.
func TestLapsedByStepsWithoutADispatch(t *testing.T) {
	l := newLab(t)
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved", 1))
	l.propose(add("m1"))
	require.NoError(t, l.dispatcher.Expire(t.Context(), l.who.Tenant))
	list, err := l.store.Approvals(t.Context(), l.who.Tenant, "", dispatch.Expired)
	require.NoError(t, err)
	require.Len(t, list, 1)
	_, err = l.dispatcher.ReopenCall(t.Context(), l.who, l.task, dispatch.Enforce, []byte(draft("d1")), "maya", "")
	require.NoError(t, err)
}

// Calls that nobody answered in time do not keep others from being asked for.
func TestLapsedCallsLeaveRoom(t *testing.T) {
	l := newLab(t, budget(100), func(c *config.Config) {
		p := c.Profiles["warehouse"]
		p.MaxPending = ptr(2)
		c.Profiles["warehouse"] = p
	})
	key := func(n int) string {
		return draft("d", "idempotency_key", fmt.Sprint("k", n), "draft_id", fmt.Sprint("n", n))
	}
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(key(1)).Status)
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(key(2)).Status)
	require.Equal(t, dispatch.StatusPendingLimit, l.propose(key(3)).Status)
	l.now = l.now.Add(25 * time.Hour)
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(key(3)).Status)
	require.Equal(t, dispatch.StatusApprovalExpired, l.propose(key(1)).Status)
	assert.Equal(t, 1, l.count(dispatch.KindExpiry))
	assert.Equal(t, 5, l.steps(), "closing what lapsed is no step")
	want, got := fromStore(t, l.store, l.who.Tenant), fromEntries(t, l.entries())
	assert.Equal(t, want, got)
}
