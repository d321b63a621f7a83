package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Whatever the facts, the decision and the outcome: a commit counts one step from what it was made on, has one
// decision and no gap in its numbers, and has an effect only where the decision allowed and the operation ran.
func TestNextKeepsThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := writeFacts()
		f.Task.Steps = rapid.IntRange(0, 30).Draw(t, "steps")
		f.Task.Revision = rapid.Int64Range(1, 99).Draw(t, "revision")
		f.Step = f.Task.Steps + 1
		f.Asked = ijson.Raw(`{}`)
		states := []ApprovalState{Pending, Approved, Rejected, Consumed, Expired, Withdrawn}
		f.State.Approval.State = rapid.SampledFrom(states).Draw(t, "approval")
		if rapid.Bool().Draw(t, "no approval") {
			f.State.Approval = nil
		} else if rapid.Bool().Draw(t, "another definition") {
			f.State.Approval.Definition = "e"
		}
		d := Decision{Effect: rapid.SampledFrom([]Effect{Deny, Allow, RequireApproval, Replay, Simulate, "", "permit"}).Draw(t, "effect"), PolicyVersion: version,
			Status: rapid.SampledFrom([]Status{StatusOK, StatusApprovalExpired, StatusToolDenied, StatusApprovalRequired, StatusReplayed}).Draw(t, "status")}
		if d.Effect == RequireApproval {
			d.Approval = &Terms{Approvers: rapid.IntRange(0, 2).Draw(t, "approvers")}
		}
		if d.Effect == Replay {
			f.Operation = &Operation{Result: ijson.Raw(`1`)}
		}
		if rapid.Bool().Draw(t, "by rule") {
			f.Tool.Approval = ByRule
		}
		o := Outcome{Status: rapid.SampledFrom([]Status{StatusOK, StatusTimeout, StatusNotFound, StatusOutcomeUnknown, StatusInternalError}).Draw(t, "outcome"),
			Ran: rapid.Bool().Draw(t, "ran"), Value: ijson.Raw(`{"v":1}`), Record: ijson.Raw(`{"r":1}`)}
		var before Approval
		if a := f.State.Approval; a != nil {
			before = *a
		}

		c, r, err := Next(f, d, o)
		require.NoError(t, err)
		assert.Equal(t, f.Task.Revision, c.Revision)
		assert.Equal(t, f.Task.Revision+1, c.Task.Revision)
		assert.Equal(t, f.Task.Steps+1, c.Task.Steps)
		assert.Equal(t, c.Task.Steps, r.Step)
		assert.Equal(t, len(c.Entries), c.Task.Entries)
		kinds := map[Kind]int{}
		for i, e := range c.Entries {
			assert.Equal(t, i, e.N)
			assert.Equal(t, f.Step, e.Step)
			kinds[e.Kind]++
		}
		assert.Equal(t, 1, kinds[KindDecision])
		ran := d.Effect == Allow && o.Ran
		assert.Equal(t, ran, kinds[KindAction] == 1)
		assert.Equal(t, ran, c.Record != nil)
		assert.Equal(t, ran, c.Operation != nil)
		if r.Value != nil {
			assert.True(t, d.Effect == Replay || d.Effect == Allow && o.Status == StatusOK)
		}
		usable := f.State.Approval != nil && f.State.Approval.State == Approved && f.State.Approval.Definition == f.Definition
		assert.Equal(t, ran && usable, slices.ContainsFunc(c.Approvals, func(a ApprovalChange) bool { return a.State == Consumed }),
			"a call that ran uses its approval up, asked for or not")
		open := 0
		for _, a := range c.Approvals {
			assert.Equal(t, a.From == "", a.State == Pending && a.Step == f.Step, "only a new approval has no row before it")
			if a.State == Consumed {
				assert.True(t, ran)
				assert.Equal(t, Approved, a.From)
			}
			assert.NotEqual(t, Approved, a.State, "no dispatch approves")
			if a.Open() {
				open++
			}
		}
		assert.LessOrEqual(t, open, 1)
		if a := f.State.Approval; a != nil {
			assert.Equal(t, before, *a, "the facts are left as they were")
		}
	})
}

// Votes that were given stay when the policy asks for more, and the terms are those of the present policy.
func TestAskingForMoreKeepsTheVotes(t *testing.T) {
	f := writeFacts()
	f.Asked = ijson.Raw(`{}`)
	c, r, err := Next(f, Decision{Effect: RequireApproval, Status: StatusApprovalRequired, Approval: &Terms{Approvers: 2}}, Outcome{})
	require.NoError(t, err)
	require.Len(t, c.Approvals, 1)
	a := c.Approvals[0]
	assert.Equal(t, Approved, a.From)
	assert.Equal(t, Pending, a.State)
	assert.Equal(t, f.State.Approval.Votes, a.Votes)
	assert.Zero(t, a.ExpiresAtStep)
	assert.Equal(t, &ResultApproval{ID: "ap-1", Signature: "s", State: Pending, ExpiresAt: FormatTime(f.State.Approval.ExpiresAt), Progress: Progress{Votes: 1, Needed: 2}}, r.Approval)

	var sam Commit
	sam, err = nextReview(c.Task, a.Approval, Review{Reviewer: "sam", Decision: "approved"}, f.Now)
	require.NoError(t, err)
	assert.Equal(t, Approved, sam.Approvals[0].State)
	assert.Equal(t, c.Task.Steps+3, sam.Approvals[0].ExpiresAtStep, "the shortest lifetime that was granted, from the last vote")
	_, err = nextReview(c.Task, a.Approval, Review{Reviewer: "maya", Decision: "approved"}, f.Now)
	require.ErrorIs(t, err, ErrAlreadyVoted)
	no, err := nextReview(c.Task, a.Approval, Review{Reviewer: "maya", Decision: "rejected"}, f.Now)
	require.NoError(t, err, "whoever said yes can still say no")
	assert.Equal(t, Rejected, no.Approvals[0].State)
	assert.Len(t, no.Approvals[0].Votes, 1)
}

// A vote that does not count under the present terms is no dead end: its reviewer votes again, by the terms.
func TestVoteThatDoesNotCount(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a := Approval{ID: "ap-1", Actor: "learner", State: Pending, Terms: Terms{Approvers: 2, ReasonRequired: true}, ExpiresAt: at.Add(time.Hour),
		Proposal: ijson.Raw(`{"call_id":"c1"}`), Votes: []Vote{{Reviewer: "maya", Decision: "approved", Lifetime: 3}}}
	c, err := nextReview(Task{}, a, Review{Reviewer: "sam", Decision: "approved", Reason: "read it"}, at)
	require.NoError(t, err)
	assert.Equal(t, Pending, c.Approvals[0].State, "one vote without a reason and one with it are not two")
	c, err = nextReview(Task{}, c.Approvals[0].Approval, Review{Reviewer: "maya", Decision: "approved", Reason: "me too"}, at)
	require.NoError(t, err)
	assert.Equal(t, Approved, c.Approvals[0].State)
	assert.Len(t, c.Approvals[0].Votes, 2)
}

// A shorter time limit reaches a call that waits as soon as it is asked for again; a longer one gives it no more time.
func TestTighterTTL(t *testing.T) {
	for ttl, want := range map[string]time.Duration{"10m": 10 * time.Minute, "720h": time.Hour} {
		f := writeFacts()
		f.Asked = ijson.Raw(`{}`)
		f.State.Approval.State = Pending
		c, _, err := Next(f, Decision{Effect: RequireApproval, Status: StatusApprovalRequired, Approval: &Terms{TTL: ttl}}, Outcome{})
		require.NoError(t, err)
		assert.Equal(t, f.Now.Add(want), c.Approvals[0].ExpiresAt, ttl)
	}
}

func TestTermsOfAReview(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	n := func(n int) *int { return &n }
	for _, row := range []struct {
		name  string
		terms Terms
		r     Review
		want  error
		state ApprovalState
		step  int
	}{
		{"one of one", Terms{}, Review{Reviewer: "maya", Decision: "approved"}, nil, Approved, 10},
		{"one of two", Terms{Approvers: 2}, Review{Reviewer: "maya", Decision: "approved"}, nil, Pending, 0},
		{"a rejection ends it", Terms{Approvers: 2}, Review{Reviewer: "maya", Decision: "rejected"}, nil, Rejected, 0},
		{"a short default where the terms allow only less", Terms{Lifetime: 2}, Review{Reviewer: "maya", Decision: "approved"}, nil, Approved, 9},
		{"longer than the terms allow", Terms{Lifetime: 2}, Review{Reviewer: "maya", Decision: "approved", Lifetime: n(3)}, ErrReviewLifetime, "", 0},
		{"B047: one's own", Terms{DistinctFromActor: true}, Review{Reviewer: "learner", Decision: "approved"}, ErrSelfReview, "", 0},
		{"B047: rejecting one's own", Terms{DistinctFromActor: true}, Review{Reviewer: "learner", Decision: "rejected"}, nil, Rejected, 0},
		{"one's own, where that is allowed", Terms{}, Review{Reviewer: "learner", Decision: "approved"}, nil, Approved, 10},
		{"no reason", Terms{ReasonRequired: true}, Review{Reviewer: "maya", Decision: "approved"}, ErrReviewReason, "", 0},
		{"a reason that is no text", Terms{}, Review{Reviewer: "maya", Decision: "rejected", Reason: "a\xff"}, ErrReviewText, "", 0},
		{"a reason", Terms{ReasonRequired: true}, Review{Reviewer: "maya", Decision: "approved", Reason: "checked"}, nil, Approved, 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := Approval{ID: "ap-1", Actor: "learner", State: Pending, Terms: row.terms, ExpiresAt: at.Add(time.Hour), Proposal: ijson.Raw(`{"call_id":"c1"}`)}
			c, err := nextReview(Task{Steps: 7}, a, row.r, at)
			if row.want != nil {
				require.ErrorIs(t, err, row.want)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, row.state, c.Approvals[0].State)
			assert.Equal(t, row.step, c.Approvals[0].ExpiresAtStep)
			assert.Equal(t, 7, c.Task.Steps)
			assert.Equal(t, Pending, a.State, "the row that was read is left alone")
		})
	}
}

// Of several votes the shortest lifetime counts, in whatever order they came.
func TestShortestLifetimeCounts(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, lifetimes := range [][2]int{{2, 9}, {9, 2}} {
		a := Approval{ID: "ap-1", State: Pending, Terms: Terms{Approvers: 2}, ExpiresAt: at.Add(time.Hour), Proposal: ijson.Raw(`{"call_id":"c1"}`)}
		for i, reviewer := range []string{"maya", "sam"} {
			c, err := nextReview(Task{Steps: 5}, a, Review{Reviewer: reviewer, Decision: "approved", Lifetime: &lifetimes[i]}, at)
			require.NoError(t, err)
			a = c.Approvals[0].Approval
		}
		assert.Equal(t, Approved, a.State)
		assert.Equal(t, 7, a.ExpiresAtStep, "%v", lifetimes)
	}
}

// An approval that was withdrawn, or is of another definition, is none for the policy.
func TestApprovalsThatCountAsNone(t *testing.T) {
	f := writeFacts()
	require.NotNil(t, f.Input().State.Approval)
	f.State.Approval.State = Withdrawn
	assert.Nil(t, f.Input().State.Approval)
	f = writeFacts()
	f.State.Approval.Definition = "another"
	assert.Nil(t, f.Input().State.Approval)
}
