package audit

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// operation is one intended effect as the entries so far leave it. Of a local tool there is one once it is committed.
type operation struct {
	tenant, task, actor, key []byte
	dispatch                 int64 // the step that intended it, where there is no key
	signature, tool, state   []byte
	// step is the dispatch that committed it or called last, and run counts its calls.
	step, run int64
	// result is the digest of what it gave.
	result merkle.Hash
	acted  bool // its action is on record

	// What follows is of outside tools alone.
	effect, definition, outward []byte
	since, lease, approval      []byte
	target, version, callID     []byte // callID is that of the call that tables show
	lookups                     int64
	call                        merkle.Hash // the digest of the call that tables show
}

func (o *operation) pack(p *packer) {
	for _, v := range []*[]byte{&o.tenant, &o.task, &o.actor, &o.key, &o.signature, &o.tool, &o.state, &o.effect, &o.definition, &o.outward, &o.since, &o.lease, &o.approval, &o.target, &o.version, &o.callID} {
		p.text(v)
	}
	for _, v := range []*int64{&o.dispatch, &o.step, &o.run, &o.lookups} {
		p.number(v)
	}
	p.hash(&o.result)
	p.hash(&o.call)
	p.flag(&o.acted)
}

// effect is what two operations may have in common: the same thing done, under whatever key.
type effect struct {
	// open is the id of the operation that is started or unknown, if one is.
	open []byte
}

func (x *effect) pack(p *packer) { p.text(&x.open) }

// operationMoves are what the entries of each kind may do to an operation. One whose lease has ended counts as unknown.
var operationMoves = map[string][]string{
	"action":   {" committed", "absent committed"}, // of a local tool
	"allow":    {" started", "absent started"},
	"resume":   {"unknown started"},
	"outcome":  {"started committed", "started absent", "started unknown", "unknown committed", "unknown absent", "unknown unknown"},
	"late":     {"absent committed", "absent absent", "committed committed"},
	"anew":     {"started started", "unknown unknown", "absent absent", "committed committed"}, // of a run before the last
	"look-up":  {"unknown committed", "unknown absent", "unknown unknown"},
	"operator": {"unknown committed", "unknown absent", "absent committed"},
}

// stateAt is where an operation stands at a time: nobody hears any more of a call whose lease has ended.
func (o *operation) stateAt(now []byte) string {
	if string(o.state) == "started" && bytes.Compare(now, o.lease) > 0 {
		return "unknown"
	}
	return string(o.state)
}

// moveFrom holds what an entry does to an operation against what it may do.
func (a *auditor) moveFrom(e *entry, id []byte, from, by, to string) {
	if !slices.Contains(operationMoves[by], from+" "+to) {
		a.at(e, OperationMove, "the operation %s goes from %q to %q", plainText(id), from, to)
	}
}

// operationID is the name of an operation, of texts in canonical form.
func (a *auditor) operationID(tenant, task, actor, key []byte, dispatch int64) []byte {
	tuple := append(a.text[:0], '[')
	for _, part := range [...][]byte{tenant, task, actor, key} {
		tuple = append(append(append(tuple, '"'), part...), '"', ',')
	}
	a.text = append(strconv.AppendInt(tuple, dispatch, 10), ']')
	return append([]byte("op-"), a.digester.of("govern operation v1", a.text)[:16]...)
}

// identity gives the key and the step that an operation of a decision goes by.
func (d *decided) identity() (key []byte, dispatch int64) {
	if len(d.operation) == 0 {
		return nil, d.decidedStep
	}
	return d.operation, 0
}

// begin remembers that an operation was begun, and holds it against what it was before.
func (a *auditor) beginOperation(t *task, e *entry, b begun) error {
	key, dispatch := t.identity()
	id := a.operationID(t.tenant, t.id, t.by, key, dispatch)
	if !bytes.Equal(b.str(bOperation), id) {
		a.at(e, StartDiffers, "it is of the operation %s, and the one of its call is %s", plainText(b.str(bOperation)), id)
	}
	if err := a.openEffect(t, e, b.str(bEffect), id); err != nil {
		return err
	}
	o, err := a.operations.get(a.joined(t.tenant, id))
	if err != nil {
		return err
	}
	by, from, run := string(t.effect), "", int64(1)
	if o == nil {
		if o, err = a.operations.make(a.joined(t.tenant, id)); err != nil {
			return err
		}
	} else {
		from, run = o.stateAt(e.str(eTime)), o.run+1
	}
	a.moveFrom(e, id, from, by, "started")
	if b.count(bRun) != run {
		a.at(e, RunDiffers, "it is the run %d of the operation %s, and the next would be %d", b.count(bRun), id, run)
	}
	if t.resumed && (!bytes.Equal(o.signature, t.signature) || !bytes.Equal(o.definition, b.str(bDefinition)) || !bytes.Equal(o.outward, b.str(bOutward)) || !bytes.Equal(o.effect, b.str(bEffect))) {
		a.at(e, ResumeDiffers, "the operation %s is resumed by another call, or under another definition or outward key", id)
	}
	next := operation{tenant: o.tenant, task: o.task, actor: o.actor, key: o.key, dispatch: dispatch, since: o.since, call: o.call, callID: o.callID, approval: o.approval}
	if !t.resumed {
		next.since, next.call, next.callID, next.approval = bytes.Clone(e.str(eTime)), a.call(e), bytes.Clone(t.callID), bytes.Clone(t.consumed)
	}
	if from == "" {
		next.tenant, next.task, next.actor, next.key = bytes.Clone(t.tenant), bytes.Clone(t.id), bytes.Clone(t.by), bytes.Clone(key)
	}
	next.signature, next.tool, next.state = bytes.Clone(t.signature), bytes.Clone(t.tool), []byte("started")
	next.step, next.run, next.result = e.step, b.count(bRun), sha256.Sum256(nil)
	next.effect, next.definition, next.outward = bytes.Clone(b.str(bEffect)), bytes.Clone(b.str(bDefinition)), bytes.Clone(b.str(bOutward))
	next.lease, next.target, next.version = bytes.Clone(b.str(bLease)), bytes.Clone(t.target), bytes.Clone(t.version)
	*o = next
	return nil
}

// openEffect remembers which operation of an effect is open. There is one at most, or it might take place twice.
func (a *auditor) openEffect(t *task, e *entry, digest, id []byte) error {
	x, err := a.effects.get(a.joined(t.tenant, t.id, digest))
	if err != nil {
		return err
	}
	if x == nil {
		if x, err = a.effects.make(a.joined(t.tenant, t.id, digest)); err != nil {
			return err
		}
	}
	if len(x.open) > 0 && !bytes.Equal(x.open, id) {
		a.at(e, EffectUnsettled, "it is begun while nobody knows what became of the same effect as the operation %s", plainText(x.open))
	}
	x.open = id
	return nil
}

// settle makes an operation what an entry says that it is. Once that is known, its effect is open no more.
func (a *auditor) settle(t *task, o *operation, id, state []byte) error {
	o.state = append(o.state[:0], state...)
	if s := string(state); s != "committed" && s != "absent" {
		return nil
	}
	x, err := a.effects.get(a.joined(t.tenant, t.id, o.effect))
	if x != nil && bytes.Equal(x.open, id) {
		x.open = nil
	}
	return err
}

// wrote remembers what a write of a local tool did under its key.
func (a *auditor) wrote(t *task, e *entry, key []byte) error {
	id := a.operationID(t.tenant, t.id, e.str(eActor), key, 0)
	o, err := a.operations.get(a.joined(t.tenant, id))
	if err != nil {
		return err
	}
	run := int64(1)
	switch {
	case o == nil:
		if o, err = a.operations.make(a.joined(t.tenant, id)); err != nil {
			return err
		}
	case o.acted:
		a.at(e, OperationTwice, "a second action of the operation %s, which was done in step %d", plainText(key), o.step)
		run = o.run
	default:
		a.moveFrom(e, id, o.stateAt(e.str(eTime)), "action", "committed")
		run = o.run + 1
	}
	*o = operation{tenant: bytes.Clone(t.tenant), task: bytes.Clone(t.id), actor: bytes.Clone(e.str(eActor)), key: bytes.Clone(key), signature: bytes.Clone(e.str(eSignature)),
		tool: bytes.Clone(e.str(eTool)), state: []byte("committed"), step: e.step, run: run, result: sha256.Sum256(e.raw(eValue)), acted: true}
	return nil
}
