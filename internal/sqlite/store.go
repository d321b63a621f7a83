// Package sqlite keeps govern's state and entries in one SQLite file that several processes can use at once, or in
// memory.
package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/seal"
)

var _ dispatch.Store = (*Store)(nil)

// Options changes how a store behaves. The zero value is a good choice.
type Options struct {
	// BusyTimeout is how long a write waits for another process; 0 means DefaultBusyTimeout.
	BusyTimeout time.Duration
	// MustExist refuses to make a store: the error is then an fs.ErrNotExist.
	MustExist bool
	// Warn is told what an operator should know and no caller gets as an error. It is called from a goroutine of the
	// store's, and must return soon. Nil means that nobody is told.
	Warn func(message string)
}

// DefaultBusyTimeout is how long a write waits for another process before it gives dispatch.ErrUnavailable.
const DefaultBusyTimeout = 10 * time.Second

// Store is a dispatch.Store over one SQLite database.
type Store struct {
	Reader
	key    []byte
	writer *writer
	holds  *holds
	close  func() error
}

// Open opens the store in the file at path, and makes it if there is none: the file, beside it <path>.key (the
// store's key) and <path>.lock (what Hold locks), all for this user only.
//
// When Open has returned nil, the file, its tables and its key are durable. It MUST NOT change a file that is not a
// store, or is a newer one's, and MUST NOT make a second key for a store that has one.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	useFdatasync()
	path, err := place(path, o.MustExist)
	if err != nil {
		return nil, err
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	db := &database{name: path, dsn: path, busy: o.BusyTimeout, file: file, warn: o.Warn}
	if db.busy == 0 {
		db.busy = DefaultBusyTimeout
	}
	if err := db.inspect(); err != nil {
		return nil, db.explain(err)
	}
	holds, err := newHolds(path + ".lock")
	if err != nil {
		return nil, db.explain(err)
	}
	s, err := start(ctx, db, holds, func(conn *sqlite.Conn) ([]byte, error) { return fileKey(conn, path) })
	if err != nil {
		return nil, db.explain(errors.Join(err, holds.close()))
	}
	return s, nil
}

// OpenMemory opens a new, empty store that lives in memory until it is closed. Nothing of it is ever durable, its
// key is random, and no other process can use it.
func OpenMemory(ctx context.Context) (*Store, error) {
	db := &database{
		name:  "the store in memory",
		dsn:   "file:/govern-" + rand.Text() + "?vfs=memdb",
		flags: sqlite.OpenURI | sqlite.OpenCreate,
		busy:  DefaultBusyTimeout,
		gate:  new(sync.RWMutex),
	}
	return start(ctx, db, &holds{}, func(*sqlite.Conn) ([]byte, error) { return newKey(), nil })
}

// start brings the database up to date and starts its writer.
func start(ctx context.Context, db *database, h *holds, getKey func(*sqlite.Conn) ([]byte, error)) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	conn, err := db.openWriter()
	if err != nil {
		return nil, err
	}
	tip, err := prepare(ctx, conn, db, getKey)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	box, err := seal.New(tip.key)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s := &Store{key: tip.key, Reader: Reader{newReaders(db), box}, holds: h}
	var log *checkpointer
	if !db.inMemory() {
		log = newCheckpointer(db)
	}
	s.writer = newWriter(db, conn, tip, log)
	// The writer's connection goes last: only one that may write can leave the file without a WAL.
	s.close = sync.OnceValue(func() error {
		s.writer.stop()
		err := s.readers.close()
		if log != nil {
			err = errors.Join(err, log.close(s.writer))
		}
		return errors.Join(err, s.writer.close(), s.holds.close())
	})
	return s, nil
}

// Close ends the store. Commits that the writer has taken up are answered first; what comes later gets an error.
func (s *Store) Close() error { return s.close() }

// InPlace is an error once the store's file is not at its place any more, or another is: what is read then is of a store
// that nobody else finds.
func (s *Store) InPlace() error { return s.writer.db.gone() }

// Key is the store's key: 32 bytes that key digests. The caller MUST NOT change or show them.
func (s *Store) Key() []byte { return s.key }

var errClosed = errors.New("the store is closed")
