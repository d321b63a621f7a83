package sqlite

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
)

// What the migrations make is what a store is opened with.
func TestSchemaDigest(t *testing.T) {
	conn, err := sqlite.OpenConn(":memory:")
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, migrate(conn, 0))
	digest, err := digestOfSchema(conn)
	require.NoError(t, err)
	assert.Equal(t, digest, schemaDigest)
	assert.NoError(t, checkSchema(conn))
}

// A state of which somebody has changed triggers or indexes is refused, and left as it is.
func TestForeignSchemas(t *testing.T) {
	for name, script := range map[string]string{
		"a trigger more":             "CREATE TRIGGER forget AFTER INSERT ON entries BEGIN DELETE FROM approvals; END",
		"a trigger less":             "DROP TRIGGER tree_never_changes",
		"another trigger":            "DROP TRIGGER tree_never_changes; CREATE TRIGGER tree_never_changes BEFORE UPDATE ON tree BEGIN SELECT 1; END",
		"an index less":              "DROP INDEX approvals_open",
		"an index that lets through": "DROP INDEX approvals_open; CREATE INDEX approvals_open ON approvals (tenant, task, signature, definition, mode) WHERE state IN ('pending', 'approved')",
		"a view":                     "CREATE VIEW mine AS SELECT 1",
		"a table":                    "CREATE TABLE mine (x)",
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			logOf(t, path, 3)
			require.NoError(t, tamper(t, path, script))
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = Open(t.Context(), path, Options{})
			for _, want := range []string{path, "are not those that govern makes", "govern log verify --state " + path, "backup"} {
				require.ErrorContains(t, err, want)
			}
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, before, after)
		})
	}
	t.Run("what SQLite gathers for itself", func(t *testing.T) {
		path := newPath(t)
		logOf(t, path, 3)
		require.NoError(t, tamper(t, path, "ANALYZE"))
		openFile(t, path)
	})
}
