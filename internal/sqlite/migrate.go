package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
	"unicode/utf8"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// applicationID marks a SQLite file as govern's: "govr".
const applicationID = 0x676f7672

// migrations are applied in the order of their names; the first takes an empty file to version 1.
//
//go:embed migrations/*.sql
var migrations embed.FS

func migrationNames() []string {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		panic(err) // the pattern is constant
	}
	return names
}

// inspect refuses a file that is not a store, or not a whole one with its own key, through a connection that cannot
// change it: one that can write makes a write-ahead log that lies beside it, of whatever store, a part of it.
func (db *database) inspect() error {
	conn, err := db.openReader()
	if err != nil {
		return err
	}
	err = transaction(conn, func(conn *sqlite.Conn) error { // another process may be making the store just now
		version, err := db.version(conn)
		if err != nil || version == 0 {
			return err
		}
		return errors.Join(db.complete(conn), checkKey(conn, db.name))
	})
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultReadOnly {
		err = nil // a crash left something to roll back, which takes a writer; prepare looks again
	}
	return errors.Join(err, conn.Close())
}

// complete refuses a file that was cut within a page: SQLite would read what is missing as zeros. What a write-ahead log
// still holds need not be in the file.
func (db *database) complete(conn *sqlite.Conn) error {
	size := int64(1)
	for _, factor := range []string{"PRAGMA page_size", "PRAGMA page_count"} {
		err := each(conn, factor, nil, func(stmt *sqlite.Stmt) (bool, error) {
			size *= stmt.ColumnInt64(0)
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	if log, err := os.Stat(db.name + "-wal"); err == nil && log.Size() > 0 {
		return nil
	}
	file, err := os.Stat(db.name)
	if err == nil && file.Size() < size {
		err = sqlite.ResultCorrupt.ToError()
	}
	return err
}

// version gives the version of a store's tables, 0 for an empty file. It refuses what is not a store, and what a newer
// govern wrote. It runs in a transaction.
func (db *database) version(conn *sqlite.Conn) (int, error) {
	var application, version, tables int
	for sql, into := range map[string]*int{
		"PRAGMA application_id":              &application,
		"PRAGMA user_version":                &version,
		"SELECT count(*) FROM sqlite_schema": &tables,
	} {
		err := each(conn, sql, nil, func(stmt *sqlite.Stmt) (bool, error) {
			*into = stmt.ColumnInt(0)
			return false, nil
		})
		if err != nil {
			return 0, err
		}
	}
	if application == 0 && version == 0 && tables == 0 {
		return 0, nil
	}
	if application != applicationID {
		return 0, fmt.Errorf("%s belongs to another program (application id %#x), and was left as it is; give the store another path", db.name, uint32(application))
	}
	if newest := len(migrationNames()); version > newest {
		return 0, fmt.Errorf("%s was written by a newer govern (version %d, this one knows %d), and was left as it is; install that govern, or give the store another path", db.name, version, newest)
	}
	return version, nil
}

// firstWithTree is the version whose migration brought the tree over the log.
const firstWithTree = 4

// prepare makes the database one of this version, gets its key and looks at the end of its log, in one transaction: of several processes that
// start at once, one does it and the others find it done.
func prepare(ctx context.Context, conn *sqlite.Conn, db *database, getKey func(*sqlite.Conn) ([]byte, error)) (tip tip, err error) {
	if !db.inMemory() {
		if err := db.useWAL(ctx, conn); err != nil {
			return tip, err
		}
	}
	if err := db.begin(conn); err != nil {
		return tip, err
	}
	defer func() {
		if err != nil && !conn.AutocommitEnabled() {
			err = errors.Join(err, execute(conn, "ROLLBACK"))
		}
	}()
	version, err := db.version(conn)
	if err != nil {
		return tip, err
	}
	if err := migrate(conn, version); err != nil {
		return tip, err
	}
	if err := checkSchema(conn); err != nil {
		return tip, err
	}
	key, err := getKey(conn)
	if err != nil {
		return tip, err
	}
	tip = newTip(key)
	if version < firstWithTree {
		err = tip.adopt(conn, time.Now())
	} else {
		err = tip.checkTail(conn)
	}
	if err != nil {
		return tip, err
	}
	return tip, execute(conn, "COMMIT")
}

// useWAL switches the file to a write-ahead log, which it then stays in.
func (db *database) useWAL(ctx context.Context, conn *sqlite.Conn) error {
	var mode string
	err := db.whileBusy(ctx, func() error {
		return each(conn, "PRAGMA journal_mode = WAL", nil, func(stmt *sqlite.Stmt) (bool, error) {
			mode = stmt.ColumnText(0)
			return true, nil // to the end: what the statement changes is committed behind its row
		})
	})
	if err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the disk of %s does not support a write-ahead log shared by processes; give the store a path on a local disk", db.name)
	}
	return nil
}

func migrate(conn *sqlite.Conn, version int) error {
	names := migrationNames()
	if version == len(names) {
		return nil
	}
	if err := conn.CreateFunction("operation_id", &operationID); err != nil {
		return err
	}
	for _, name := range names[version:] {
		script, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if err := sqlitex.ExecuteScript(conn, string(script), nil); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return sqlitex.ExecuteScript(conn,
		fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, len(names)), nil)
}

// operationID names the operations that were committed before they had names. Under a name that govern cannot have written
// it gives NULL, which the table refuses: of its error the driver would make a result.
var operationID = sqlite.FunctionImpl{NArgs: 4, Deterministic: true,
	Scalar: func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
		for _, arg := range args {
			if !utf8.ValidString(arg.Text()) {
				return sqlite.Value{}, nil
			}
		}
		task := dispatch.TaskKey{Tenant: args[0].Text(), ID: args[1].Text()}
		return sqlite.TextValue(dispatch.OperationID(task, args[2].Text(), args[3].Text(), 0)), nil
	}}
