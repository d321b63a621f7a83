package dispatch

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Errors of what people do. Each changes nothing.
var (
	ErrReviewDecision   = &Error{Misuse, "review_decision", `a review says "approved" or "rejected", and nothing else`}
	ErrReviewLifetime   = &Error{Misuse, "review_lifetime", "the lifetime of an approval is a whole number of steps"}
	ErrReviewReason     = &Error{Misuse, "review_reason", "this approval needs a reason with every vote; give one with --reason"}
	ErrReviewText       = &Error{Misuse, "review_text", "the reason is not UTF-8; write it again"}
	ErrReviewCancelled  = &Error{Refused, "task_cancelled", "the task was cancelled; nothing of it can be reviewed or reopened any more"}
	ErrNothingPending   = &Error{Refused, "nothing_pending", "no pending approval matches this call exactly; list what waits with govern review list"}
	ErrAlreadyReviewed  = &Error{Refused, "already_reviewed", "the approval does not wait for a vote any more"}
	ErrApprovalExpired  = &Error{Refused, "approval_expired", "the approval passed its limit unanswered; a person can reopen it with govern review reopen"}
	ErrSignatureDiffers = &Error{Refused, "signature_differs", "the signature is not that of this approval; show it again and review what is shown"}
	ErrProposalDiffers  = &Error{Broken, "proposal_differs", "the stored call is not the one that was signed: the state was changed by hand or is damaged; restore it from a backup"}
	ErrSelfReview       = &Error{Refused, "self_review", "this approval needs somebody other than the actor who proposed the call"}
	ErrReviewRole       = &Error{Refused, "review_role", "the reviewer holds none of the roles that this approval needs now"}
	ErrAlreadyVoted     = &Error{Refused, "already_voted", "this reviewer has voted on the approval already; it needs distinct people"}
	ErrReplaced         = &Error{Refused, "replaced", "the call was asked for again since, under another approval; list what waits with govern review list"}
	ErrDefinition       = &Error{Refused, "definition_changed", "the tool's definition has changed since the call was asked for; the call must be proposed again, and reviewed as what the tool is now"}
	ErrNotReopenable    = &Error{Refused, "not_reopenable", "only a rejected or expired approval can be reopened"}
)

// Review is one person's word on one approval.
type Review struct {
	Reviewer string
	// Roles that the reviewer holds, as the door knows them; never what the agent says.
	Roles []string
	// Decision is "approved" or "rejected".
	Decision string
	// Lifetime in steps, 1 to MaxLifetime, counted from the vote that completes the approval; nil means
	// DefaultLifetime, or less where the terms allow only less.
	Lifetime *int
	Reason   string
}

// begin starts a commit that changes a task without counting a step.
func begin(t Task, now time.Time) Commit {
	c := Commit{Revision: t.Revision, Task: t}
	c.Task.Revision++
	c.Task.Updated = now
	return c
}

func nextReview(t Task, a Approval, r Review, now time.Time) (Commit, error) {
	if err := r.check(a.Terms); err != nil {
		return Commit{}, err
	}
	switch {
	case a.State != Pending:
		return Commit{}, &Error{Refused, ErrAlreadyReviewed.Code, fmt.Sprintf("the approval is %s, and does not wait for a vote any more", a.State)}
	case a.lapsed(t.Steps+1, now):
		return Commit{}, ErrApprovalExpired
	}
	vote := Vote{Reviewer: r.Reviewer, Roles: r.roles(), Decision: r.Decision, Reason: r.Reason, Time: FormatTime(now)}
	if r.Decision == string(Approved) {
		if err := vote.enter(a, r); err != nil {
			return Commit{}, err
		}
	}
	c := begin(t, now)
	c.change(&a, func(a *Approval) {
		// A vote that does not count under the present terms gives way to its reviewer's next word.
		a.Votes = append(without(a.Votes, r.Reviewer), vote)
		switch {
		case r.Decision == string(Rejected):
			a.State = Rejected
		case a.Terms.met(a.Votes, a.Actor):
			a.State = Approved
			a.ExpiresAtStep = t.Steps + shortest(a.Votes)
		}
	})
	return c, c.recordReview(KindReview, r, now)
}

// enter makes an approving vote one that counts: in the stage that waits, and from somebody whose word is taken there.
// A rejection needs none of that, since it only narrows.
func (v *Vote) enter(a Approval, r Review) error {
	terms := a.Terms
	if terms.DistinctFromActor && r.Reviewer == a.Actor {
		return ErrSelfReview
	}
	n := terms.tally(a.Votes, a.Actor)
	for i, old := range a.Votes {
		if old.Reviewer == r.Reviewer && n.counts[i] && !terms.met(a.Votes, a.Actor) {
			return ErrAlreadyVoted // unless the votes that were kept meet terms that were eased since
		}
	}
	n = terms.tally(without(a.Votes, r.Reviewer), a.Actor)
	stage, _ := terms.stage(n)
	switch {
	case !holds(v.Roles, terms.Roles):
		return roleError(terms.Roles, "")
	case !holds(v.Roles, stage.Roles):
		return roleError(stage.Roles, stage.Name)
	}
	v.Stage, v.Lifetime = stage.Name, r.lifetime(terms)
	return nil
}

// without gives the votes of everybody else.
func without(votes []Vote, reviewer string) []Vote {
	return slices.DeleteFunc(slices.Clone(votes), func(v Vote) bool { return v.Reviewer == reviewer })
}

// roles are the reviewer's as a vote records them: a set in order, nil if there are none.
func (r Review) roles() []string {
	return slices.Compact(slices.Sorted(slices.Values(r.Roles)))
}

// shortest is the least lifetime that any vote granted.
func shortest(votes []Vote) int {
	n := MaxLifetime
	for _, v := range votes {
		n = min(n, v.Lifetime)
	}
	return n
}

func (r Review) check(terms Terms) error {
	if r.Decision != string(Approved) && r.Decision != string(Rejected) {
		return ErrReviewDecision
	}
	if n := r.Lifetime; n != nil && (*n < 1 || *n > terms.lifetime()) {
		return &Error{Misuse, ErrReviewLifetime.Code, fmt.Sprintf("the lifetime is %d; give 1 to %d steps", *n, terms.lifetime())}
	}
	if terms.ReasonRequired && r.Reason == "" {
		return ErrReviewReason
	}
	return checkReason(r.Reason)
}

// checkReason refuses what no record could hold as it was written.
func checkReason(reason string) error {
	if !utf8.ValidString(reason) {
		return ErrReviewText
	}
	return nil
}

func (r Review) lifetime(terms Terms) int {
	if r.Lifetime != nil {
		return *r.Lifetime
	}
	return min(DefaultLifetime, terms.lifetime())
}

func (c *Commit) recordReview(kind Kind, r Review, now time.Time) error {
	a := c.Approvals[0].Approval
	e := ReviewEntry{Reviewer: r.Reviewer, Decision: r.Decision, CallID: a.CallID(), Actor: a.Actor, Reason: r.Reason, Approval: standOf(a)}
	return c.record(kind, now, &e.EntryHeader, &e)
}

func nextReopen(t Task, a Approval, reviewer, reason string, now time.Time) (Commit, error) {
	if err := checkReason(reason); err != nil {
		return Commit{}, err
	}
	switch {
	case a.lapsed(t.Steps+1, now):
	case a.State != Rejected && a.State != Expired:
		return Commit{}, &Error{Refused, ErrNotReopenable.Code, fmt.Sprintf("the approval is %s; %s", a.State, ErrNotReopenable.Message)}
	}
	c := begin(t, now)
	c.change(&a, func(a *Approval) {
		a.State, a.Votes, a.ExpiresAtStep = Pending, nil, 0
		a.ExpiresAt = now.Add(a.Terms.ttl())
	})
	return c, c.recordReview(KindReopen, Review{Reviewer: reviewer, Reason: reason}, now)
}

func nextCancel(t Task, open []Approval, by string, now time.Time) (Commit, error) {
	c := begin(t, now)
	c.Task.Cancelled = true
	for i := range open {
		c.change(&open[i], func(a *Approval) { a.State = Withdrawn })
	}
	e := ClosingEntry{By: by, Approvals: standsOf(c.Approvals)}
	return c, c.record(KindCancel, now, &e.EntryHeader, &e)
}

// nextExpiry closes the open approvals that are past their limits; false means that there are none.
func nextExpiry(t Task, open []Approval, now time.Time) (Commit, bool, error) {
	c := begin(t, now)
	for i := range open {
		if open[i].lapsed(t.Steps+1, now) {
			c.change(&open[i], func(a *Approval) { a.State = Expired })
		}
	}
	if len(c.Approvals) == 0 {
		return Commit{}, false, nil
	}
	e := ClosingEntry{Approvals: standsOf(c.Approvals)}
	return c, true, c.record(KindExpiry, now, &e.EntryHeader, &e)
}

func nextTask(t Task, withdrawn []Approval, by string, now time.Time) (Commit, error) {
	c := begin(t, now)
	for i := range withdrawn {
		c.change(&withdrawn[i], func(a *Approval) { a.State = Withdrawn })
	}
	e := TaskEntry{Profile: t.Profile, Actor: t.Actor, By: by, Approvals: standsOf(c.Approvals)}
	if !t.Deadline.IsZero() {
		e.Deadline = FormatTime(t.Deadline)
	}
	return c, c.record(KindTask, now, &e.EntryHeader, &e)
}
