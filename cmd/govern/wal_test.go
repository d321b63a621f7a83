package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A command that finds a long write-ahead log, and cannot make it short because another program reads an old state, does
// its work and says so.
func TestB065PeopleAreTold(t *testing.T) {
	h := newHome(t)
	require.Equal(t, exitOK, h.govern("task", "create", "labels-1").code)
	open := func() *sqlite.Conn {
		conn, err := sqlite.OpenConn(h.state(), sqlite.OpenReadWrite)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, conn.Close()) })
		return conn
	}
	run := func(conn *sqlite.Conn, sql string) {
		require.NoError(t, sqlitex.ExecuteTransient(conn, sql, nil), sql)
	}
	reader, writer := open(), open()
	run(reader, "BEGIN")
	run(reader, "SELECT count(*) FROM tasks")
	run(writer, "INSERT INTO meta (name, value) VALUES ('large', zeroblob(100 << 20))")

	a := h.govern("run", "draft.json")
	assert.Equal(t, exitWaiting, a.code, a.stderr)
	assert.Regexp(t, `(?m)^govern: \S*govern\.db-wal has grown to 1\d\d MiB: .*open for reading`, a.stderr)

	run(reader, "ROLLBACK")
	a = h.govern("task", "list")
	assert.Equal(t, exitOK, a.code)
	assert.Empty(t, a.stderr)
}
