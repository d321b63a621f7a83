package audit

import (
	"fmt"
	"slices"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// What a state has twice is held against itself here: the leaves of the entries as they are, and those that the tree was
// made of. As long as the two go side by side nothing is kept. Where they part, a window of both is searched for where
// they meet again, so that one entry that is gone is one finding, and not one for each that comes after it.

// window is how many leaves of each are kept to find where they meet again.
const window = 1024

// diff is a difference between the entries and the tree: an entry instead of a leaf, or one of the two alone.
type diff struct {
	have, want *leafAt
}

type leafAt struct {
	leaf  int64
	hash  merkle.Hash
	place Finding // of an entry: where it says that it belongs
	said  bool    // that it cannot be read
}

type aligner struct {
	have, want []leafAt
	diffs      []diff
	more       int64 // differences that are only counted
}

// mostDiffs bounds what is kept of a log of which nothing is right.
const mostDiffs = 10_000

// same says whether an entry and a leaf go side by side and nothing before them is open.
func (l *aligner) same(have, want merkle.Hash) bool {
	return have == want && len(l.have) == 0 && len(l.want) == 0
}

// meet looks for where the two meet again, once the window is full or there is no more.
func (l *aligner) meet(last bool) {
	for len(l.have) > 0 && len(l.want) > 0 {
		if l.have[0].hash == l.want[0].hash {
			l.have, l.want = l.have[1:], l.want[1:]
			continue
		}
		if !last && len(l.have) < window && len(l.want) < window {
			return
		}
		i, j, found := l.nearest()
		if !found {
			// Nothing in sight: they are as many as they were, and others.
			i = min(len(l.have), len(l.want))
			if !last {
				i = max(i/2, 1)
			}
			j = i
		}
		l.differ(i, j)
	}
	if last {
		l.differ(len(l.have), len(l.want))
	}
}

// nearest finds the first place where an entry is a leaf of the tree, with the fewest of both before it.
func (l *aligner) nearest() (i, j int, found bool) {
	at := make(map[merkle.Hash]int, len(l.want))
	for k, w := range slices.Backward(l.want) {
		at[w.hash] = k
	}
	best := len(l.have) + len(l.want)
	for k, h := range l.have {
		if k >= best {
			break
		}
		if w, ok := at[h.hash]; ok && k+w < best {
			best, i, j, found = k+w, k, w, true
		}
	}
	return i, j, found
}

// differ takes i entries and j leaves that are not the same.
func (l *aligner) differ(i, j int) {
	for k := range max(i, j) {
		var d diff
		if k < i {
			d.have = new(l.have[k])
		}
		if k < j {
			d.want = new(l.want[k])
		}
		if len(l.diffs) == mostDiffs {
			l.more++
			continue
		}
		l.diffs = append(l.diffs, d)
	}
	l.have, l.want = l.have[i:], l.want[j:]
}

// explain says what the differences are, once all are known. The entries end at end.
func (l *aligner) explain(f *findings, end int64) {
	l.meet(true)
	if len(l.diffs) > 0 {
		f.dropWeak()
	}
	moved := map[merkle.Hash]int64{} // where the tree has a leaf that is not there
	stands := map[merkle.Hash]bool{}
	for _, d := range l.diffs {
		if d.want != nil {
			moved[d.want.hash] = d.want.leaf
		}
		if d.have != nil {
			stands[d.have.hash] = true
		}
	}
	// Entries that are gone one after the other are one finding.
	first, gone := int64(0), int64(0)
	flush := func() {
		switch {
		case gone == 0:
		case first >= end:
			f.leaf(first, Cut, "the log ends here, and the tree is of %d more", gone)
		default:
			f.add(Finding{Leaf: new(first), Code: Dropped, Message: goneFrom(gone), gone: gone})
		}
		gone = 0
	}
	for _, d := range l.diffs {
		alone := d.have == nil && !stands[d.want.hash]
		if gone > 0 && (!alone || d.want.leaf != first+gone) {
			flush()
		}
		switch {
		case alone:
			if gone == 0 {
				first = d.want.leaf
			}
			gone++
		case d.have == nil: // said where it stands now
		default:
			x := d.have.place
			x.Leaf = new(d.have.leaf)
			from, other := moved[d.have.hash]
			switch {
			case other && d.want != nil && stands[d.want.hash] && from < d.have.leaf && moved[d.want.hash] == d.have.leaf:
				continue // the other half of two that changed places
			case other && from < d.have.leaf:
				x.Leaf, x.Code, x.Message = new(from), Swapped, fmt.Sprintf("it was committed here, and stands at leaf %d", d.have.leaf)
			case other:
				x.Code, x.Message = Swapped, fmt.Sprintf("it was committed at leaf %d, and stands here", from)
			case d.want == nil:
				x.Code, x.Message = Inserted, "the tree does not have this entry"
			case d.have.said:
				continue
			default:
				x.Code, x.Message = Changed, "its hash is not that of the leaf in the tree"
			}
			f.add(x)
		}
	}
	flush()
	f.found += l.more
}

func goneFrom(n int64) string {
	if n == 1 {
		return "the entry that was committed here is gone"
	}
	return fmt.Sprintf("the %d entries that were committed from here on are gone", n)
}

// blameTree says where the two part if it is known that the entries are right.
func (l *aligner) blameTree(f *findings) {
	l.meet(true)
	for _, d := range l.diffs[:min(len(l.diffs), 1)] {
		at := d.have
		if at == nil {
			at = d.want
		}
		f.leaf(at.leaf, TreeDiffers, "from here on the tree is not that of the entries, which are those of the head")
	}
}

// dropWeak forgets what only the numbers of the tasks' entries say, where the tree says the same better.
func (f *findings) dropWeak() {
	n := len(f.list)
	f.list = slices.DeleteFunc(f.list, func(x Finding) bool { return x.weak })
	f.found -= int64(n - len(f.list))
}
