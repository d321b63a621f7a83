package dispatch

import (
	"fmt"
	"slices"
	"strings"
)

// tally is how far the votes on an approval have come under terms. The policy counts in the same way, and a test holds
// the two against each other.
type tally struct {
	// counts says of each vote whether it counts.
	counts []bool
	// people counts the distinct reviewers whose votes count, and stages those of each stage.
	people int
	stages []int
	// against says that a vote rejects.
	against bool
}

func (t Terms) tally(votes []Vote, actor string) tally {
	out := tally{counts: make([]bool, len(votes)), stages: make([]int, len(t.Stages))}
	people := map[string]bool{}
	for i, v := range votes {
		out.against = out.against || v.Decision != string(Approved)
		if len(t.Stages) == 0 && t.accepts(v, actor) {
			out.counts[i], people[v.Reviewer] = true, true
		}
	}
	begins := 0
	for s, stage := range t.Stages {
		of, next := map[string]bool{}, 0
		for i := begins; i < len(votes); i++ {
			v := votes[i]
			if v.Stage != stage.Name || !t.accepts(v, actor) || !holds(v.Roles, stage.Roles) {
				continue
			}
			out.counts[i], people[v.Reviewer], of[v.Reviewer] = true, true, true
			if next == 0 && len(of) >= stage.approvers() {
				next = i + 1
			}
		}
		out.stages[s] = len(of)
		if next == 0 {
			break // the next stage has not begun
		}
		begins = next
	}
	out.people = len(people)
	return out
}

// accepts says whether an approving vote is one that the terms as a whole accept.
func (t Terms) accepts(v Vote, actor string) bool {
	return v.Decision == string(Approved) && !(t.DistinctFromActor && v.Reviewer == actor) && !(t.ReasonRequired && v.Reason == "") &&
		v.Lifetime <= t.lifetime() && holds(v.Roles, t.Roles)
}

// holds says whether roles have one of those that are wanted.
func holds(roles, wanted []string) bool {
	return len(wanted) == 0 || slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(wanted, r) })
}

// met says whether votes meet the terms: enough distinct people whose votes count, also in each stage, and no rejection.
func (t Terms) met(votes []Vote, actor string) bool {
	n := t.tally(votes, actor)
	return !n.against && n.people >= t.approvers() && !slices.ContainsFunc(t.open(n), func(open bool) bool { return open })
}

// open says of each stage whether it is not complete.
func (t Terms) open(n tally) []bool {
	out := make([]bool, len(t.Stages))
	for i, s := range t.Stages {
		out[i] = n.stages[i] < s.approvers()
	}
	return out
}

// stage is the one that the next vote is for: the first that is not complete. Where all are, and the terms want more
// people than that, they are people of the last.
func (t Terms) stage(n tally) (Stage, bool) {
	if len(t.Stages) == 0 {
		return Stage{}, false
	}
	i := slices.Index(t.open(n), true)
	if i < 0 {
		i = len(t.Stages) - 1
	}
	return t.Stages[i], true
}

// Progress is how far an approval has come, for whoever waits for it or votes next.
type Progress struct {
	// Votes counts the people whose approvals count, and Needed those that it takes.
	Votes  int `json:"votes"`
	Needed int `json:"needed"`
	// Roles are those of which every reviewer needs one.
	Roles []string `json:"roles,omitzero"`
	// Stages are in order, and Stage is the name of the one that waits for a vote.
	Stages []StageProgress `json:"stages,omitzero"`
	Stage  string          `json:"stage,omitzero"`
}

// StageProgress is how far a stage has come.
type StageProgress struct {
	Name   string   `json:"name"`
	Votes  int      `json:"votes"`
	Needed int      `json:"needed"`
	Roles  []string `json:"roles,omitzero"`
}

// Progress counts an approval's votes under its terms.
func (a *Approval) Progress() Progress {
	n := a.Terms.tally(a.Votes, a.Actor)
	out := Progress{Votes: n.people, Needed: a.Terms.needed(), Roles: a.Terms.Roles}
	for i, s := range a.Terms.Stages {
		out.Stages = append(out.Stages, StageProgress{Name: s.Name, Votes: n.stages[i], Needed: s.approvers(), Roles: s.Roles})
	}
	if s, ok := a.Terms.stage(n); ok && a.State == Pending {
		out.Stage = s.Name
	}
	return out
}

// Complete says that the votes meet the terms. An approval that is pending all the same was asked for under stricter ones;
// people must say so, and not a rule that was eased.
func (p Progress) Complete() bool {
	return p.Votes >= p.Needed && !slices.ContainsFunc(p.Stages, func(s StageProgress) bool { return s.Votes < s.Needed })
}

// Counted names the people whose approvals count, and who therefore cannot approve again.
func (a *Approval) Counted() []string {
	n := a.Terms.tally(a.Votes, a.Actor)
	var out []string
	for i, v := range a.Votes {
		if n.counts[i] {
			out = append(out, v.Reviewer)
		}
	}
	return out
}

// roleError says that a reviewer holds none of the roles of a list.
func roleError(wanted []string, stage string) error {
	where := "this approval"
	if stage != "" {
		where = fmt.Sprintf("the stage %q of this approval", stage)
	}
	return &Error{Refused, ErrReviewRole.Code, fmt.Sprintf("%s needs a reviewer with the role %s; the configuration's reviewers say who holds it",
		where, strings.Join(wanted, " or "))}
}
