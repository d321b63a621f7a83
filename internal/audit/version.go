package audit

import (
	"cmp"
	"fmt"
)

// version is a policy version under which something was decided, or that was activated.
type version struct {
	// since is where its activation stands, -1 if there is none.
	since int64
	// first is where a decision under it stands that no activation precedes, -1 if there is none.
	first        int64
	tenant, task []byte
	step, n      int64
}

func (v *version) pack(p *packer) {
	p.number(&v.since)
	p.number(&v.first)
	p.text(&v.tenant)
	p.text(&v.task)
	p.number(&v.step)
	p.number(&v.n)
}

func (a *auditor) version(name []byte) (*version, error) {
	v, err := a.versions.get(name)
	if v != nil || err != nil {
		return v, err
	}
	v, err = a.versions.make(name)
	v.since, v.first = -1, -1
	return v, err
}

// activation remembers that a version is in force from here on.
func (a *auditor) activation(e *entry) error {
	v, err := a.version(e.str(ePolicyVersion))
	if err != nil {
		return err
	}
	if a.active = true; v.since < 0 {
		v.since = e.leaf
	}
	return nil
}

// decidedUnder remembers the first decision under a version that was not activated before it.
func (a *auditor) decidedUnder(e *entry, name []byte) error {
	v, err := a.version(name)
	if err != nil {
		return err
	}
	active := v.since >= 0 && v.since < e.leaf
	known := v.first >= a.excused && v.first >= 0 && v.first < e.leaf
	if active || known {
		return nil
	}
	v.first, v.step, v.n = e.leaf, e.step, e.n
	v.tenant, v.task = append(v.tenant[:0], e.str(eTenant)...), append(v.task[:0], e.str(eTask)...)
	return nil
}

// baseline excuses the entries that a govern wrote which recorded no activations. It comes before everything that this
// one wrote, or anybody could excuse anything.
func (a *auditor) baseline(e *entry) error {
	before, whole := e.number(e.at[eEntries])
	if !whole || before > e.leaf || a.excused > 0 || a.active {
		a.at(e, WrongBaseline, "a baseline covers the entries before it, and comes once, before every activation")
		return nil
	}
	a.excused = before
	return nil
}

// report says that a version was never activated.
func (v *version) report(a *auditor, name string) {
	if v.first < 0 || v.first < a.excused {
		return
	}
	a.add(Finding{Leaf: new(v.first), Tenant: plainText(v.tenant), Task: plainText(v.task), Step: new(v.step), N: new(v.n), Kind: "decision", Code: VersionNotActivated,
		Message: fmt.Sprintf("no activation of the policy version %s precedes its first decision", cmp.Or(plainText([]byte(name)), `""`))})
}

// content is something that an entry names by its digest.
type content struct{ leaf int64 }

func (c *content) pack(p *packer) { p.number(&c.leaf) }

// names remembers that an entry names a content.
func (a *auditor) names(digest []byte, leaf int64) error {
	c, err := a.contents.get(digest)
	if c != nil || err != nil {
		return err
	}
	c, err = a.contents.make(digest)
	c.leaf = leaf
	return err
}
