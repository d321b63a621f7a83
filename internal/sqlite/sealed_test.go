package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/seal"
)

var exact = ijson.Raw(`{"value":"S3CR3T"}`)

// secrets is a store in a file with a row of each table that keeps exact bytes.
func secrets(t *testing.T) (s *Store, path string, lookup dispatch.Lookup) {
	path = newPath(t)
	s = openFile(t, path)
	for _, id := range []string{"labels-1", "labels-2"} {
		c, l := draft(createTask(t, s, id))
		for i := range c.Approvals {
			c.Approvals[i].Exact, c.Approvals[i].ID, c.Approvals[i].State = exact, "ap-"+id, dispatch.Pending
		}
		c.Operation.Exact, c.Record.Exact, lookup = exact, exact, l
		require.NoError(t, s.Apply(t.Context(), c))
	}
	return s, path, lookup
}

// The bytes are in no file of the state, whatever of it is still in the log of commits.
func TestExactBytesAreInNoFile(t *testing.T) {
	_, path, _ := secrets(t)
	files, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.Contains(t, files, path+"-wal")
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NotContains(t, string(b), "S3CR3T", file)
	}
}

// tamper changes the file with SQLite alone.
func tamper(t *testing.T, path, script string) error {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	return sqlitex.ExecuteScript(conn, script, nil)
}

// The tables themselves hold against a program that changes what belongs to a call, or takes it away too early.
func TestTablesKeepTheExactCall(t *testing.T) {
	s, path, _ := secrets(t)
	for _, change := range []string{
		"sealed = x'01'", "sealed = NULL", "state = 'consumed'", "state = 'withdrawn', sealed = x'01'", "state = 'rejected', sealed = NULL", "proposal = x'01'",
	} {
		assert.ErrorContains(t, tamper(t, path, "UPDATE approvals SET "+change), "never changed", change)
	}
	require.NoError(t, tamper(t, path, "UPDATE approvals SET state = 'rejected'; UPDATE approvals SET state = 'withdrawn', sealed = NULL"))
	a, err := s.Approval(t.Context(), dispatch.DefaultTenant, "ap-labels-1")
	require.NoError(t, err)
	assert.Nil(t, a.Exact)
}

// What was damaged, or lay at another row, is an error that names the row, and no value.
func TestBytesThatDoNotOpen(t *testing.T) {
	for name, sql := range map[string]string{
		"damaged":            "UPDATE TABLE SET sealed = CAST(sealed || x'00' AS BLOB)",
		"cut":                "UPDATE TABLE SET sealed = substr(sealed, 1, 20)",
		"empty":              "UPDATE TABLE SET sealed = x''",
		"in clear":           "UPDATE TABLE SET sealed = CAST('{\"value\":\"84\"}' AS BLOB)",
		"of another row":     "UPDATE TABLE SET sealed = (SELECT sealed FROM TABLE WHERE task = 'labels-2') WHERE task = 'labels-1'",
		"of another table":   "UPDATE TABLE SET sealed = (SELECT sealed FROM OTHER WHERE task = 'labels-1') WHERE task = 'labels-1'",
		"of another version": "UPDATE TABLE SET sealed = CAST(x'02' || substr(sealed, 2) AS BLOB)",
	} {
		for table, look := range map[string]func(s *Store, l dispatch.Lookup) error{
			"approvals": func(s *Store, _ dispatch.Lookup) error {
				_, err := s.Approval(t.Context(), dispatch.DefaultTenant, "ap-labels-1")
				return err
			},
			"operations": func(s *Store, l dispatch.Lookup) error {
				_, err := s.Load(t.Context(), named("labels-1"), l)
				_, listed := s.Operations(t.Context(), dispatch.DefaultTenant, "labels-1")
				require.Equal(t, err, listed)
				return err
			},
			"records": func(s *Store, _ dispatch.Lookup) error {
				_, err := s.Records(t.Context(), dispatch.DefaultTenant, "labels-1")
				return err
			},
		} {
			t.Run(name+"/"+table, func(t *testing.T) {
				s, path, lookup := secrets(t)
				require.NoError(t, look(s, lookup))
				other := map[string]string{"approvals": "records", "operations": "records", "records": "operations"}[table]
				// Triggers are no hindrance to who can write the file.
				untie(t, path, strings.NewReplacer("TABLE", table, "OTHER", other).Replace(sql))

				err := look(s, lookup)
				require.ErrorIs(t, err, seal.ErrClosed)
				require.ErrorContains(t, err, `the row ["default" "labels-1" "`)
				require.ErrorContains(t, err, " of the table "+table+": its sealed bytes do not open")
				require.ErrorContains(t, err, "restore it, and its key, from the same backup")
				// Lists of approvals work all the same, so that a task can be cancelled.
				all, err := s.Approvals(t.Context(), dispatch.DefaultTenant, "")
				require.NoError(t, err)
				assert.Len(t, all, 2)
			})
		}
	}
}
