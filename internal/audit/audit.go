// Package audit verifies a log: that its bytes are what was committed, all of them and in their order, and that what the
// entries say keeps govern's promises. It reads an export or the file of a state, which it never changes, with code and
// SQL of its own: with what wrote the log it shares the hashing of the tree and the digests of package ijson.
//
// It goes through the log once. Per task it remembers where the task stands, for as many tasks as were seen lately; all
// that is older waits in a temporary file, so that memory does not grow with the log.
package audit

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// Options say what a log is held against beside itself. The zero value is a good choice.
type Options struct {
	// Checkpoints of this log, whose signatures are good, in any order.
	Checkpoints []Checkpoint
	// Recent is how many tasks, approvals and operations are kept in memory; 0 means DefaultRecent.
	Recent int
	// Progress is told now and then how many entries have been read. Nil means that nobody is told.
	Progress func(entries int64)
}

// DefaultRecent is how many tasks are kept in memory.
const DefaultRecent = 10_000

// auditor is one audit under way.
type auditor struct {
	findings
	memory
	ctx     context.Context
	options Options
	// key is the store's, nil if it is not there, and signer signs calls with it.
	key    []byte
	signer *ijson.Keyed

	tasks      *cache[task, *task]
	approvals  *cache[approval, *approval]
	operations *cache[operation, *operation]
	starts     *cache[start, *start]
	effects    *cache[effect, *effect]
	records    *cache[record, *record]
	versions   *cache[version, *version]
	contents   *cache[content, *content]

	// size and edge are the tree over the entries as they are.
	size        int64
	edge        merkle.Edge
	completed   []merkle.Hash
	checkpoints []checkpoint
	compared    int     // how many of them were
	unreadable  bool    // the last entry was
	unread      []int64 // leaves of which nobody knows the task
	held        map[string]*hold
	heldBytes   int
	// excused is how many entries a govern wrote that recorded no activations, and active says that there was one since.
	excused int64
	active  bool

	signing signing

	entry, early entry // the one under way, and one that waited
	old          doc   // a stand as it was before
	name, text   []byte
	signature    []byte
	digester     digester
}

type checkpoint struct {
	Checkpoint
	result string
}

// The results of a checkpoint.
const (
	agrees  = "agrees"
	differs = "differs"
	beyond  = "beyond"
)

func newAuditor(ctx context.Context, o Options) *auditor {
	a := &auditor{ctx: ctx, options: o, held: map[string]*hold{}}
	recent := cmp.Or(o.Recent, DefaultRecent)
	a.tasks = newCache[task](&a.memory, "tasks", recent)
	a.approvals = newCache[approval](&a.memory, "approvals", recent)
	a.operations = newCache[operation](&a.memory, "operations", recent)
	a.starts = newCache[start](&a.memory, "starts", recent)
	a.effects = newCache[effect](&a.memory, "effects", recent)
	a.records = newCache[record](&a.memory, "records", recent)
	a.versions = newCache[version](&a.memory, "versions", recent)
	a.contents = newCache[content](&a.memory, "contents", recent)
	for _, c := range o.Checkpoints {
		a.checkpoints = append(a.checkpoints, checkpoint{c, beyond})
	}
	slices.SortStableFunc(a.checkpoints, func(x, y checkpoint) int { return cmp.Compare(x.Size, y.Size) })
	a.compareCheckpoints() // with the empty log
	return a
}

// progressEvery is after how many entries somebody is told, and the context looked at.
const progressEvery = 1 << 14

// mostUnread bounds what is kept of a file of which nothing can be read.
const mostUnread = 1000

// take takes the next entry of the log, which stands at a leaf. It gives its hash.
func (a *auditor) take(leaf int64, text []byte) (merkle.Hash, error) {
	e := &a.entry
	e.leaf, e.hash = leaf, merkle.Leaf(text)
	a.completed = a.edge.Append(e.hash, a.completed[:0])
	a.size++
	a.compareCheckpoints()
	if a.size%progressEvery == 0 {
		if err := a.ctx.Err(); err != nil {
			return e.hash, err
		}
		if a.options.Progress != nil {
			a.options.Progress(a.size)
		}
	}
	err := e.read(text)
	if a.unreadable = err != nil; a.unreadable {
		a.leaf(leaf, Changed, "its bytes are no entry as govern writes them: %v", err)
		if a.unread = append(a.unread, leaf); len(a.unread) > mostUnread {
			a.unread = a.unread[1:]
		}
		return e.hash, nil
	}
	return e.hash, a.place(e)
}

// compareCheckpoints holds the checkpoints of the present size against the log.
func (a *auditor) compareCheckpoints() {
	for ; a.compared < len(a.checkpoints) && a.checkpoints[a.compared].Size == a.size; a.compared++ {
		c := &a.checkpoints[a.compared]
		if c.result = differs; c.Root == a.edge.Head().Root {
			c.result = agrees
		}
	}
}

// finishTasks says what only the end of the log shows of its tasks and versions.
func (a *auditor) finishTasks() error {
	for _, task := range slices.Sorted(maps.Keys(a.held)) {
		for a.held[task] != nil {
			if err := a.release(a.held[task]); err != nil {
				return err
			}
		}
	}
	if err := a.tasks.each(func(_ string, t *task) error {
		a.leftOver(t, math.MaxInt64)
		return nil
	}); err != nil {
		return err
	}
	return a.versions.each(func(name string, v *version) error {
		v.report(a, name)
		return nil
	})
}

// byteCodes are of findings that make every later checkpoint differ.
var byteCodes = []Code{Changed, Dropped, Inserted, Swapped, MissingStep, TaskNotCreated}

// gone counts the entries that are gone from inside the log. A tree counts them all. Where there is none and a gap was found,
// nobody knows: of a step there is no telling how many entries it had.
func (a *auditor) gone() (n int64, known bool) {
	known = true
	for _, f := range a.list {
		n += f.gone
		known = known && f.Code != Dropped && f.Code != MissingStep && f.Code != TaskNotCreated
	}
	return n, known || n > 0
}

// said says whether there is a finding of a code.
func (a *auditor) said(code Code) bool {
	return slices.ContainsFunc(a.list, func(f Finding) bool { return f.Code == code })
}

// judgeCheckpoints says of the checkpoints that do not agree where the change lies, unless a finding has said it already.
func (a *auditor) judgeCheckpoints() {
	good := int64(0)
	for _, c := range a.checkpoints {
		if c.result == agrees {
			good = max(good, c.Size)
		}
	}
	gone, known := a.gone()
	for _, c := range a.checkpoints {
		explained := slices.ContainsFunc(a.list, func(f Finding) bool {
			return f.Leaf != nil && slices.Contains(byteCodes, f.Code) && *f.Leaf < c.Size
		})
		switch {
		case c.result == beyond && (!known || c.Size <= a.size+gone): // what is gone was said
		case c.result == beyond:
			a.leaf(a.size, Cut, "the checkpoint %s is of %d entries, and the log ends after %d", c.Name, c.Size, a.size)
			return
		case c.result == agrees || explained:
		case c.Size <= good:
			a.leaf(0, Forked, "the checkpoint %s of %d entries is of another branch: the log agrees with one of %d entries", c.Name, c.Size, good)
		default:
			a.leaf(good, Forked, "the log is another branch than that of the checkpoint %s: they part between %d and %d entries", c.Name, good, c.Size)
			return // all later ones differ as well
		}
	}
}

// report closes the audit.
func (a *auditor) report(unchecked []string) (Report, error) {
	r := Report{Size: a.size, Root: a.edge.Head().Root.String(), Findings: a.sorted(), Found: a.found, Checkpoints: []CheckpointReport{}, Unchecked: unchecked}
	for _, c := range a.checkpoints {
		r.Checkpoints = append(r.Checkpoints, CheckpointReport{c.Name, c.Size, c.Root.String(), c.result})
	}
	r.Verified = r.Found == 0
	return r, a.memory.close()
}

// setKey lets signatures be checked.
func (a *auditor) setKey(key []byte) {
	a.key, a.signer = key, ijson.NewKeyed(key, "govern keyed signature v1")
}

// closing ends an audit that failed.
func (a *auditor) closing(err error) error { return errors.Join(err, a.memory.close()) }
