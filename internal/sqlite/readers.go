package sqlite

import (
	"context"
	"errors"

	"zombiezen.com/go/sqlite"
)

// maxReaders bounds the connections that read. More would wait for the processors, not for the disk.
const maxReaders = 8

// readers is a pool of connections that only read, each opened when it is first needed.
type readers struct {
	db     *database
	free   chan *sqlite.Conn // nil is a connection not opened yet
	closed chan struct{}
}

func newReaders(db *database) *readers {
	r := &readers{db: db, free: make(chan *sqlite.Conn, maxReaders), closed: make(chan struct{})}
	for range maxReaders {
		r.free <- nil
	}
	return r
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
	case conn := <-r.free:
		// What comes back to the pool is usable, or nil.
		defer func() { r.free <- conn }()
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
		if conn := <-r.free; conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}
