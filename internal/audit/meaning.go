package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// means reads what an entry says, which follows all that is known of its task.
func (a *auditor) means(t *task, e *entry) error {
	kind := string(e.str(eKind))
	if kind != "action" {
		a.leftOver(t, e.leaf)
		t.revision++
	}
	if bytes.Compare(e.str(eTime), t.updated) < 0 {
		a.at(e, TimeRunsBack, "it is of %s, before the entry that it follows, of %s", e.str(eTime), t.updated)
	}
	t.updated = append(t.updated[:0], e.str(eTime)...)
	if t.operators() {
		return a.operatorAct(t, e, kind)
	}
	if t.reads == 1 && kind != "task" && e.n == 0 {
		a.at(e, TaskNotCreated, "the first entry of its task, and not its creation")
	}
	if e.step > 0 && e.n == 0 && kind != "decision" {
		a.at(e, StepWithoutDecision, "a step that begins without a decision")
	}
	switch kind {
	case "task":
		t.profile, t.actor, t.deadline = append(t.profile[:0], e.str(eProfile)...), append(t.actor[:0], e.str(eActor)...), append(t.deadline[:0], e.str(eDeadline)...)
	case "cancel":
		t.cancelled = true
	case "decision":
		if err := a.decision(t, e); err != nil {
			return err
		}
	case "action":
		if err := a.action(t, e); err != nil {
			return err
		}
	case "outcome":
		if err := a.outcome(t, e); err != nil {
			return err
		}
	case "settlement":
		if err := a.settlement(t, e); err != nil {
			return err
		}
	case "review", "reopen":
		if t.cancelled {
			a.at(e, AfterCancel, "a review in a task that is cancelled")
		}
	case "expiry":
	case "activation", "baseline", "key":
		a.at(e, WrongSubject, "an entry of the kind %s in a task", kind)
	default:
		a.at(e, UnknownKind, "there is no kind of entry %q", plainText(e.str(eKind)))
	}
	if err := a.stands(t, e, kind); err != nil || kind != "decision" || !t.begun {
		return err
	}
	return a.began(t, e)
}

// leftOver says what a task still owes when the next of its entries comes, or none does.
func (a *auditor) leftOver(t *task, now int64) {
	if t.owes >= 0 && t.must && !a.wasUnread(t.owedAt, now) {
		a.add(Finding{Leaf: new(t.owedAt + 1), Tenant: plainText(t.tenant), Task: plainText(t.id), Step: new(t.at.step), Kind: "action", Code: Dropped, weak: true,
			Message: fmt.Sprintf("the action of the call of the step %d is gone, which is said to have taken place", t.owes)})
	}
	t.owes = -1
	if !t.owed || t.acted {
		return
	}
	t.owed = false
	if !a.wasUnread(t.decision, now) {
		a.add(Finding{Leaf: new(t.decision + 1), Tenant: plainText(t.tenant), Task: plainText(t.id), Step: new(t.at.step), Kind: "action", Code: Dropped, weak: true,
			Message: "the action of the step is gone, which its decision says took place"})
	}
}

// operatorAct reads what is of no task.
func (a *auditor) operatorAct(t *task, e *entry, kind string) error {
	if e.step != 0 {
		a.at(e, WrongSubject, "an entry without a task has no step")
	}
	switch kind {
	case "activation":
		for _, m := range [...]int{ePolicy, eConfig} {
			if digest := e.str(m); digest != nil {
				if err := a.names(digest, e.leaf); err != nil {
					return err
				}
			}
		}
		return a.activation(e)
	case "baseline":
		return a.baseline(e)
	case "key":
		a.change(e)
	case "task", "decision", "action", "review", "reopen", "expiry", "cancel", "outcome", "settlement":
		a.at(e, WrongSubject, "an entry of the kind %s without a task", kind)
	default:
		a.at(e, UnknownKind, "there is no kind of entry %q", plainText(e.str(eKind)))
	}
	return nil
}

// decision reads what was decided, and keeps of it what an action is held against.
func (a *auditor) decision(t *task, e *entry) error {
	var (
		d     [decisionMembers]int32
		in    [inputMembers]int32
		call  [callMembers]int32
		state [stateMembers]int32
		of    [taskMembers]int32
		tool  [toolMembers]int32
	)
	if t.decision >= 0 && t.decidedStep == e.step {
		a.at(e, TwoDecisions, "a second decision in one step")
	}
	e.pick(e.at[eDecision], decisionNames[:], d[:])
	e.pick(e.at[eInput], inputNames[:], in[:])
	e.pick(in[iCall], callNames[:], call[:])
	e.pick(in[iState], stateNames[:], state[:])
	e.pick(in[iTask], taskNames[:], of[:])
	e.pick(in[iTool], toolNames[:], tool[:])

	t.keep(e, d, in, call, tool)
	a.mayBegin(t, e, state[stOperation])
	if len(t.actor) == 0 { // its creation is gone, which was said
		t.actor = append(t.actor, t.by...)
	}
	step, _ := e.number(state[stStep])
	if step != e.step || !bytes.Equal(e.doc.str(of[kID]), t.id) || !bytes.Equal(e.doc.str(of[kTenant]), t.tenant) ||
		!bytes.Equal(e.doc.str(of[kActor]), t.by) || !bytes.Equal(t.by, t.actor) {
		a.at(e, WrongSubject, "decided for another task, actor or step")
	}
	if told := e.str(eStatus); !t.allowed && !bytes.Equal(told, e.doc.str(d[dStatus])) {
		a.at(e, StatusDiffers, "the caller got %q, and it was decided %q", plainText(told), plainText(e.doc.str(d[dStatus])))
	}
	if t.cancelled && string(t.effect) != "deny" {
		a.at(e, AfterCancel, "its task is cancelled, and it was not denied")
	}
	if t.allowed {
		if !t.hasTool {
			a.at(e, WrongSubject, "allows a tool that there is not")
		}
		a.affords(t, e, state[stBudgets], e.count(tool[tCost]))
		t.spent[0] += e.count(tool[tCost])
		t.spent[1]++
	}
	if digest := e.str(eInputDigest); digest != nil && !bytes.Equal(digest, a.digester.of("govern input v1", e.raw(eInput))) {
		a.at(e, InputDigestDiffers, "its digest is not that of the input which it shows")
	}
	// What stands for sensitive values is not what was signed.
	if a.key != nil && len(t.signature) > 0 && !e.isTrue(e.at[eSealed]) {
		if !bytes.Equal(t.signature, a.sign(t.tenant, t.id, t.by, t.tool, e.doc.raw(call[cArguments]))) {
			a.at(e, SignatureDiffers, "its signature is not that of its call")
		}
	}
	if t.allowed && t.write {
		if err := a.alone(t, e); err != nil {
			return err
		}
	}
	return a.decidedUnder(e, t.version)
}

// keep remembers a decision.
func (t *task) keep(e *entry, d [decisionMembers]int32, in [inputMembers]int32, call [callMembers]int32, tool [toolMembers]int32) {
	t.decision, t.decidedStep, t.acted = e.leaf, e.step, false
	for _, k := range [...]struct {
		into *[]byte
		from []byte
	}{
		{&t.effect, e.doc.str(d[dEffect])}, {&t.version, e.doc.str(d[dPolicyVersion])}, {&t.callID, e.str(eCallID)},
		{&t.tool, e.doc.str(call[cTool])}, {&t.signature, e.doc.str(call[cSignature])}, {&t.target, e.doc.str(call[cTarget])},
		{&t.by, e.str(eActor)}, {&t.mode, e.doc.str(in[iMode])}, {&t.operation, e.str(eOperation)}, {&t.reviewers, e.raw(eReviewers)},
		{&t.terms, e.doc.raw(d[dApproval])}, {&t.consumed, nil},
	} {
		*k.into = append((*k.into)[:0], k.from...)
	}
	t.resumed = string(t.effect) == "resume"
	t.allowed = string(t.effect) == "allow" || t.resumed
	t.begun = e.at[eStarted] != 0
	status := string(e.str(eStatus))
	t.ran = t.allowed && !t.begun && (status == "ok" || status == "outcome_unknown") // any other is told of what did not run
	t.owed = t.ran
	t.hasTool = e.doc.kind(in[iTool]) == '{'
	t.write = string(e.doc.str(tool[tEffect])) == "write"
	t.outside = e.doc.isTrue(tool[tOutside])
	t.always = string(e.doc.str(tool[tApproval])) == "always"
}

// record is what a local write made, kept as a digest.
type record struct {
	tenant, task []byte
	value        merkle.Hash
}

func (r *record) pack(p *packer) {
	p.text(&r.tenant)
	p.text(&r.task)
	p.hash(&r.value)
}

// joined makes a name of several texts, none of which holds a zero byte.
func (a *auditor) joined(parts ...[]byte) []byte {
	a.name = a.name[:0]
	for i, part := range parts {
		if i > 0 {
			a.name = append(a.name, 0)
		}
		a.name = append(a.name, part...)
	}
	return a.name
}

// action holds what ran against the decision of its step, which precedes it.
func (a *auditor) action(t *task, e *entry) error {
	if e.at[eValueBytes] != 0 { // of the true value, where a sensitive one is replaced
		t.spent[2] += e.count(e.at[eValueBytes])
	} else {
		t.spent[2] += int64(len(e.raw(eValue)))
	}
	if e.at[eDispatch] != 0 {
		return a.took(t, e)
	}
	if t.cancelled {
		a.at(e, AfterCancel, "it ran in a task that is cancelled")
	}
	unread := t.blind == e.step
	switch {
	case unread:
	case t.decision < 0 || t.decidedStep != e.step || !t.allowed:
		a.at(e, ActionWithoutDecision, "no decision of its step allows it")
	case t.acted:
		a.at(e, ActionTwice, "a second action of one step")
	default:
		if err := a.ran(t, e); err != nil {
			return err
		}
	}
	t.acted = true
	if !unread && !t.write {
		return nil
	}
	return a.kept(t, e)
}

// ran holds an action against the decision that allows it.
func (a *auditor) ran(t *task, e *entry) error {
	if !t.ranAs(e, t.callID) {
		a.at(e, ActionDiffers, "not the call that its decision allows")
	}
	if !t.ran {
		a.at(e, StatusDiffers, "it ran, and by the status of its decision it did not")
	}
	if string(t.mode) != "enforce" && t.write {
		a.at(e, WriteInDryRun, "a write in a dry run")
	}
	if under := e.str(eApproval); under != nil {
		return a.used(t, e, under)
	}
	if len(t.terms) > 0 || t.always {
		a.at(e, EffectWithoutApproval, "it ran without the approval that it demands")
	}
	return nil
}

// kept remembers what a write did.
func (a *auditor) kept(t *task, e *entry) error {
	if key := e.str(eOperation); key != nil {
		if err := a.wrote(t, e, key); err != nil {
			return err
		}
	}
	if e.at[eRecord] == 0 {
		return nil
	}
	name := a.joined(t.tenant, t.id, e.str(eTool), e.str(eTarget))
	r, err := a.records.get(name)
	switch {
	case err != nil:
		return err
	case r != nil:
		a.at(e, RecordTwice, "a second record %s of %s", plainText(e.str(eTarget)), plainText(e.str(eTool)))
	default:
		if r, err = a.records.make(name); err != nil {
			return err
		}
	}
	*r = record{bytes.Clone(t.tenant), bytes.Clone(t.id), sha256.Sum256(e.raw(eRecord))}
	return nil
}

// sign computes the keyed signature of a call. All parts are in canonical form without their quotes, the arguments whole.
func (a *auditor) sign(tenant, task, actor, tool, arguments []byte) []byte {
	tuple := append(a.text[:0], '[')
	for _, part := range [...][]byte{tenant, task, actor, tool} {
		tuple = append(append(append(tuple, '"'), part...), '"', ',')
	}
	tuple = append(append(tuple, arguments...), ",null]"...)
	a.text = tuple
	a.signature = a.signer.Append(a.signature[:0], a.digester.of("govern signature v1", tuple))
	return a.signature
}

// digester makes digests as ijson.Digest does, one after the other in the same room.
type digester struct {
	hash    hash.Hash
	begin   []byte
	sum     [sha256.Size]byte
	written [2 * sha256.Size]byte
}

func (d *digester) of(tag string, canonical []byte) []byte {
	if d.hash == nil {
		d.hash = sha256.New()
	}
	d.begin = append(binary.BigEndian.AppendUint64(d.begin[:0], uint64(len(tag))), tag...)
	d.begin = binary.BigEndian.AppendUint64(d.begin, uint64(len(canonical)))
	d.hash.Reset()
	d.hash.Write(d.begin)
	d.hash.Write(canonical)
	hex.Encode(d.written[:], d.hash.Sum(d.sum[:0]))
	return d.written[:]
}
