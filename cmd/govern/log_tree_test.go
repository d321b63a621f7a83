package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	zsqlite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// What a log is, seen with SQL of our own and another implementation of the tree.

// logged is the entries in the file of a state, in their order.
func logged(t require.TestingT, file string) (entries [][]byte) {
	query(t, file, "SELECT body FROM entries ORDER BY seq", func(stmt *zsqlite.Stmt) {
		body := make([]byte, stmt.ColumnLen(0))
		stmt.ColumnBytes(0, body)
		entries = append(entries, body)
	})
	return entries
}

func query(t require.TestingT, file, sql string, row func(*zsqlite.Stmt)) {
	conn, err := zsqlite.OpenConn(file, zsqlite.OpenReadOnly)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(stmt *zsqlite.Stmt) error {
		row(stmt)
		return nil
	}}))
}

// sizeAndRoot is the beginning of the row of a tree's head.
func sizeAndRoot(t require.TestingT, entries [][]byte) string {
	factory := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	tree := factory.NewEmptyRange(0)
	for _, e := range entries {
		require.NoError(t, tree.Append(rfc6962.DefaultHasher.HashLeaf(e), nil))
	}
	root := rfc6962.DefaultHasher.EmptyRoot()
	if len(entries) > 0 {
		var err error
		root, err = tree.GetRootHash(nil)
		require.NoError(t, err)
	}
	return fmt.Sprintf("%x%x", binary.BigEndian.AppendUint64(nil, uint64(len(entries))), root)
}

// treeOf is the same as the state in a file has it; nothing if the file has no tables yet.
func treeOf(t require.TestingT, file string) (head string) {
	tables := 0
	query(t, file, "SELECT count(*) FROM sqlite_schema WHERE name = 'tree'", func(stmt *zsqlite.Stmt) { tables = stmt.ColumnInt(0) })
	if tables == 0 {
		return ""
	}
	query(t, file, "SELECT lower(hex(substr(value, 1, 40))) FROM meta WHERE name = 'head'", func(stmt *zsqlite.Stmt) { head = stmt.ColumnText(0) })
	return head
}

// treeFits says that the tree of a state is that of its entries, and that no decision comes before the activation of a
// policy.
func treeFits(t require.TestingT, file string) {
	head := treeOf(t, file)
	if head == "" {
		return
	}
	entries := logged(t, file)
	require.Equal(t, sizeAndRoot(t, entries), head, "the tree of %s is that of its entries", file)
	active := false
	for i, e := range entries {
		active = active || bytes.Contains(e, []byte(`"kind":"activation"`))
		require.True(t, active || !bytes.Contains(e, []byte(`"kind":"decision"`)), "entry %d of %s is a decision under no policy on record", i, file)
	}
}

// exported gives the lines of an export.
func exported(text string) (lines [][]byte) {
	for line := range strings.Lines(text) {
		lines = append(lines, []byte(strings.TrimSuffix(line, "\n")))
	}
	return lines
}
