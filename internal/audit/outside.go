package audit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
)

// A call of an outside tool is on record twice: as it is begun, before its first byte is sent, and as its outcome comes. In
// between other entries of the task may stand, and if the process died there is no outcome.

// start is a call of an outside tool as it was begun, and what is on record of it since.
type start struct {
	decided
	id   []byte // of the operation, of a write
	run  int64
	told bool // its outcome is on record
}

func (s *start) pack(p *packer) {
	s.decided.pack(p)
	p.text(&s.id)
	p.number(&s.run)
	p.flag(&s.told)
}

// The members of what a decision says was begun.
const (
	bDeadline = iota
	bDefinition
	bEffect
	bLease
	bOperation
	bOutput
	bOutward
	bRun
	begunMembers
)

var begunNames = [begunMembers]string{"deadline", "definition", "effect", "lease", "operation", "output", "outward", "run"}

// begun is what a decision says was begun.
type begun struct {
	*doc
	at [begunMembers]int32
}

func (e *entry) begun() begun {
	b := begun{doc: &e.doc}
	e.pick(e.at[eStarted], begunNames[:], b.at[:])
	return b
}

func (b begun) str(member int) []byte  { return b.doc.str(b.at[member]) }
func (b begun) count(member int) int64 { return b.doc.count(b.at[member]) }

// startName names a start in the cache.
func (a *auditor) startName(t *task, step int64) []byte {
	return a.joined(t.tenant, t.id, strconv.AppendInt(nil, step, 10))
}

// mayBegin says whether a decision begins a call if and only if it allows one of an outside tool, of which another is repeated
// only where its outcome is not known and the tool remembers it.
func (a *auditor) mayBegin(t *task, e *entry, standing int32) {
	switch status := string(e.str(eStatus)); {
	case t.begun && !(t.allowed && t.outside):
		a.at(e, StartDiffers, "a call was begun that is not allowed, or not of an outside tool")
	case !t.begun && (t.allowed && t.outside || t.resumed):
		a.at(e, StartDiffers, "it allows a call of an outside tool, and does not say what was begun")
	case t.begun != (status == "started"):
		a.at(e, StartDiffers, "its status %q does not go with what was begun", plainText(e.str(eStatus)))
	}
	if !t.resumed {
		return
	}
	var at [2]int32
	e.pick(standing, standingNames[:], at[:])
	if !t.write || !e.isTrue(at[0]) || string(e.doc.str(at[1])) != "unknown" {
		a.at(e, ResumeDiffers, "it resumes what is not known to be unknown and repeatable")
	}
}

// began reads a call of an outside tool as it is begun, once it is known which approval its decision used up.
func (a *auditor) began(t *task, e *entry) error {
	b := e.begun()
	if string(t.mode) != "enforce" {
		a.at(e, WriteInDryRun, "a call of an outside tool in a dry run")
	}
	if len(b.str(bLease)) == 0 || bytes.Compare(b.str(bDeadline), b.str(bLease)) >= 0 || bytes.Compare(e.str(eTime), b.str(bDeadline)) > 0 {
		a.at(e, StartDiffers, "its deadline does not lie between its time and the end of its lease")
	}
	switch {
	case len(t.consumed) > 0:
		if err := a.used(t, e, t.consumed); err != nil {
			return err
		}
	case !t.resumed && (len(t.terms) > 0 || t.always):
		a.at(e, EffectWithoutApproval, "it was begun without the approval that it demands")
	}
	t.takeOff(e.step, b.str(bLease), b.count(bOutput))
	name := a.startName(t, e.step)
	s, err := a.starts.get(name)
	if s == nil && err == nil {
		s, err = a.starts.make(name)
	}
	if err != nil {
		return err
	}
	var p packer
	t.decided.pack(&p) // the task goes on, and its texts with it
	*s = start{id: bytes.Clone(b.str(bOperation)), run: b.count(bRun)}
	s.decided.pack(&packer{b: p.b, reading: true})
	switch {
	case t.write:
		return a.beginOperation(t, e, b)
	case len(s.id) > 0 || s.run > 0:
		a.at(e, StartDiffers, "what only reads has no operation")
	}
	return nil
}

// takeOff remembers a call that is under way, and land that it is no more. Each is a line, of texts without control characters.
func (t *task) takeOff(step int64, lease []byte, output int64) {
	t.flight = fmt.Appendf(t.flight, "%d\t%s\t%d\n", step, lease, output)
}

func (t *task) land(step int64) {
	left := t.flight[:0]
	for line := range bytes.Lines(t.flight) {
		if !bytes.HasPrefix(line, fmt.Appendf(nil, "%d\t", step)) {
			left = append(left, line...)
		}
	}
	t.flight = left
}

// inFlight gives the calls under way as the table of tasks has them, nothing if there are none.
func (t *task) inFlight() []byte {
	if len(t.flight) == 0 {
		return nil
	}
	list := []byte("[")
	for line := range bytes.Lines(t.flight) {
		f := bytes.Split(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = fmt.Appendf(list, `{"lease":"%s",`, f[1])
		if string(f[2]) != "0" {
			list = fmt.Appendf(list, `"output":%s,`, f[2])
		}
		list = fmt.Appendf(list, `"step":%s}`, f[0])
	}
	return append(list, ']')
}

// reserved is what the calls under way may still give at a time.
func (t *task) reserved(now []byte) (sum int64) {
	for line := range bytes.Lines(t.flight) {
		f := bytes.Split(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		if bytes.Compare(now, f[1]) <= 0 {
			n, _ := strconv.ParseInt(string(f[2]), 10, 64)
			sum += n
		}
	}
	return sum
}

// alone holds a write that is allowed against those of its task that are under way.
func (a *auditor) alone(t *task, e *entry) error {
	for line := range bytes.Lines(t.flight) {
		step, rest, _ := bytes.Cut(line, []byte("\t"))
		lease, _, _ := bytes.Cut(rest, []byte("\t"))
		if bytes.Compare(e.str(eTime), lease) > 0 {
			continue
		}
		s, err := a.starts.get(a.joined(t.tenant, t.id, step))
		if err != nil {
			return err
		}
		if s == nil || !s.write {
			continue
		}
		o, err := a.operations.get(a.joined(t.tenant, s.id))
		if err != nil {
			return err
		}
		own := len(t.operation) > 0 && bytes.Equal(s.operation, t.operation) && bytes.Equal(s.by, t.by)
		if !own && o != nil && string(o.state) == "started" && o.run == s.run {
			a.at(e, WritesOverlap, "a write is allowed while that of the step %s is under way", step)
		}
	}
	return nil
}

// affords holds a call that is allowed against the budgets, before it is counted.
func (a *auditor) affords(t *task, e *entry, budgets int32, cost int64) {
	var at [3]int32
	e.pick(budgets, budgetNames[:], at[:])
	taken := [3]int64{t.spent[1] + 1, t.spent[0] + cost, t.spent[2] + t.reserved(e.str(eTime)) + 1}
	for i, budget := range at {
		var limit [1]int32
		e.pick(budget, limitName[:], limit[:])
		if most, stated := e.number(limit[0]); stated && taken[i] > most {
			a.at(e, BudgetExceeded, "it is allowed, and the budget of %s is spent", budgetNames[i])
		}
	}
}

// outcome reads what came of a call that was begun.
func (a *auditor) outcome(t *task, e *entry) error {
	dispatch := e.count(e.at[eDispatch])
	s, err := a.starts.get(a.startName(t, dispatch))
	switch {
	case err != nil:
		return err
	case s == nil && t.unknown(dispatch):
		return nil
	case s == nil:
		a.at(e, OutcomeWithoutStart, "no decision of the step %d began a call", dispatch)
		return nil
	case s.told:
		a.at(e, OutcomeTwice, "a second outcome of the call of the step %d", dispatch)
		return nil
	}
	s.told = true
	t.land(dispatch)
	if !s.calls(e) || !bytes.Equal(s.id, e.str(eOperation)) || s.run != e.count(e.at[eRun]) {
		a.at(e, OutcomeDiffers, "not of the call that the step %d began", dispatch)
	}
	if s.write {
		err = a.came(t, e, s)
	} else {
		a.heard(t, e)
	}
	if err != nil {
		return err
	}
	return a.returned(t, e, s)
}

// calls says whether an entry is of the call of a decision.
func (d *decided) calls(e *entry) bool { return d.callsAs(e, d.callID) }

// callsAs is calls for an entry that names the call by the id of another attempt.
func (d *decided) callsAs(e *entry, callID []byte) bool {
	return bytes.Equal(callID, e.str(eCallID)) && bytes.Equal(d.tool, e.str(eTool)) && bytes.Equal(d.by, e.str(eActor)) && bytes.Equal(d.target, e.str(eTarget))
}

// heard reads the outcome of what only reads.
func (a *auditor) heard(t *task, e *entry) {
	status := string(e.str(eStatus))
	if e.at[eState] != 0 || e.at[eLate] != 0 || status == "outcome_unknown" {
		a.at(e, OutcomeDiffers, "what only reads has no operation whose outcome could be late or unknown")
	}
	if status == "ok" || status == "invalid_result" { // an answer that breaks the rules may be one
		t.owe(e, status == "ok")
	}
}

// came reads the outcome of a write, which leaves its operation somewhere else.
func (a *auditor) came(t *task, e *entry, s *start) error {
	o, err := a.operations.get(a.joined(t.tenant, s.id))
	if o == nil || err != nil {
		return err // the start named another operation, which was said
	}
	state, status, late := e.str(eState), string(e.str(eStatus)), e.isTrue(e.at[eLate])
	from, by := string(o.state), "outcome"
	switch {
	case o.run != s.run:
		by = "anew"
	case from == "absent" || from == "committed":
		by = "late"
	}
	if late != (by != "outcome") {
		a.at(e, OutcomeDiffers, "late is %t, and the operation is %s in its run %d", late, plainText(o.state), o.run)
	}
	ran := status == "ok" || status == "invalid_result"
	// That a repetition did nothing does not say what the call before did.
	unknown := status == "outcome_unknown" || s.resumed && !ran
	if by == "outcome" && (ran != (string(state) == "committed") || unknown != (string(state) == "unknown")) || by == "late" && ran && string(state) != "committed" {
		a.at(e, OutcomeDiffers, "its status %s does not go with the state %s", plainText(e.str(eStatus)), plainText(state))
	}
	a.moveFrom(e, s.id, from, by, string(state))
	if ran && !(by == "late" && from == "committed") { // its settlement has the action
		t.owe(e, true)
	}
	if by == "anew" || from == string(state) {
		return nil
	}
	return a.settle(t, o, s.id, state)
}

// returned holds the approval that comes back against the outcome: nothing was sent.
func (a *auditor) returned(t *task, e *entry, s *start) error {
	for i := range e.elements(e.at[eApprovals]) {
		back := standIn(&e.doc, i)
		id := back.str(sID)
		serves := !t.cancelled && bytes.Equal(back.str(sActor), t.actor)
		if serves == (back.state() == "withdrawn") || !bytes.Equal(id, s.consumed) || e.isTrue(e.at[eLate]) || s.write && string(e.str(eState)) != "absent" || !s.write && t.owes == s.decidedStep {
			a.at(e, ApprovalMove, "the approval %s comes back as %s, and its call may have been sent, or its task was cancelled or is another's", plainText(id), plainText(back.str(sState)))
		}
		v, err := a.approvals.get(a.joined(t.tenant, id))
		if err != nil {
			return err
		}
		if v != nil && v.used > 0 {
			v.used--
		}
	}
	return nil
}

// owe remembers that an entry says that a call took place, whose action must follow, or may.
func (t *task) owe(e *entry, must bool) {
	t.owes, t.owedAt, t.must, t.settled = e.count(e.at[eDispatch]), e.leaf, must, e.is("settlement")
}

// mostLookups bounds how often a tool is asked what became of one call, an operator's questions with it.
const mostLookups = 100

// settlement reads what was found out of an operation without calling it again.
func (a *auditor) settlement(t *task, e *entry) error {
	id := e.str(eOperation)
	dispatch := e.count(e.at[eDispatch])
	s, err := a.starts.get(a.startName(t, dispatch))
	if err != nil || s == nil && t.unknown(dispatch) {
		return err
	}
	o, err := a.operations.get(a.joined(t.tenant, id))
	if err != nil {
		return err
	}
	if s == nil || o == nil {
		a.at(e, SettlementDiffers, "no decision of the step %d began a call of the operation %s", dispatch, plainText(id))
		return nil
	}
	if !s.callsAs(e, o.callID) || !bytes.Equal(s.id, id) || s.run != e.count(e.at[eRun]) || o.step != dispatch {
		a.at(e, SettlementDiffers, "not of the last call of the operation %s", plainText(id))
		return nil
	}
	state, now, by := string(e.str(eState)), e.str(eTime), "look-up"
	if len(e.str(eBy)) > 0 {
		by = "operator"
	}
	a.moveFrom(e, id, o.stateAt(now), by, state)
	if state == "absent" && bytes.Compare(now, o.lease) <= 0 {
		a.at(e, OperationMove, "the operation %s is absent before the end of its lease: it may still be sent", plainText(id))
	}
	if state == "unknown" {
		if o.lookups++; o.lookups > mostLookups {
			a.at(e, SettlementDiffers, "the tool was asked more than %d times what became of the operation %s", mostLookups, plainText(id))
		}
	}
	if (by == "operator") != (len(e.str(eReason)) > 0) {
		a.at(e, SettlementDiffers, "the operation %s is settled by an operator without a reason, or with one by nobody", plainText(id))
	}
	if state == "committed" {
		t.owe(e, true)
	}
	return a.settle(t, o, id, e.str(eState))
}

// took reads the action of a call of an outside tool, which follows the outcome or the settlement that says it took place.
func (a *auditor) took(t *task, e *entry) error {
	dispatch := e.count(e.at[eDispatch])
	owed := t.owes == dispatch || t.after == e.leaf
	settled := t.settled
	t.owes = -1
	s, err := a.starts.get(a.startName(t, dispatch))
	switch {
	case err != nil:
		return err
	case s == nil && t.unknown(dispatch):
		return nil
	case s == nil:
		a.at(e, ActionWithoutDecision, "no decision of the step %d began its call", dispatch)
		return nil
	case !owed && s.acted:
		a.at(e, ActionTwice, "a second action of the call of the step %d", dispatch)
	case !owed && s.told:
		a.at(e, StatusDiffers, "it ran, and by its outcome it did not")
	case !owed:
		a.at(e, ActionWithoutDecision, "neither an outcome nor a settlement says that it took place")
	}
	s.acted = true
	o, err := a.operations.get(a.joined(t.tenant, s.id))
	if err != nil {
		return err
	}
	callID, under, by := s.callID, s.consumed, s.reviewers
	if o != nil && settled {
		callID = o.callID
	}
	if o != nil && (settled || s.resumed) { // under what its first call was allowed by
		under, by = o.approval, nil
	}
	if !s.ranAs(e, callID) || !bytes.Equal(e.str(eApproval), under) || !bytes.Equal(e.raw(eReviewers), by) {
		a.at(e, ActionDiffers, "not the call that its decision began, or not under its approval")
	}
	if o != nil && !o.acted && string(o.state) == "committed" && o.run == s.run {
		o.acted, o.result = true, sha256.Sum256(e.raw(eValue))
	}
	return nil
}

// ranAs says whether an action is of the call of a decision.
func (d *decided) ranAs(e *entry, callID []byte) bool {
	return d.callsAs(e, callID) && len(d.signature) > 0 && bytes.Equal(d.signature, e.str(eSignature)) && bytes.Equal(d.version, e.str(ePolicyVersion)) &&
		(len(d.operation) == 0 || bytes.Equal(d.operation, e.str(eOperation)))
}
