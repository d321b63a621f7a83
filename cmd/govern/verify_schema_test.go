package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	zsqlite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/audit"
)

// What the audit knows of a state's tables is what they are.
func TestTheAuditKnowsTheSchema(t *testing.T) {
	var want strings.Builder
	query(t, eventfulFile(t), "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY type, name", func(stmt *zsqlite.Stmt) {
		digest := "-"
		if stmt.ColumnText(0) != "table" {
			digest = fmt.Sprintf("%x", sha256.Sum256([]byte(stmt.ColumnText(2))))
		}
		fmt.Fprintln(&want, stmt.ColumnText(0), stmt.ColumnText(1), digest)
	})
	have, err := os.ReadFile("../../internal/audit/schema.txt")
	require.NoError(t, err)
	assert.Equal(t, want.String(), string(have))
}

func TestAuditNamesWhatIsNotTheSchema(t *testing.T) {
	whole := eventfulFile(t)
	for name, c := range map[string]struct{ script, want string }{
		"a trigger more": {"CREATE TRIGGER forget AFTER INSERT ON entries BEGIN DELETE FROM approvals; END", "govern has made no trigger forget"},
		"an index less":  {"DROP INDEX approvals_open", "the index approvals_open is missing"},
		"another index":  {"DROP INDEX approvals_open; CREATE INDEX approvals_open ON approvals (tenant)", "the index approvals_open is not the one that govern made"},
		"a table more":   {"CREATE TABLE mine (x)", "govern has made no table mine"},
		"a trigger's body": {"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'never deleted', 'deleted') WHERE name = 'entries_never_go'; PRAGMA writable_schema = OFF",
			"the trigger entries_never_go is not the one that govern made"},
	} {
		t.Run(name, func(t *testing.T) {
			file := copyState(t, whole)
			conn, err := zsqlite.OpenConn(file, zsqlite.OpenReadWrite)
			require.NoError(t, err)
			require.NoError(t, sqlitex.ExecuteScript(conn, c.script+";", nil))
			require.NoError(t, conn.Close())
			r, err := audit.State(t.Context(), file, audit.Options{})
			require.NoError(t, err)
			require.Len(t, r.Findings, 1)
			assert.Equal(t, audit.SchemaDiffers, r.Findings[0].Code)
			assert.Equal(t, c.want, r.Findings[0].Message)
		})
	}
}
