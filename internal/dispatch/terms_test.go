package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// waiting is an approval that waits under terms.
func waiting(terms Terms) Approval {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	return Approval{ID: "ap-1", Actor: "learner", State: Pending, Terms: terms, ExpiresAt: at, Proposal: ijson.Raw(`{"call_id":"c1"}`)}
}

// say gives votes one after the other, and what the last of them came to.
func say(t *testing.T, a Approval, reviews ...Review) (Approval, error) {
	t.Helper()
	for i, r := range reviews {
		c, err := nextReview(Task{Steps: 7}, a, r, a.ExpiresAt)
		if i == len(reviews)-1 && err != nil {
			return a, err
		}
		require.NoError(t, err, r.Reviewer)
		a = c.Approvals[0].Approval
	}
	return a, nil
}

func yes(reviewer string, roles ...string) Review {
	return Review{Reviewer: reviewer, Roles: roles, Decision: "approved"}
}

func no(reviewer string, roles ...string) Review {
	return Review{Reviewer: reviewer, Roles: roles, Decision: "rejected"}
}

func TestRolesAndStagesOfAReview(t *testing.T) {
	lead := Terms{Roles: []string{"lead", "owner"}}
	stages := Terms{Stages: []Stage{{Name: "team", Approvers: 2}, {Name: "legal", Roles: []string{"counsel"}}}}
	both := Terms{Roles: []string{"staff"}, Stages: stages.Stages}
	more := Terms{Approvers: 4, Stages: stages.Stages}
	for _, row := range []struct {
		name    string
		terms   Terms
		reviews []Review
		want    error
		message string
		state   ApprovalState
	}{
		{"one of the roles", lead, []Review{yes("ann", "audit", "owner")}, nil, "", Approved},
		{"none of the roles", lead, []Review{yes("ann", "audit")}, ErrReviewRole, "this approval needs a reviewer with the role lead or owner", ""},
		{"no role at all", lead, []Review{yes("ann")}, ErrReviewRole, "lead or owner", ""},
		{"a role in another case", lead, []Review{yes("ann", "Lead")}, ErrReviewRole, "", ""},
		{"rejecting needs no role", lead, []Review{no("ann")}, nil, "", Rejected},
		{"the first stage", stages, []Review{yes("ann")}, nil, "", Pending},
		{"the first stage complete", stages, []Review{yes("ann"), yes("ben")}, nil, "", Pending},
		{"every stage", stages, []Review{yes("ann"), yes("ben"), yes("cem", "counsel")}, nil, "", Approved},
		{"the second stage without its role", stages, []Review{yes("ann"), yes("ben"), yes("cem", "lead")}, ErrReviewRole, `the stage "legal" of this approval needs a reviewer with the role counsel`, ""},
		{"who has the later role votes in the stage that waits", stages, []Review{yes("cem", "counsel"), yes("ben")}, nil, "", Pending},
		{"and not again in a later stage", stages, []Review{yes("cem", "counsel"), yes("ben"), yes("cem", "counsel")}, ErrAlreadyVoted, "", ""},
		{"rejecting in the second stage needs no role", stages, []Review{yes("ann"), yes("ben"), no("cem")}, nil, "", Rejected},
		{"a role for all, in the first stage", both, []Review{yes("ann")}, ErrReviewRole, "this approval needs a reviewer with the role staff", ""},
		{"a role for all, and that of the stage", both, []Review{yes("ann", "staff"), yes("ben", "staff"), yes("cem", "staff")}, ErrReviewRole, "counsel", ""},
		{"both roles", both, []Review{yes("ann", "staff"), yes("ben", "staff"), yes("cem", "counsel", "staff")}, nil, "", Approved},
		{"more people than the stages have", more, []Review{yes("ann"), yes("ben"), yes("cem", "counsel")}, nil, "", Pending},
		{"who are of the last stage", more, []Review{yes("ann"), yes("ben"), yes("cem", "counsel"), yes("dee")}, ErrReviewRole, "counsel", ""},
		{"and complete it", more, []Review{yes("ann"), yes("ben"), yes("cem", "counsel"), yes("dee", "counsel")}, nil, "", Approved},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, err := say(t, waiting(row.terms), row.reviews...)
			if row.want != nil {
				require.ErrorIs(t, err, row.want)
				require.Equal(t, Refused, KindOf(err))
				require.ErrorContains(t, err, row.message)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, row.state, a.State)
		})
	}
}

// A vote records its stage and the roles that its reviewer held; the roles are a set.
func TestVoteRecordsRolesAndStage(t *testing.T) {
	a, err := say(t, waiting(Terms{Stages: []Stage{{Name: "team"}, {Name: "legal"}}}), yes("ann", "b", "a", "b"), yes("ben"))
	require.NoError(t, err)
	at := FormatTime(a.ExpiresAt)
	assert.Equal(t, []Vote{
		{Reviewer: "ann", Roles: []string{"a", "b"}, Decision: "approved", Lifetime: 3, Stage: "team", Time: at},
		{Reviewer: "ben", Decision: "approved", Lifetime: 3, Stage: "legal", Time: at},
	}, a.Votes)
}

// Terms that changed meanwhile: a vote counts only in the stage that it was given for, after those before it.
func TestStagesThatChange(t *testing.T) {
	team, legal := Stage{Name: "team"}, Stage{Name: "legal"}
	a, err := say(t, waiting(Terms{Stages: []Stage{legal, {Name: "board"}}}), yes("cem"))
	require.NoError(t, err)
	a.Terms = Terms{Stages: []Stage{team, legal}}
	assert.Equal(t, "team", a.Progress().Stage, "what was said of legal is early now")
	a, err = say(t, a, yes("ann"))
	require.NoError(t, err)
	assert.Equal(t, Pending, a.State)
	assert.Equal(t, "legal", a.Progress().Stage)
	a, err = say(t, a, yes("cem"))
	require.NoError(t, err, "a vote that does not count gives way to its reviewer's next")
	assert.Equal(t, Approved, a.State)
	assert.Len(t, a.Votes, 2)
}

// Terms that were eased until the votes suffice wait for one more word, which may be that of somebody who has voted: it
// is given in the stage that its reviewer's first one leaves open.
func TestTermsThatWereEased(t *testing.T) {
	a, err := say(t, waiting(Terms{Approvers: 2}), yes("ann"))
	require.NoError(t, err)
	a.Terms = Terms{Approvers: 1}
	a, err = say(t, a, yes("ann"))
	require.NoError(t, err)
	assert.Equal(t, Approved, a.State)
	assert.Len(t, a.Votes, 1)

	stages := []Stage{{Name: "team"}, {Name: "legal", Roles: []string{"counsel"}}}
	a, err = say(t, waiting(Terms{Approvers: 3, Stages: stages}), yes("ann"), yes("ben", "counsel"))
	require.NoError(t, err)
	a.Terms = Terms{Stages: stages}
	again, err := say(t, a, yes("ann"))
	require.NoError(t, err)
	assert.Equal(t, "team", again.Votes[1].Stage)
	assert.Equal(t, "legal", again.Progress().Stage, "what ben said of legal is early now")
	again, err = say(t, a, yes("ben", "counsel"))
	require.NoError(t, err)
	assert.Equal(t, Approved, again.State)
}

func TestProgress(t *testing.T) {
	terms := Terms{Roles: []string{"staff"}, Stages: []Stage{{Name: "team", Approvers: 2}, {Name: "legal", Roles: []string{"counsel"}}}}
	for _, row := range []struct {
		name    string
		terms   Terms
		reviews []Review
		want    Progress
	}{
		{"nothing said", Terms{}, nil, Progress{Needed: 1}},
		{"one of two", Terms{Approvers: 2}, []Review{yes("ann")}, Progress{Votes: 1, Needed: 2}},
		{"a stage and a half", terms, []Review{yes("ann", "staff"), yes("ben", "staff")}, Progress{Votes: 2, Needed: 3, Roles: []string{"staff"}, Stage: "legal",
			Stages: []StageProgress{{"team", 2, 2, nil}, {"legal", 0, 1, []string{"counsel"}}}}},
		{"complete", terms, []Review{yes("ann", "staff"), yes("ben", "staff"), yes("cem", "counsel", "staff")}, Progress{Votes: 3, Needed: 3, Roles: []string{"staff"},
			Stages: []StageProgress{{"team", 2, 2, nil}, {"legal", 1, 1, []string{"counsel"}}}}},
	} {
		a, err := say(t, waiting(row.terms), row.reviews...)
		require.NoError(t, err)
		assert.Equal(t, row.want, a.Progress(), row.name)
	}
}

// However many people there are, and whatever the terms: so many votes as are needed are enough, and no fewer.
func TestNeededVotesAreEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := Terms{Approvers: rapid.IntRange(0, 4).Draw(t, "approvers"), Roles: rapid.SampledFrom([][]string{nil, {"lead"}}).Draw(t, "roles")}
		for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "stages")] {
			terms.Stages = append(terms.Stages, Stage{Name: name, Approvers: rapid.IntRange(0, 3).Draw(t, "of stage"), Roles: []string{name}})
		}
		a := waiting(terms)
		for i := 1; a.State == Pending; i++ {
			require.LessOrEqual(t, i, terms.needed())
			c, err := nextReview(Task{}, a, yes(string(rune('p'+i)), "a", "b", "c", "lead"), a.ExpiresAt)
			require.NoError(t, err)
			a = c.Approvals[0].Approval
			require.Equal(t, i == terms.needed(), a.State == Approved)
		}
	})
}

// A rule of the site may deny with the status of an expiry. That passes, and nobody has to reopen anything.
func TestOnlyWhatLapsedIsClosed(t *testing.T) {
	expired := Decision{Effect: Deny, Status: StatusApprovalExpired}
	f := writeFacts()
	f.Asked = ijson.Raw(`{}`)
	c, _, err := Next(f, expired, Outcome{})
	require.NoError(t, err)
	assert.Empty(t, c.Approvals)
	f.State.Approval.ExpiresAtStep = f.Step - 1
	c, _, err = Next(f, expired, Outcome{})
	require.NoError(t, err)
	require.Len(t, c.Approvals, 1)
	assert.Equal(t, Expired, c.Approvals[0].State)
}

// A call that waits is put under terms that differ in a role or a stage, and left alone under equal ones. One that was
// approved waits again, whatever the terms.
func TestAskingUnderOtherTerms(t *testing.T) {
	with := func(role, stage string) *Terms {
		return &Terms{Roles: []string{role}, Stages: []Stage{{Name: stage, Roles: []string{role}}}}
	}
	for name, row := range map[string]struct {
		state   ApprovalState
		terms   *Terms
		changes int
	}{
		"the same":              {Pending, with("lead", "legal"), 0},
		"another role":          {Pending, with("owner", "legal"), 1},
		"another stage":         {Pending, with("lead", "team"), 1},
		"the same, once it was": {Approved, with("lead", "legal"), 1},
	} {
		f := writeFacts()
		f.Asked = ijson.Raw(`{}`)
		f.State.Approval.State, f.State.Approval.Terms = row.state, *with("lead", "legal")
		c, _, err := Next(f, Decision{Effect: RequireApproval, Status: StatusApprovalRequired, Approval: row.terms}, Outcome{})
		require.NoError(t, err)
		require.Len(t, c.Approvals, row.changes, name)
		for _, a := range c.Approvals {
			assert.Equal(t, Pending, a.State, name)
			assert.Equal(t, *row.terms, a.Terms, name)
		}
	}
}
