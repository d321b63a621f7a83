package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// memoryLog is a log in memory, whose entries a test can change behind the tree's back.
type memoryLog struct {
	entries   []dispatch.Entry
	completed [][]merkle.Hash
	edge      merkle.Edge
}

func (l *memoryLog) append(n int) *memoryLog {
	for range n {
		e := dispatch.Entry{Body: ijson.Raw(fmt.Sprintf(`{"i":%d}`, len(l.entries)))}
		l.entries = append(l.entries, e)
		l.completed = append(l.completed, l.edge.Append(merkle.Leaf(e.Body), nil))
	}
	return l
}

func (l *memoryLog) Head(context.Context) (merkle.Head, error) { return l.edge.Head(), nil }

func (l *memoryLog) Hashes(_ context.Context, nodes []int64) (out []merkle.Hash, err error) {
	for _, node := range nodes {
		leaf, place := merkle.Completed(node)
		if leaf >= int64(len(l.completed)) {
			return nil, errors.New("no such node")
		}
		out = append(out, l.completed[leaf][place])
	}
	return out, nil
}

func (l *memoryLog) EntriesFrom(_ context.Context, n int64) iter.Seq2[dispatch.Entry, error] {
	return func(yield func(dispatch.Entry, error) bool) {
		for _, e := range slices.Clone(l.entries[min(n, int64(len(l.entries))):]) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// walk reads up to the head, and gives what came with the error at its end.
func walk(t *testing.T, l *memoryLog, from int64) (bodies []string, end error) {
	t.Helper()
	w, err := Begin(t.Context(), l, from)
	require.NoError(t, err)
	head, err := l.Head(t.Context())
	require.NoError(t, err)
	for e, err := range w.To(t.Context(), head) {
		if err != nil {
			return bodies, err
		}
		bodies = append(bodies, string(e.Body))
	}
	assert.Equal(t, head.Size, w.Next())
	return bodies, nil
}

// A walk from anywhere gives what is there, and finds that the tree covers it; also one that ends early.
func TestWalk(t *testing.T) {
	const most = 40
	for size := range int64(most) {
		l := (&memoryLog{}).append(int(size))
		for from := range size + 1 {
			bodies, err := walk(t, l, from)
			require.NoError(t, err)
			require.Len(t, bodies, int(size-from))
			for i, body := range bodies {
				require.Equal(t, fmt.Sprintf(`{"i":%d}`, from+int64(i)), body)
			}
			w, err := Begin(t.Context(), l, from)
			require.NoError(t, err)
			for range w.To(t.Context(), l.edge.Head()) {
				if w.Next() == (from+size)/2 {
					break
				}
			}
			require.NoError(t, w.Check(t.Context()))
		}
	}
}

func TestWalkBeginsWithinTheLog(t *testing.T) {
	l := (&memoryLog{}).append(3)
	for _, from := range []int64{-1, 4, 1 << 40} {
		_, err := Begin(t.Context(), l, from)
		var short *ShortError
		require.ErrorAs(t, err, &short)
		assert.Equal(t, ShortError{3, from}, *short)
	}
}

// changes are what makes a log of 20 entries another than its tree says.
var changes = map[string]func(l *memoryLog){
	"one changed": func(l *memoryLog) { l.entries[7].Body = ijson.Raw(`{"i":70}`) },
	"two swapped": func(l *memoryLog) { l.entries[7], l.entries[8] = l.entries[8], l.entries[7] },
	"one dropped": func(l *memoryLog) { l.entries = slices.Delete(l.entries, 7, 8) },
	"one twice":   func(l *memoryLog) { l.entries = slices.Insert(l.entries, 7, l.entries[7]) },
	"the end cut": func(l *memoryLog) { l.entries = l.entries[:19] },
	"all cut":     func(l *memoryLog) { l.entries = nil },
	"a hash": func(l *memoryLog) { // of the first sixteen
		l.completed[15][4][0] ^= 1
	},
}

func TestWalkNoticesWhatTheTreeDoesNotCover(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			l := (&memoryLog{}).append(20)
			change(l)
			_, err := walk(t, l, 0)
			if name == "a hash" { // which the way from the first entry on does not need
				require.NoError(t, err)
				_, err = walk(t, l, 16)
			}
			require.ErrorIs(t, err, ErrOtherLog)
		})
	}
	for name, change := range map[string]func(l *memoryLog){
		"early": changes["one changed"],
		"early, and all hashes changed with it": func(l *memoryLog) { // but not the head, which only the store's key makes
			changes["one changed"](l)
			head := l.edge
			regrow(l)
			l.edge = head
		},
		"early, and the log cut to there": func(l *memoryLog) {
			l.entries = l.entries[:10]
			regrow(l)
			l.edge = (&memoryLog{}).append(9).edge
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := (&memoryLog{}).append(20)
			head := l.edge.Head()
			change(l)
			w, err := Begin(t.Context(), l, 0)
			require.NoError(t, err)
			for range w.To(t.Context(), head) {
				if w.Next() == 10 {
					break
				}
			}
			require.ErrorIs(t, w.Check(t.Context()), ErrOtherLog)
		})
	}
}

// follow follows a log from its beginning. Whenever everything is read, the next of the steps happens; after the last one
// the follower is stopped.
func follow(t *testing.T, l *memoryLog, steps ...func() error) (bodies []string, end error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w, err := Begin(ctx, l, 0)
	require.NoError(t, err)
	wait := func(context.Context) error {
		if len(steps) == 0 {
			stop()
			return ctx.Err()
		}
		next := steps[0]
		steps = steps[1:]
		return next()
	}
	for e, err := range Follow(ctx, w, wait) {
		if err != nil {
			return bodies, err
		}
		bodies = append(bodies, string(e.Body))
	}
	return bodies, nil
}

// Every entry comes once and in order, however many come at a time.
func TestFollow(t *testing.T) {
	l := (&memoryLog{}).append(5)
	var steps []func() error
	total := 5
	for _, n := range []int{0, 1, 0, 17, 3, 0, 0, 64} {
		total += n
		steps = append(steps, func() error { l.append(n); return nil })
	}
	bodies, err := follow(t, l, steps...)
	require.NoError(t, err)
	require.Len(t, bodies, total)
	for i, body := range bodies {
		require.Equal(t, fmt.Sprintf(`{"i":%d}`, i), body)
	}
}

// What is appended while a follower is behind comes too, and nothing keeps it from being appended.
func TestFollowWhileMoreComes(t *testing.T) {
	l := (&memoryLog{}).append(1)
	w, err := Begin(t.Context(), l, 0)
	require.NoError(t, err)
	n := 0
	for e, err := range Follow(t.Context(), w, func(context.Context) error { return nil }) {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf(`{"i":%d}`, n), string(e.Body))
		if n++; n == 100 {
			break
		}
		l.append(2)
	}
	require.EqualValues(t, 100, w.Next())
}

func TestFollowEndsWhenTheLogIsAnother(t *testing.T) {
	for name, change := range map[string]func(l *memoryLog){
		"cut":           func(l *memoryLog) { *l = *(&memoryLog{}).append(3) },
		"emptied":       func(l *memoryLog) { *l = memoryLog{} },
		"another":       func(l *memoryLog) { l.edge = merkle.Edge{}; l.entries[2].Body = ijson.Raw("{}"); regrow(l) },
		"a longer one":  func(l *memoryLog) { l.entries[2].Body = ijson.Raw("{}"); l.append(0); regrow(l.append(9)) },
		"cut and grown": func(l *memoryLog) { l.entries = l.entries[2:]; regrow(l.append(9)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := (&memoryLog{}).append(5)
			bodies, err := follow(t, l, func() error { change(l); return nil })
			require.ErrorIs(t, err, ErrOtherLog)
			require.GreaterOrEqual(t, len(bodies), 5)
		})
	}
}

// regrow makes a tree over the entries as they are now: what somebody does who has the store's key.
func regrow(l *memoryLog) {
	l.edge, l.completed = merkle.Edge{}, nil
	for _, e := range l.entries {
		l.completed = append(l.completed, l.edge.Append(merkle.Leaf(e.Body), nil))
	}
}

func TestFollowEndsWhenWaitingFails(t *testing.T) {
	gone := errors.New("the state is gone")
	bodies, err := follow(t, (&memoryLog{}).append(5), func() error { return gone })
	require.ErrorIs(t, err, gone)
	require.Len(t, bodies, 5)
}
