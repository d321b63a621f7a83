package dispatch

import (
	"fmt"
	"time"
)

// Terms are what an approval must meet. The zero value asks for one person, within the default limits.
type Terms struct {
	// Approvers is the number of distinct people; 0 means 1.
	Approvers int `json:"approvers,omitzero"`
	// DistinctFromActor refuses the vote of the actor on whose behalf the call was proposed.
	DistinctFromActor bool `json:"distinct_from_actor,omitzero"`
	// Lifetime is the most steps that a vote may grant, 1 to MaxLifetime; 0 means MaxLifetime.
	Lifetime int `json:"lifetime,omitzero"`
	// TTL is how long the approval can wait and be used, as a Go duration with its unit, at most MaxTTL; empty means DefaultTTL.
	TTL string `json:"ttl,omitzero"`
	// ReasonRequired refuses a vote that does not say why.
	ReasonRequired bool `json:"reason_required,omitzero"`
}

// Limits of approvals.
const (
	DefaultLifetime = 3
	MaxLifetime     = 10
	DefaultTTL      = 24 * time.Hour
	MaxTTL          = 30 * 24 * time.Hour
	MaxApprovers    = 10
)

func (t Terms) approvers() int { return max(t.Approvers, 1) }

func (t Terms) lifetime() int {
	if t.Lifetime == 0 {
		return MaxLifetime
	}
	return t.Lifetime
}

func (t Terms) ttl() time.Duration {
	if t.TTL == "" {
		return DefaultTTL
	}
	d, _ := time.ParseDuration(t.TTL) // check has parsed it
	return d
}

func (t Terms) check() error {
	if t.Approvers < 0 || t.Approvers > MaxApprovers {
		return fmt.Errorf("approval.approvers is %d; it must be 1 to %d", t.Approvers, MaxApprovers)
	}
	if t.Lifetime < 0 || t.Lifetime > MaxLifetime {
		return fmt.Errorf("approval.lifetime is %d; it must be 1 to %d steps", t.Lifetime, MaxLifetime)
	}
	if t.TTL != "" {
		d, err := time.ParseDuration(t.TTL)
		if err != nil || d <= 0 || d > MaxTTL {
			return fmt.Errorf("approval.ttl is %q; it must be a duration with its unit, above zero and at most %s", t.TTL, MaxTTL)
		}
	}
	return nil
}

// met says whether votes meet the terms: enough distinct people whose votes count, and no rejection.
func (t Terms) met(votes []Vote, actor string) bool {
	people := map[string]bool{}
	for _, v := range votes {
		if v.Decision != string(Approved) {
			return false
		}
		if t.counts(v, actor) {
			people[v.Reviewer] = true
		}
	}
	return len(people) >= t.approvers()
}

// counts says whether an approving vote is one that the terms accept.
func (t Terms) counts(v Vote, actor string) bool {
	return !(t.DistinctFromActor && v.Reviewer == actor) && !(t.ReasonRequired && v.Reason == "") && v.Lifetime <= t.lifetime()
}
