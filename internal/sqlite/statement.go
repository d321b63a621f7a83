package sqlite

import (
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// testingOnlyRan is told each statement that each runs.
var testingOnlyRan func(sql string)

// each runs a statement, prepared once per connection, and calls row for each of its rows until row says that it
// wants no more. A nil row wants none.
func each(conn *sqlite.Conn, sql string, bind func(*sqlite.Stmt), row func(*sqlite.Stmt) (more bool, err error)) error {
	stmt, err := conn.Prepare(sql) // not Prep: it panics when it meets an I/O error
	if err != nil {
		return err
	}
	defer stmt.Reset() // the error of a failed step was returned already
	if testingOnlyRan != nil {
		testingOnlyRan(sql)
	}
	if bind != nil {
		bind(stmt)
	}
	for {
		found, err := stmt.Step()
		if err != nil || !found || row == nil {
			return err
		}
		if more, err := row(stmt); err != nil || !more {
			return err
		}
	}
}

// execute runs a statement that has no parameters and no interesting rows.
func execute(conn *sqlite.Conn, sql string) error { return each(conn, sql, nil, nil) }

// moment is how the tables have a time: in UTC, to the millisecond, all of one length.
const moment = "2006-01-02T15:04:05.000Z"

// setTime writes a time, cut off at the millisecond; the zero time is NULL.
func setTime(stmt *sqlite.Stmt, name string, t time.Time) {
	if t.IsZero() {
		stmt.SetNull(name)
		return
	}
	stmt.SetText(name, t.UTC().Format(moment))
}

func getTime(stmt *sqlite.Stmt, name string) (time.Time, error) {
	if stmt.IsNull(name) {
		return time.Time{}, nil
	}
	return time.Parse(moment, stmt.GetText(name))
}

// setName writes a text that is NULL where there is none.
func setName(stmt *sqlite.Stmt, name, text string) {
	if text == "" {
		stmt.SetNull(name)
	} else {
		stmt.SetText(name, text)
	}
}

func setBytes(stmt *sqlite.Stmt, name string, b []byte) {
	if b == nil {
		stmt.SetNull(name)
	} else {
		stmt.SetBytes(name, b)
	}
}

func getBytes(stmt *sqlite.Stmt, name string) ijson.Raw {
	if stmt.IsNull(name) {
		return nil
	}
	b := make(ijson.Raw, stmt.GetLen(name))
	stmt.GetBytes(name, b)
	return b
}
