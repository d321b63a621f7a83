package audit

import (
	"bytes"
	"slices"
)

// terms are what the votes on an approval must meet.
type terms struct {
	approvers, lifetime int64
	roles               [][]byte
	stages              []stage
	distinct, reason    bool
}

type stage struct {
	name      []byte
	approvers int64
	roles     [][]byte
}

type vote struct {
	raw, reviewer, decision, reason, stage []byte
	roles                                  [][]byte
	lifetime                               int64
}

var (
	termNames  = [...]string{"approvers", "distinct_from_actor", "lifetime", "reason_required", "roles", "stages"}
	stageNames = [...]string{"approvers", "name", "roles"}
	voteNames  = [...]string{"decision", "lifetime", "reason", "reviewer", "roles", "stage"}
)

// mostLifetime is the lifetime that terms allow which name none.
const mostLifetime = 10

func termsIn(d *doc, n int32) terms {
	var at [len(termNames)]int32
	d.pick(n, termNames[:], at[:])
	t := terms{approvers: max(d.count(at[0]), 1), distinct: d.isTrue(at[1]), lifetime: d.count(at[2]), reason: d.isTrue(at[3]), roles: d.texts(at[4])}
	if t.lifetime == 0 {
		t.lifetime = mostLifetime
	}
	for s := range d.elements(at[5]) {
		var at [len(stageNames)]int32
		d.pick(s, stageNames[:], at[:])
		t.stages = append(t.stages, stage{d.str(at[1]), max(d.count(at[0]), 1), d.texts(at[2])})
	}
	return t
}

func votesIn(d *doc, n int32) (votes []vote) {
	for v := range d.elements(n) {
		var at [len(voteNames)]int32
		d.pick(v, voteNames[:], at[:])
		votes = append(votes, vote{raw: d.raw(v), decision: d.str(at[0]), lifetime: d.count(at[1]), reason: d.str(at[2]), reviewer: d.str(at[3]), roles: d.texts(at[4]), stage: d.str(at[5])})
	}
	return votes
}

// elements goes through the values of an array.
func (d *doc) elements(n int32) func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		if d.kind(n) != '[' {
			return
		}
		for i, end := d.inside(n); i < end; i = d.nodes[i].next {
			if !yield(i) {
				return
			}
		}
	}
}

func (d *doc) texts(n int32) (out [][]byte) {
	for i := range d.elements(n) {
		out = append(out, d.str(i))
	}
	return out
}

// met says whether votes are enough: of distinct people, all for it, and in each stage, which is complete before the next
// begins. Terms that name no number want one person.
func (t terms) met(votes []vote, actor []byte) bool {
	if slices.ContainsFunc(votes, func(v vote) bool { return string(v.decision) != "approved" }) {
		return false
	}
	stages := t.stages
	if len(stages) == 0 {
		stages = []stage{{approvers: 1}}
	}
	people := map[string]bool{}
	for _, s := range stages {
		in, complete := map[string]bool{}, 0
		for i, v := range votes {
			if t.accepts(v, actor) && (len(t.stages) == 0 || bytes.Equal(v.stage, s.name)) && holdsOne(v.roles, s.roles) {
				people[string(v.reviewer)], in[string(v.reviewer)] = true, true
				if int64(len(in)) == s.approvers && complete == 0 {
					complete = i + 1
				}
			}
		}
		if complete == 0 {
			return false
		}
		votes = votes[complete:]
		if len(t.stages) == 0 {
			break
		}
	}
	return int64(len(people)) >= max(t.approvers, 1)
}

// accepts says whether a vote is one that the terms as a whole count.
func (t terms) accepts(v vote, actor []byte) bool {
	return !(t.distinct && bytes.Equal(v.reviewer, actor)) && !(t.reason && len(v.reason) == 0) && (t.lifetime == 0 || v.lifetime <= t.lifetime) && holdsOne(v.roles, t.roles)
}

func holdsOne(roles, wanted [][]byte) bool {
	return len(wanted) == 0 || slices.ContainsFunc(roles, func(r []byte) bool {
		return slices.ContainsFunc(wanted, func(w []byte) bool { return bytes.Equal(r, w) })
	})
}
