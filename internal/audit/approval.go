package audit

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// approval is an approval as the entries so far leave it.
type approval struct {
	task []byte // the name of its task
	// stand is the whole of it but the call, as an entry shows it, and call the digest of that.
	stand []byte
	call  merkle.Hash
	asked bool // a decision asked for it, so that the call is known
	used  int64
}

func (v *approval) pack(p *packer) {
	p.text(&v.task)
	p.text(&v.stand)
	p.hash(&v.call)
	p.flag(&v.asked)
	p.number(&v.used)
}

// The members of a stand.
const (
	sActor = iota
	sDefinition
	sExpiresAt
	sExpiresAtStep
	sID
	sMode
	sPolicyVersion
	sSignature
	sState
	sStep
	sTerms
	sVotes
	standMembers
)

var standNames = [standMembers]string{"actor", "definition", "expires_at", "expires_at_step", "id", "mode", "policy_version", "signature",
	"state", "step", "terms", "votes"}

// stand is one reading of an approval in a text.
type stand struct {
	*doc
	n  int32
	at [standMembers]int32
}

func standIn(d *doc, n int32) stand {
	s := stand{doc: d, n: n}
	d.pick(n, standNames[:], s.at[:])
	return s
}

func (s stand) raw(member int) []byte { return s.doc.raw(s.at[member]) }
func (s stand) str(member int) []byte { return s.doc.str(s.at[member]) }
func (s stand) state() string         { return string(s.str(sState)) }

// differs says whether any of some members is another in two stands.
func (s stand) differs(o stand, members ...int) bool {
	return slices.ContainsFunc(members, func(m int) bool { return !bytes.Equal(s.raw(m), o.raw(m)) })
}

// votes gives the votes of a stand.
func (s stand) votes() []vote { return votesIn(s.doc, s.at[sVotes]) }

// moves are what each kind of entry may do to an approval.
var moves = map[string][]string{
	"decision": {" pending", "approved pending", "pending pending", "approved consumed", "pending expired", "approved expired", "pending withdrawn", "approved withdrawn",
		"consumed consumed"}, // for which there is a code of its own, once something runs under it
	"review": {"pending pending", "pending approved", "pending rejected"},
	"reopen": {"pending pending", "approved pending", "rejected pending", "expired pending"},
	"expiry": {"pending expired", "approved expired"},
	"cancel": {"pending withdrawn", "approved withdrawn"},
	// Its call was never sent.
	"outcome": {"consumed approved", "consumed withdrawn"},
	"task":    {"pending withdrawn", "approved withdrawn"},
}

// stands reads how an entry leaves the approvals that it touches.
func (a *auditor) stands(t *task, e *entry, kind string) error {
	if kind == "review" || kind == "reopen" {
		if err := a.stand(t, e, kind, standIn(&e.doc, e.at[eApproval])); err != nil {
			return err
		}
	}
	for i := range e.elements(e.at[eApprovals]) {
		if err := a.stand(t, e, kind, standIn(&e.doc, i)); err != nil {
			return err
		}
	}
	if t.cancelled && len(t.open) > 0 {
		id, _, _ := bytes.Cut(t.open, []byte("\n"))
		a.at(e, AfterCancel, "the approval %s of a cancelled task can still be used", plainText(id))
		t.open = t.open[:0] // said once
	}
	return nil
}

// stand holds one approval after an entry against what it was before.
func (a *auditor) stand(t *task, e *entry, kind string, s stand) error {
	id := s.str(sID)
	v, err := a.approvals.get(a.joined(t.tenant, id))
	if err != nil {
		return err
	}
	task := bytes.Join([][]byte{t.tenant, t.id}, []byte{0})
	before := stand{doc: &a.old}
	if v == nil {
		if v, err = a.approvals.make(a.joined(t.tenant, id)); err != nil {
			return err
		}
		v.task = task
		a.asked(t, e, kind, s, v)
		err = a.old.scan([]byte("null"))
	} else {
		err = a.old.scan(v.stand)
		before = standIn(&a.old, 1)
		if before.differs(s, sSignature, sActor, sDefinition, sMode, sStep) || !bytes.Equal(v.task, task) {
			a.at(e, ApprovalOfAnotherCall, "the approval %s becomes one of another call", plainText(id))
		}
	}
	if err != nil {
		return err
	}
	state := s.state()
	if !slices.Contains(moves[kind], before.state()+" "+state) {
		a.at(e, ApprovalMove, "the approval %s goes from %q to %q", plainText(id), before.state(), state)
	}
	if state == "consumed" {
		t.consumed, t.owed = append(t.consumed[:0], id...), !t.begun
		if !t.allowed {
			a.at(e, ApprovalMove, "the approval %s is consumed, and nothing is allowed", plainText(id))
		}
	}
	if state != "pending" && kind != "review" && before.state() != "" &&
		before.differs(s, sExpiresAt, sExpiresAtStep, sPolicyVersion, sTerms) {
		a.at(e, ApprovalChanged, "the approval %s is changed as it is closed", plainText(id))
	}
	a.voted(e, kind, before, s)
	if state == "approved" && !termsIn(s.doc, s.at[sTerms]).met(s.votes(), s.str(sActor)) {
		a.at(e, TermsNotMet, "the approval %s is approved, and its votes do not meet its terms", plainText(id))
	}
	v.stand = append(v.stand[:0], s.doc.raw(s.n)...)
	t.nowOpen(id, state == "pending" || state == "approved")
	return nil
}

// asked holds a new approval against the decision that asks for it.
func (a *auditor) asked(t *task, e *entry, kind string, s stand, v *approval) {
	if kind != "decision" || string(t.effect) != "require_approval" || s.count(s.at[sStep]) != e.step || len(t.signature) == 0 || !bytes.Equal(t.signature, s.str(sSignature)) {
		a.at(e, ApprovalUnasked, "the approval %s begins without a decision that asks for it", plainText(s.str(sID)))
		return
	}
	v.asked, v.call = true, a.call(e)
}

// call is the digest of the call that a decision is of, as tables show it.
func (a *auditor) call(e *entry) (sum merkle.Hash) {
	var in [inputMembers]int32
	var call [callMembers]int32
	e.pick(e.at[eInput], inputNames[:], in[:])
	e.pick(in[iCall], callNames[:], call[:])
	h := sha256.New()
	for _, part := range [...][]byte{[]byte(`{"arguments":`), e.doc.raw(call[cArguments]), []byte(`,"call_id":`), e.raw(eCallID), []byte(`,"tool":`), e.doc.raw(call[cTool]), []byte(`}`)} {
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

// voted holds the votes on an approval against what people said.
func (a *auditor) voted(e *entry, kind string, before, s stand) {
	wrong := false
	switch kind {
	case "reopen":
		wrong = string(s.raw(sVotes)) != "[]"
	case "review":
		votes, want := s.votes(), before.votes()
		want = slices.DeleteFunc(want, func(v vote) bool { return bytes.Equal(v.reviewer, e.str(eReviewer)) })
		last := len(votes) - 1
		if last < 0 || !bytes.Equal(votes[last].reviewer, e.str(eReviewer)) || !bytes.Equal(votes[last].decision, e.str(eDecision)) {
			a.at(e, VoteNotGiven, "the vote of %s is not counted", plainText(e.str(eReviewer)))
			return
		}
		wrong = !slices.EqualFunc(want, votes[:last], func(x, y vote) bool { return bytes.Equal(x.raw, y.raw) })
	default:
		wrong = before.differs(s, sVotes) && !(before.state() == "" && string(s.raw(sVotes)) == "[]")
	}
	if wrong {
		a.at(e, VoteNotGiven, "the approval %s gets or loses votes that nobody gave", plainText(s.str(sID)))
	}
}

// nowOpen remembers whether an approval waits or can be used.
func (t *task) nowOpen(id []byte, open bool) {
	line := append(slices.Clone(id), '\n')
	i := -1
	for at := 0; at < len(t.open); at += bytes.IndexByte(t.open[at:], '\n') + 1 {
		if bytes.HasPrefix(t.open[at:], line) {
			i = at
			break
		}
	}
	switch {
	case open && i < 0:
		t.open = append(t.open, line...)
	case !open && i >= 0:
		t.open = slices.Delete(t.open, i, i+len(line))
	}
}

// used holds the approval under which something ran, or was begun, against the call and against the people who gave it.
func (a *auditor) used(t *task, e *entry, under []byte) error {
	v, err := a.approvals.get(a.joined(t.tenant, under))
	if err != nil {
		return err
	}
	id := plainText(under)
	if v == nil {
		a.at(e, EffectWithoutApproval, "it ran under an approval that nobody asked for")
		return nil
	}
	if v.used++; v.used > 1 {
		a.at(e, ApprovalUsedTwice, "the approval %s is used a second time", id)
	}
	if !bytes.Equal(t.consumed, under) {
		a.at(e, EffectWithoutApproval, "the approval %s is not consumed with it", id)
	}
	if err := a.old.scan(v.stand); err != nil {
		return err
	}
	s := standIn(&a.old, 1)
	ofCall := e.str(eSignature)
	if ofCall == nil { // a decision has it in its input
		ofCall = t.signature
	}
	if !bytes.Equal(s.str(sSignature), ofCall) || !bytes.Equal(s.str(sMode), t.mode) || !bytes.Equal(s.str(sActor), e.str(eActor)) ||
		!bytes.Equal(v.task, bytes.Join([][]byte{t.tenant, t.id}, []byte{0})) {
		a.at(e, ApprovalOfAnotherCall, "the approval %s is of another call", id)
	}
	if e.step > s.count(s.at[sExpiresAtStep]) || bytes.Compare(e.str(eTime), s.str(sExpiresAt)) > 0 {
		a.at(e, ApprovalPastLimits, "the approval %s was past its limits", id)
	}
	terms := terms{}
	if len(t.terms) > 0 {
		var d doc
		if err := d.scan(t.terms); err != nil {
			return err
		}
		terms = termsIn(&d, 1)
	}
	votes := s.votes()
	if !terms.met(votes, s.str(sActor)) {
		a.at(e, TermsNotMet, "the votes for the approval %s do not meet the terms of its decision", id)
	}
	var voters []byte
	for i, v := range votes {
		voters = append(append(voters, "[,"[min(i, 1)], '"'), v.reviewer...)
		voters = append(voters, '"')
	}
	voters = append(voters, ']')
	if !bytes.Equal(voters, e.raw(eReviewers)) || len(t.reviewers) > 0 && !bytes.Equal(voters, t.reviewers) {
		a.at(e, VoteNotGiven, "it names other reviewers than voted")
	}
	return nil
}
