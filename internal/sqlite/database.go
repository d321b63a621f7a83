package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// database says how to reach one SQLite database.
type database struct {
	// name is what messages call it: for a file, its path.
	name  string
	dsn   string
	flags sqlite.OpenFlags
	busy  time.Duration
	// file is the one that was opened, unless it is in memory.
	file fs.FileInfo
	// gate keeps readers and the writer of a memory database apart, which WAL does for a file: there SQLite would
	// make them poll for each other.
	gate *sync.RWMutex
	// tidy has the last reader leave no write-ahead log behind, where this user may write.
	tidy bool
	// warn is Options.Warn, or nil.
	warn func(message string)
}

func (db *database) inMemory() bool { return db.gate != nil }

// writerCache is how much the writer's connection keeps of the file at most: the inner pages of large tables and indexes.
const writerCache = 16 << 20

// openWriter opens a connection that may write. It leaves waiting for locks to whileBusy.
func (db *database) openWriter() (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(db.dsn, db.flags|sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(db.busy)
	for _, sql := range []string{
		// Every commit is synced before it is answered.
		"PRAGMA synchronous = FULL",
		// On Darwin fsync leaves it in the drive's cache; only F_FULLFSYNC makes it durable. Elsewhere this does nothing.
		"PRAGMA fullfsync = ON",
		// The log is moved into the file beside the writer, by a checkpointer.
		"PRAGMA wal_autocheckpoint = 0",
		fmt.Sprintf("PRAGMA journal_size_limit = %d", logKept),
		fmt.Sprintf("PRAGMA cache_size = -%d", writerCache>>10),
	} {
		if err := execute(conn, sql); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	conn.SetBusyTimeout(0)
	return conn, nil
}

// openReader opens a connection that changes nothing.
func (db *database) openReader() (*sqlite.Conn, error) {
	access := sqlite.OpenReadOnly
	if db.inMemory() || db.tidy {
		access = sqlite.OpenReadWrite // memdb shares nothing with a connection opened read-only
	}
	conn, err := sqlite.OpenConn(db.dsn, db.flags|access)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(db.busy)
	if err := execute(conn, "PRAGMA query_only = ON"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// begin starts a write transaction, and waits for another process's until the time for that is up.
func (db *database) begin(conn *sqlite.Conn) error {
	return db.whileBusy(context.Background(), func() error { return execute(conn, "BEGIN IMMEDIATE") })
}

// whileBusy repeats what meets another connection's lock, until the time for that is up or ctx is done. It polls
// faster than SQLite's own handler, which would lose the lock to a busy process for seconds.
func (db *database) whileBusy(ctx context.Context, try func() error) error {
	err := try()
	if !isBusy(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, db.busy)
	defer cancel()
	if poll(ctx, func() (bool, error) { err = try(); return !isBusy(err), nil }) != nil {
		return db.locked()
	}
	return err
}

func (db *database) locked() error {
	return fmt.Errorf("%w: another process has kept %s locked for %s", dispatch.ErrUnavailable, db.name, db.busy)
}

// isBusy says that another connection is in the way, and will not be for long.
func isBusy(err error) bool {
	code := sqlite.ErrCode(err).ToPrimary()
	return code == sqlite.ResultBusy || code == sqlite.ResultProtocol
}

// explain adds to an error what a person can do about it.
func (db *database) explain(err error) error {
	if isBusy(err) {
		return db.locked()
	}
	if err == nil || db.inMemory() {
		return err
	}
	if _, ok := errors.AsType[*unverifiedError](err); ok || errors.Is(err, errForeignSchema) {
		return errors.Join(fmt.Errorf("%s: %w", db.name, err),
			fmt.Errorf("something other than govern changed it, and nothing was written; see what it was with: govern log verify --state %s", db.name),
			errors.New("keep the file as it is for whoever looks into it, and put back the newest backup with its key"))
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultNotADB:
		return fmt.Errorf("%s is not a SQLite file, and was left as it is; give the store another path, or restore the file from a backup: %w", db.name, err)
	case sqlite.ResultCorrupt:
		return fmt.Errorf("%s is damaged; restore it from a backup: %w", db.name, err)
	case sqlite.ResultFull:
		return db.full(err)
	case sqlite.ResultIOErr:
		return db.failing(err)
	case sqlite.ResultReadOnly, sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultAuth:
		return db.unwritable(err)
	}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return db.unwritable(err)
	case errors.Is(err, syscall.ENOSPC):
		return db.full(err)
	case errors.Is(err, syscall.EIO):
		return db.failing(err)
	}
	return err
}

// unwritable names every reason that there may be: SQLite tells none.
func (db *database) unwritable(err error) error {
	return fmt.Errorf("this user cannot write %s; allow it with: chmod u+rw %[1]s* && chmod u+rwx %s, see that its disk works, has room and is mounted for writing, or give the store another path: %w",
		db.name, filepath.Dir(db.name), err)
}

func (db *database) full(err error) error {
	return fmt.Errorf("no room to write %s; free some space on its disk: %w", db.name, err)
}

func (db *database) failing(err error) error {
	return fmt.Errorf("reading or writing %s failed; see that its disk works and has room, and try again: %w", db.name, err)
}

// IsDiskFault says whether an error of a store is one of the disk below it, and not of the file that was named.
func IsDiskFault(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultFull, sqlite.ResultIOErr:
		return true
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO)
}
