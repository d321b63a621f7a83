package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/failpoint"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// What one transaction takes. A sync costs more than hundreds of commits, so callers share them.
const (
	maxBatch = 256
	// linger is how long the writer waits for callers whom it has just answered, and who would otherwise miss every
	// second transaction.
	linger = 50 * time.Microsecond
)

// writer is the one goroutine of a store that writes.
type writer struct {
	db       *database
	conn     *sqlite.Conn // nil after a failure that it did not survive; the next batch opens another
	tip      tip
	leaves   []merkle.Hash // room for those of a batch
	requests chan *request
	stopping chan struct{}
	stopped  chan struct{}
	// transactions counts those begun.
	transactions atomic.Int64
	// looks and resets are the checkpointer's; in memory there is none, and they are nil. unlooked is about how much was
	// written since the last look.
	looks    chan<- struct{}
	resets   <-chan chan<- bool
	unlooked int64
}

// request is one caller's commit on its way through the writer.
type request struct {
	rows rows
	err  error
	done chan error
}

func newWriter(db *database, conn *sqlite.Conn, tip tip, log *checkpointer) *writer {
	w := &writer{
		db: db, conn: conn, tip: tip,
		requests: make(chan *request),
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	if log != nil {
		w.looks, w.resets = log.looks, log.resets
	}
	go w.loop()
	return w
}

// stop ends the goroutine when every commit that it has taken up is answered.
func (w *writer) stop() {
	close(w.stopping)
	<-w.stopped
}

// close closes the connection of a stopped writer.
func (w *writer) close() error {
	if w.conn == nil {
		return nil
	}
	return w.conn.Close()
}

// write hands rows to the writer. Until it has taken them up, ctx can call them back; afterwards only the outcome is
// true.
func (w *writer) write(ctx context.Context, r rows) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	req := &request{rows: r, done: make(chan error, 1)}
	select {
	case w.requests <- req:
		return <-req.done
	case <-ctx.Done():
		return ctx.Err()
	case <-w.stopping:
		return errClosed
	}
}

func (w *writer) loop() {
	defer close(w.stopped)
	var batch []*request
	var expected int       // the callers waiting or just answered
	var deadline time.Time // until when they are worth waiting for
	for {
		w.tend()
		if len(batch) == 0 {
			select {
			case req := <-w.requests:
				batch = append(batch, req)
			case done := <-w.resets:
				done <- w.beginLog()
				continue
			case <-w.stopping:
				return
			}
		}
		batch = w.gather(batch, expected, deadline)
		w.run(batch)
		waiting := w.drain(nil)
		for _, req := range batch {
			w.unlooked += req.rows.size
			req.done <- req.err
		}
		expected = 0
		if len(batch) > 1 {
			expected, deadline = min(len(waiting)+len(batch), maxBatch), time.Now().Add(linger)
		}
		batch = waiting
	}
}

// drain takes up what waits already.
func (w *writer) drain(batch []*request) []*request {
	for len(batch) < maxBatch {
		select {
		case req := <-w.requests:
			batch = append(batch, req)
		default:
			return batch
		}
	}
	return batch
}

// gather drains, and lingers while fewer than the expected callers are there.
func (w *writer) gather(batch []*request, expected int, deadline time.Time) []*request {
	batch = w.drain(batch)
	left := time.Until(deadline)
	if len(batch) >= expected || left <= 0 {
		return batch
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	for len(batch) < expected {
		select {
		case req := <-w.requests:
			batch = append(batch, req)
		case <-timer.C:
			return batch
		}
	}
	return batch
}

// tend asks for a look at the log when enough was written for one, and begins the log anew if asked to. It waits for a
// look that is under way only when the log could grow without bound else.
func (w *writer) tend() {
	for w.looks != nil {
		var look chan<- struct{}
		if w.unlooked >= logLook {
			look = w.looks
		}
		if w.unlooked < logFull {
			select {
			case look <- struct{}{}:
				w.unlooked = 0
			case done := <-w.resets:
				done <- w.beginLog()
			default:
				return
			}
			continue
		}
		select {
		case look <- struct{}{}:
			w.unlooked = 0
		case done := <-w.resets:
			done <- w.beginLog()
		}
	}
}

// beginLog moves the rest of the log and has the next transaction begin it anew, unless somebody still reads from it.
func (w *writer) beginLog() bool {
	if w.conn == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), resetWait)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		_, busy, err := checkpoint(w.conn, "RESTART")
		return !busy, err
	}) == nil
}

// run writes a batch in one transaction and sets each request's outcome.
func (w *writer) run(batch []*request) {
	if w.db.inMemory() {
		w.db.gate.Lock()
		defer w.db.gate.Unlock()
	}
	if err := w.transact(batch); err != nil {
		w.tip.forget()
		for _, req := range batch {
			req.err = w.db.explain(err)
		}
		w.rollBack()
	}
}

// transact gives an error when the transaction as a whole failed; then no request of the batch is durable, or known
// to be.
func (w *writer) transact(batch []*request) (err error) {
	if w.conn == nil {
		if w.conn, err = w.db.openWriter(); err != nil {
			return err
		}
	}
	if err := w.begin(); err != nil {
		return err
	}
	halfway, err := w.insert(batch)
	if err == nil && halfway {
		if err := execute(w.conn, "ROLLBACK"); err != nil {
			return undone(err)
		}
		if err := w.begin(); err != nil {
			return err
		}
		err = w.insertApart(batch)
	}
	if err == nil {
		err = w.grow(batch)
	}
	if err == nil {
		err = w.db.gone()
	}
	if err != nil {
		return undone(err)
	}
	failpoint.Here("before COMMIT")
	err = execute(w.conn, "COMMIT")
	failpoint.Here("after COMMIT")
	if err != nil {
		return fmt.Errorf("it is not known whether the commit is durable, before the state has been read again: %w", err)
	}
	return nil
}

func (w *writer) begin() error {
	if err := w.db.begin(w.conn); err != nil {
		return err
	}
	w.transactions.Add(1)
	return w.tip.refresh(w.conn)
}

// grow adds the entries of the commits that were not refused to the tree.
func (w *writer) grow(batch []*request) error {
	w.leaves = w.leaves[:0]
	for _, req := range batch {
		if req.err == nil {
			w.leaves = append(w.leaves, req.rows.leaves...)
		}
	}
	return w.tip.grow(w.conn, w.leaves)
}

func undone(err error) error { return fmt.Errorf("the commit was undone: %w", err) }

// insert writes commits as if none would be refused after its task's row, as hardly any is: a savepoint for each
// would have SQLite copy every page before it changes. It stops at one that was refused halfway.
func (w *writer) insert(batch []*request) (halfway bool, err error) {
	entries := w.tip.edge.Size()
	for _, req := range batch {
		begun, err := req.rows.insert(w.conn, entries)
		if err != nil && !refusal(err) {
			return false, err
		}
		if req.err = err; err != nil && begun {
			return true, nil
		}
		if err == nil {
			entries += int64(len(req.rows.Entries))
		}
	}
	return false, nil
}

// insertApart writes each commit within a savepoint, so that one that is refused leaves the others of its batch alone.
func (w *writer) insertApart(batch []*request) error {
	entries := w.tip.edge.Size()
	for _, req := range batch {
		if err := execute(w.conn, "SAVEPOINT attempt"); err != nil {
			return err
		}
		if _, req.err = req.rows.insert(w.conn, entries); req.err != nil {
			if !refusal(req.err) {
				return req.err
			}
			if err := execute(w.conn, "ROLLBACK TO attempt"); err != nil {
				return err
			}
		}
		if err := execute(w.conn, "RELEASE attempt"); err != nil {
			return err
		}
		if req.err == nil {
			entries += int64(len(req.rows.Entries))
		}
	}
	return nil
}

// refusal says that a commit failed by what it holds. Any other error is the database's, and fails the transaction.
func refusal(err error) bool {
	for _, own := range []error{dispatch.ErrMoved, dispatch.ErrTaskExists, errAnotherCall} {
		if errors.Is(err, own) {
			return true
		}
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultConstraint, sqlite.ResultTooBig, sqlite.ResultMismatch:
		return true
	}
	return false
}

// rollBack makes sure that no transaction is left half open. A connection that cannot promise that is given up; SQLite
// rolls back what it had begun.
func (w *writer) rollBack() {
	if w.conn == nil || w.conn.AutocommitEnabled() {
		return
	}
	if execute(w.conn, "ROLLBACK") != nil || !w.conn.AutocommitEnabled() {
		w.conn.Close()
		w.conn = nil
	}
}
