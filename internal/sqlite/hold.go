package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"sync"
	"time"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Hold waits until no other dispatch or review holds the task, and holds it until release is called, which may be done
// more than once. Waiting ends with ctx.
//
// On Linux it excludes other processes too, and the end of a process frees what it held. Elsewhere it excludes only
// this Store's callers: others may decide in vain, and the guard in Apply refuses them.
func (s *Store) Hold(ctx context.Context, task dispatch.TaskKey) (release func(), err error) {
	select {
	case <-s.readers.closed:
		return nil, errClosed
	default:
		return s.holds.hold(ctx, slotOf(task))
	}
}

// slotOf names a task by a number, at which <path>.lock is locked. Two tasks of one number, should that ever happen,
// wait for each other.
func slotOf(task dispatch.TaskKey) int64 {
	b := binary.BigEndian.AppendUint64(nil, uint64(len(task.Tenant)))
	b = append(b, task.Tenant...)
	b = append(b, task.ID...)
	sum := sha256.Sum256(b)
	return int64(binary.BigEndian.Uint64(sum[:]) >> 2) // any file can be locked there
}

// longestHold is how long a caller waits for a task. Whoever holds it for longer is stuck or stopped.
const longestHold = 10 * time.Second

// holds are the locks on tasks: here one turn per slot, and across processes a lock on that byte of a file. The turn
// comes first, since the file's lock belongs to the open file and would not keep two callers of one Store apart.
type holds struct {
	file *os.File // nil in memory

	mu    sync.Mutex
	turns map[int64]*turn
}

// turn is one slot's lock among the callers of this Store. It exists while somebody holds it or waits for it.
type turn struct {
	taken chan struct{} // has room for one
	users int
}

func newHolds(path string) (*holds, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &holds{file: f}, nil
}

func (h *holds) close() error {
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}

func (h *holds) hold(ctx context.Context, slot int64) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// What was given up is told apart from what the caller gave up.
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, longestHold, dispatch.ErrUnavailable)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil && caller.Err() == nil {
			err = context.Cause(ctx)
		}
	}()
	t := h.join(slot)
	select {
	case t.taken <- struct{}{}:
	case <-ctx.Done():
		h.leave(slot, t)
		return nil, ctx.Err()
	}
	giveUp := func() {
		<-t.taken
		h.leave(slot, t)
	}
	if h.file == nil {
		return sync.OnceFunc(giveUp), nil
	}
	if err := poll(ctx, func() (bool, error) { return lockByte(h.file, slot) }); err != nil {
		giveUp()
		return nil, err
	}
	return sync.OnceFunc(func() {
		unlockByte(h.file, slot)
		giveUp()
	}), nil
}

func (h *holds) join(slot int64) *turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.turns[slot]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		if h.turns == nil {
			h.turns = make(map[int64]*turn)
		}
		h.turns[slot] = t
	}
	t.users++
	return t
}

func (h *holds) leave(slot int64, t *turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(h.turns, slot)
	}
}

// The pauses between two looks at another process's lock.
const (
	firstPause   = 50 * time.Microsecond
	longestPause = 2 * time.Millisecond
)

// poll tries until it is done, with short growing pauses, as long as ctx allows.
func poll(ctx context.Context, try func() (done bool, err error)) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
