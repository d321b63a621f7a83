package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// Log is the whole record with the tree over it. Its entries are numbered from 0, without gaps and for good.
type Log interface {
	merkle.Log
	EntriesFrom(ctx context.Context, n int64) iter.Seq2[dispatch.Entry, error]
}

// ShortError says that a log does not reach to the entry with which somebody wants to begin.
type ShortError struct{ Size, From int64 }

func (e *ShortError) Error() string {
	return fmt.Sprintf("the log has %d entries, and does not reach to number %d", e.Size, e.From)
}

// ErrOtherLog says that what was read is not what the tree over the log covers.
var ErrOtherLog = errors.New("the log is not the one that its tree covers")

// Walk goes along a log, from entry to entry, and holds what it reads to the tree.
type Walk struct {
	log  Log
	next int64
	edge merkle.Edge
}

// Begin begins a walk before the entry of that number, which may be the next one to come. A log that does not reach so far
// is a ShortError.
func Begin(ctx context.Context, log Log, from int64) (*Walk, error) {
	head, err := log.Head(ctx)
	if err != nil {
		return nil, err
	}
	if from < 0 || from > head.Size {
		return nil, &ShortError{head.Size, from}
	}
	edge, err := edgeAt(ctx, log, from)
	return &Walk{log, from, edge}, err
}

func edgeAt(ctx context.Context, log Log, size int64) (merkle.Edge, error) {
	roots, err := log.Hashes(ctx, merkle.EdgeNodes(size))
	if err != nil {
		return merkle.Edge{}, err
	}
	return merkle.EdgeOf(size, roots)
}

// Next is the number of the entry that comes next.
func (w *Walk) Next() int64 { return w.next }

// To gives the entries up to a head of the log, and ends with ErrOtherLog if they are not those that it covers. Whoever
// ends it early can ask Check instead.
func (w *Walk) To(ctx context.Context, head merkle.Head) iter.Seq2[dispatch.Entry, error] {
	return func(yield func(dispatch.Entry, error) bool) {
		if w.next < head.Size {
			for e, err := range w.log.EntriesFrom(ctx, w.next) {
				if err == nil {
					w.edge.Append(merkle.Leaf(e.Body), nil)
					w.next++
				}
				if !yield(e, err) || err != nil {
					return
				}
				if w.next == head.Size {
					break
				}
			}
		}
		if w.edge.Head() != head {
			yield(dispatch.Entry{}, w.otherLog())
		}
	}
}

// Check says whether the entries so far are those that the tree covers. That is proven against the head that the log has
// now: the hashes on the way to it may have been changed with the entries.
func (w *Walk) Check(ctx context.Context) error {
	head, err := w.log.Head(ctx)
	if err != nil {
		return err
	}
	if w.next > head.Size {
		return w.otherLog()
	}
	proof, err := merkle.ProveTree(ctx, w.log, w.next, head.Size)
	if err == nil && merkle.CheckTree(proof, head, w.edge.Head()) != nil {
		err = w.otherLog()
	}
	return err
}

func (w *Walk) otherLog() error {
	return fmt.Errorf("%w: within its first %d entries it was changed, cut or replaced", ErrOtherLog, w.next)
}
