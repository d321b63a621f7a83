package sqlite

import (
	"context"
	"errors"
	"sync"

	"zombiezen.com/go/sqlite"
)

// maxReaders bounds the connections that read. More would wait for the processors, not for the disk.
const maxReaders = 8

// readers is a pool of connections that only read, each opened when it is first needed. The one used last is used
// again first: it knows most of the file.
type readers struct {
	db     *database
	turns  chan struct{} // one for each connection that may be in use
	closed chan struct{}

	mu   sync.Mutex
	idle []*sqlite.Conn
}

func newReaders(db *database) *readers {
	return &readers{db: db, turns: make(chan struct{}, maxReaders), closed: make(chan struct{})}
}

// take gives an idle connection, or nil if there is none.
func (r *readers) take() *sqlite.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.idle) - 1
	if last < 0 {
		return nil
	}
	conn := r.idle[last]
	r.idle = r.idle[:last]
	return conn
}

// give takes back a connection that is usable, or nil.
func (r *readers) give(conn *sqlite.Conn) {
	if conn != nil {
		r.mu.Lock()
		r.idle = append(r.idle, conn)
		r.mu.Unlock()
	}
	<-r.turns
}

// snapshot calls read in a transaction that sees one state. It sees every commit answered before, whoever made it.
// Waiting for a connection ends with ctx; reading does not, and is short.
func (r *readers) snapshot(ctx context.Context, read func(*sqlite.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.closed:
		return errClosed
	case r.turns <- struct{}{}:
		conn := r.take()
		defer func() { r.give(conn) }()
		if r.db.inMemory() {
			r.db.gate.RLock()
			defer r.db.gate.RUnlock()
		}
		if conn == nil {
			fresh, err := r.db.openReader()
			if err != nil {
				return r.db.explain(err)
			}
			conn = fresh
		}
		err := transaction(conn, read)
		if !conn.AutocommitEnabled() {
			conn.Close()
			conn = nil
		}
		return r.db.explain(err)
	}
}

// transaction leaves none open, unless the connection is of no more use.
func transaction(conn *sqlite.Conn, read func(*sqlite.Conn) error) error {
	if err := execute(conn, "BEGIN"); err != nil {
		return err
	}
	if err := read(conn); err != nil {
		_ = execute(conn, "ROLLBACK") // snapshot gives up a connection that it did not work on
		return err
	}
	return execute(conn, "COMMIT")
}

// close waits for those who read, and closes what was opened.
func (r *readers) close() error {
	close(r.closed)
	var errs []error
	for range maxReaders {
		r.turns <- struct{}{}
	}
	for conn := r.take(); conn != nil; conn = r.take() {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
