package audit

import (
	"fmt"
)

// task is a task as the entries so far leave it.
type task struct {
	tenant, id               []byte
	profile, actor, deadline []byte
	updated                  []byte
	revision                 int64
	// spent counts cost, attempts and bytes of output.
	spent     [3]int64
	cancelled bool

	at    spot
	leaf  int64 // of the last entry
	seen  [mostSeen]seen
	reads int64
	// gap is where the last entries of the task are gone from: after one spot, before another, which stands at a leaf.
	gap struct {
		after, before spot
		leaf          int64
	}
	blind int64                    // a step whose decision could not be read
	lost  struct{ from, to int64 } // steps of which nothing could be read, or all is gone
	after int64                    // the leaf of the last entry before which something could not be read, or is gone

	// flight are the calls of outside tools without an outcome.
	flight []byte
	// owes is the step of a call of an outside tool of which the entry at the leaf owedAt says that it took place, so that its
	// action follows, or may; -1 if there is none.
	owes, owedAt  int64
	must, settled bool // settled says that the entry is a settlement

	// open are the ids of approvals that wait or can be used, each behind a line feed.
	open []byte
	decided
}

// decided is the decision of the present step, as far as what runs under it needs it.
type decided struct {
	decision, decidedStep int64 // its leaf, -1 before the first
	acted                 bool
	// allowed says that the call may run, resumed that it may as the repetition of one whose outcome was not known, and owed that
	// it ran: its action must follow.
	allowed, resumed, owed bool
	// ran says that the call ran, by the status that the caller got.
	ran           bool
	hasTool       bool
	write, always bool
	// outside says that the tool is not in the process of govern, and begun that its call was begun.
	outside, begun bool

	effect, version, callID, tool, signature, target, by, mode []byte
	operation, reviewers, terms                                []byte
	// consumed is the approval that was used up with the decision.
	consumed []byte
}

// nowhere is where a task stands before its first entry.
var nowhere = spot{0, -1}

func (s spot) String() string {
	if s == nowhere {
		return "nothing"
	}
	return fmt.Sprintf("%d.%d", s.step, s.n)
}

// unknown says that nobody could read what the decision of a step began.
func (t *task) unknown(step int64) bool {
	return step == t.blind || t.lost.from <= step && step <= t.lost.to
}

func (t *task) begin(e *entry) {
	t.tenant, t.id = append(t.tenant, e.str(eTenant)...), append(t.id, e.str(eTask)...)
	t.at, t.leaf, t.decision, t.blind, t.after, t.owes = nowhere, -1, -1, -1, -1, -1
	t.lost.to = -1
}

// operators says that this is no task: what operators do without one is kept in its place.
func (t *task) operators() bool { return len(t.tenant) == 0 && len(t.id) == 0 }

func (t *task) pack(p *packer) {
	for _, v := range []*[]byte{&t.tenant, &t.id, &t.profile, &t.actor, &t.deadline, &t.updated, &t.open, &t.flight} {
		p.text(v)
	}
	for _, v := range []*int64{&t.revision, &t.spent[0], &t.spent[1], &t.spent[2], &t.at.step, &t.at.n, &t.leaf, &t.reads, &t.gap.after.step, &t.gap.after.n, &t.gap.before.step, &t.gap.before.n, &t.gap.leaf, &t.blind, &t.lost.from, &t.lost.to, &t.after, &t.owes, &t.owedAt} {
		p.number(v)
	}
	for _, v := range []*bool{&t.cancelled, &t.must, &t.settled} {
		p.flag(v)
	}
	for i := range t.seen {
		s := &t.seen[i]
		p.number(&s.step)
		p.number(&s.n)
		p.hash(&s.hash)
	}
	t.decided.pack(p)
}

func (d *decided) pack(p *packer) {
	for _, v := range []*[]byte{&d.effect, &d.version, &d.callID, &d.tool, &d.signature, &d.target, &d.by, &d.mode, &d.operation, &d.reviewers, &d.terms, &d.consumed} {
		p.text(v)
	}
	for _, v := range []*int64{&d.decision, &d.decidedStep} {
		p.number(v)
	}
	for _, v := range []*bool{&d.acted, &d.allowed, &d.resumed, &d.owed, &d.ran, &d.hasTool, &d.write, &d.always, &d.outside, &d.begun} {
		p.flag(v)
	}
}
