package dispatch

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Terms are what an approval must meet. The zero value asks for one person, within the default limits.
type Terms struct {
	// Approvers is the number of distinct people; 0 means 1.
	Approvers int `json:"approvers,omitzero"`
	// Roles are those of which every reviewer needs one, in order; nil means that none is needed.
	Roles []string `json:"roles,omitzero"`
	// Stages are each complete before the next begins; nil means that there are none.
	Stages []Stage `json:"stages,omitzero"`
	// DistinctFromActor refuses the vote of the actor on whose behalf the call was proposed.
	DistinctFromActor bool `json:"distinct_from_actor,omitzero"`
	// Lifetime is the most steps that a vote may grant, 1 to MaxLifetime; 0 means MaxLifetime.
	Lifetime int `json:"lifetime,omitzero"`
	// TTL is how long the approval can wait and be used, as a Go duration with its unit, at most MaxTTL; empty means DefaultTTL.
	TTL string `json:"ttl,omitzero"`
	// ReasonRequired refuses a vote that does not say why.
	ReasonRequired bool `json:"reason_required,omitzero"`
}

// Stage is a part of an approval.
type Stage struct {
	Name string `json:"name"`
	// Approvers is the number of distinct people; 0 means 1.
	Approvers int `json:"approvers,omitzero"`
	// Roles are those of which a reviewer needs one in this stage, beside one of the terms'.
	Roles []string `json:"roles,omitzero"`
}

// Limits of approvals.
const (
	DefaultLifetime = 3
	MaxLifetime     = 10
	DefaultTTL      = 24 * time.Hour
	MaxTTL          = 30 * 24 * time.Hour
	MaxApprovers    = 10
	MaxStages       = 10
)

func (t Terms) approvers() int { return max(t.Approvers, 1) }

func (s Stage) approvers() int { return max(s.Approvers, 1) }

// needed is how many people it takes at least.
func (t Terms) needed() int {
	n := 0
	for _, s := range t.Stages {
		n += s.approvers()
	}
	return max(n, t.approvers())
}

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

// equal compares terms that are in order.
func (t Terms) equal(other Terms) bool { return reflect.DeepEqual(t, other) }

// inOrder sorts the roles, which are sets: equal terms then look alike wherever they are kept or compared.
func (t Terms) inOrder() Terms {
	t.Roles, t.Stages = slices.Clone(t.Roles), slices.Clone(t.Stages)
	slices.Sort(t.Roles)
	for i := range t.Stages {
		t.Stages[i].Roles = slices.Clone(t.Stages[i].Roles)
		slices.Sort(t.Stages[i].Roles)
	}
	return t
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
	if err := checkRoles("approval.roles", t.Roles); err != nil {
		return err
	}
	return t.checkStages()
}

func (t Terms) checkStages() error {
	if t.Stages != nil && len(t.Stages) == 0 || len(t.Stages) > MaxStages {
		return fmt.Errorf("approval.stages has %d members; it must have 1 to %d, or be left out", len(t.Stages), MaxStages)
	}
	names := map[string]bool{}
	for i, s := range t.Stages {
		switch {
		case s.Name == "":
			return fmt.Errorf("approval.stages[%d] has no name", i)
		case names[s.Name]:
			return fmt.Errorf("approval.stages names %q twice", s.Name)
		case s.Approvers < 0 || s.Approvers > MaxApprovers:
			return fmt.Errorf("approval.stages[%d].approvers is %d; it must be 1 to %d", i, s.Approvers, MaxApprovers)
		}
		if err := checkRoles(fmt.Sprintf("approval.stages[%d].roles", i), s.Roles); err != nil {
			return err
		}
		names[s.Name] = true
	}
	return nil
}

// checkRoles also refuses an empty list: it would mean that nobody may, and be read as everybody.
func checkRoles(at string, roles []string) error {
	if roles != nil && len(roles) == 0 {
		return errors.New(at + " names no role; leave it out where none is needed")
	}
	seen := map[string]bool{}
	for _, r := range roles {
		if r == "" {
			return errors.New(at + " names an empty role")
		}
		if seen[r] {
			return fmt.Errorf("%s names %q twice", at, r)
		}
		seen[r] = true
	}
	return nil
}
