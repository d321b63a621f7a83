package audit

import (
	"fmt"
	"slices"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// Where entries stand within their task. They are numbered by step and n, without gaps, so that a task shows by itself
// what is gone from it, comes twice or came too early.

// spot is the place of an entry within its task.
type spot struct{ step, n int64 }

func (s spot) before(o spot) bool { return s.step < o.step || s.step == o.step && s.n < o.n }

// then says whether an entry at o can follow one at s.
func (s spot) then(o spot) bool {
	return o.step == s.step && o.n == s.n+1 || o.step == s.step+1 && o.n == 0
}

// seen is an entry that was read lately, to tell one that comes twice from two that have one place.
type seen struct {
	spot
	hash merkle.Hash
}

const mostSeen = 8

// hold is a task of which entries have come before one that they follow. They wait for it: it may have changed places
// with them.
type hold struct {
	task    string // its name
	entries []early
}

type early struct {
	spot
	leaf int64
	hash merkle.Hash
	text []byte
}

// mostEarly bounds how many entries of a task wait, mostHeld in how many tasks, and mostHeldBytes how long all of them are.
const (
	mostEarly     = 8
	mostHeld      = 256
	mostHeldBytes = 16 << 20
)

// place finds where an entry stands in its task, and reads what it means if it stands well.
func (a *auditor) place(e *entry) error {
	name := a.joined(e.str(eTenant), e.str(eTask))
	t, err := a.tasks.get(name)
	if err != nil {
		return err
	}
	if t == nil {
		if t, err = a.tasks.make(name); err != nil {
			return err
		}
		t.begin(e)
	}
	at := spot{e.step, e.n}
	h := a.held[string(name)]
	switch {
	case t.at.then(at) && h != nil && slices.ContainsFunc(h.entries, func(w early) bool { return w.before(at) }):
		// What they wait for does not come any more: the task has gone on.
		if err := a.release(h); err != nil {
			return err
		}
		return a.place(e)
	case t.at.then(at):
		if h != nil {
			if err := a.tooEarly(h.entries[0], at, e.leaf); err != nil {
				return err
			}
		}
		if err := a.follow(t, e); err != nil || h == nil {
			return err
		}
		return a.resume(t, h)
	case at.before(t.at) || at == t.at:
		a.taken(t, e)
		return nil
	case h != nil && slices.ContainsFunc(h.entries, func(w early) bool { return w.spot == at }):
		a.at(e, Forked, "a second entry of its place")
		return nil
	case h == nil && a.wasUnread(t.leaf, e.leaf):
		a.unseen(t, e)
		return a.follow(t, e)
	case h == nil && len(a.held) >= mostHeld:
		a.missing(t, e)
		return a.follow(t, e)
	}
	if h == nil {
		h = &hold{task: string(name)}
		a.held[h.task] = h
	}
	h.entries = append(h.entries, early{at, e.leaf, e.hash, slices.Clone(e.text)})
	a.heldBytes += len(e.text)
	for len(h.entries) > mostEarly || len(h.entries) > 0 && a.heldBytes > mostHeldBytes {
		if err := a.release(h); err != nil {
			return err
		}
	}
	return nil
}

// follow takes the entry as the next of its task.
func (a *auditor) follow(t *task, e *entry) error {
	t.at, t.leaf = spot{e.step, e.n}, e.leaf
	t.seen[t.reads%mostSeen] = seen{t.at, e.hash}
	t.reads++
	return a.means(t, e)
}

// taken says what an entry is whose place was taken before.
func (a *auditor) taken(t *task, e *entry) {
	if at := (spot{e.step, e.n}); t.gap.after.before(at) && at.before(t.gap.before) && a.late(t, e, at) {
		return
	}
	for _, s := range t.seen[:min(t.reads, mostSeen)] {
		if (s.spot == spot{e.step, e.n}) {
			if s.hash == e.hash {
				a.weakly(e, Inserted, "the entry comes a second time")
			} else {
				a.at(e, Forked, "a second entry of its place")
			}
			return
		}
	}
	a.weakly(e, Inserted, "an entry of a place that lies before %d.%d, where its task stood", t.at.step, t.at.n)
}

// unseen remembers what was not seen before an entry, so that nothing is held against it: the decision of its step, or a
// change of the signing keys.
func (a *auditor) unseen(t *task, e *entry) {
	if t.operators() {
		a.signing = signing{lost: true}
	}
	t.after = e.leaf
	if e.step > t.at.step+1 {
		t.lost.from, t.lost.to = t.at.step+1, e.step-1
	}
	if e.step > t.at.step && e.n > 0 {
		t.blind = e.step
	}
}

// late takes an entry for the one that was missed, if that was said: it is not gone, and stands too late.
func (a *auditor) late(t *task, e *entry, at spot) bool {
	i := slices.IndexFunc(a.list, func(x Finding) bool {
		return x.Leaf != nil && *x.Leaf == t.gap.leaf && (x.Code == MissingStep || x.Code == Dropped)
	})
	if i < 0 {
		return false
	}
	x := &a.list[i]
	x.Code, x.Message, x.weak = Swapped, fmt.Sprintf("it comes before %s of its task, which stands at leaf %d", at, e.leaf), true
	t.gap.after = at
	if !e.is("action") {
		t.revision++
	}
	return true
}

// missing says what is gone before an entry.
func (a *auditor) missing(t *task, e *entry) {
	a.unseen(t, e)
	t.gap.after, t.gap.before, t.gap.leaf = t.at, spot{e.step, e.n}, e.leaf
	switch gone := e.step - t.at.step - 1; {
	case gone <= 0:
		a.weakly(e, Dropped, "entries of its task are gone before it: it follows %s", t.at)
	case gone == 1:
		a.weakly(e, MissingStep, "step %d of its task is gone: it follows %s", t.at.step+1, t.at)
	default:
		a.weakly(e, MissingStep, "steps %d to %d of its task are gone: it follows %s", t.at.step+1, e.step-1, t.at)
	}
}

// wasUnread says whether what is gone between two leaves may be an entry that could not be read. Each counts once.
func (a *auditor) wasUnread(after, before int64) bool {
	for i, u := range a.unread {
		if after < u && u < before {
			a.unread = slices.Delete(a.unread, i, i+1)
			return true
		}
	}
	return false
}

// resume takes the entries that waited and can follow now.
func (a *auditor) resume(t *task, h *hold) error {
	for len(h.entries) > 0 {
		i := slices.IndexFunc(h.entries, func(w early) bool { return t.at.then(w.spot) })
		if i < 0 {
			return nil
		}
		w := h.entries[i]
		h.entries = slices.Delete(h.entries, i, i+1)
		a.heldBytes -= len(w.text)
		if err := a.earlier(t, w); err != nil {
			return err
		}
	}
	delete(a.held, h.task)
	return nil
}

func (a *auditor) earlier(t *task, w early) error {
	e, err := a.again(w)
	if err != nil {
		return err
	}
	return a.follow(t, e)
}

// again reads an entry that waited, as it was read before.
func (a *auditor) again(w early) (*entry, error) {
	e := &a.early
	e.leaf, e.hash = w.leaf, w.hash
	return e, e.read(w.text)
}

// tooEarly says that an entry came before one that it follows.
func (a *auditor) tooEarly(w early, follows spot, leaf int64) error {
	e, err := a.again(w)
	if err == nil {
		a.weakly(e, Swapped, "it comes before %s of its task, which stands at leaf %d", follows, leaf)
	}
	return err
}

// release gives up waiting for what is gone before the first of the entries that wait.
func (a *auditor) release(h *hold) error {
	t, err := a.tasks.get([]byte(h.task))
	if err != nil {
		return err
	}
	first := slices.MinFunc(h.entries, func(x, y early) int {
		if x.before(y.spot) {
			return -1
		}
		return 1
	})
	e, err := a.again(first)
	if err != nil {
		return err
	}
	a.missing(t, e)
	t.at = spot{first.step, first.n - 1} // as if it were not gone
	return a.resume(t, h)
}
