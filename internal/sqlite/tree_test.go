package sqlite

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// untie changes a store as somebody with an editor does, whom no trigger stops, and who leaves no trace of that.
func untie(t *testing.T, path, sql string) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	require.NoError(t, err)
	var drop, create string
	require.NoError(t, sqlitex.ExecuteTransient(conn, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		drop += "DROP TRIGGER " + stmt.ColumnText(0) + ";"
		create += stmt.ColumnText(1) + ";"
		return nil
	}}))
	for _, script := range []string{drop, sql, create} {
		require.NoError(t, sqlitex.ExecuteScript(conn, script, nil))
	}
	require.NoError(t, conn.Close())
}

// tampered are changes of a log of 100 entries that show at its tail.
var tampered = map[string]struct{ sql, want string }{
	"the last entry is deleted":            {"DELETE FROM entries WHERE seq = 100", "the head counts 100 entries, the table of entries ends with number 99"},
	"the last entry is deleted everywhere": {"DELETE FROM entries WHERE seq = 100; DELETE FROM tree WHERE leaf = 99", "the head counts 100 entries, the table of entries ends with number 99, and the tree has 99 leaves"},
	"all entries are deleted":              {"DELETE FROM entries; DELETE FROM tree", "ends with number 0"},
	"an entry is added":                    {"INSERT INTO entries SELECT 101, tenant, task, 200, n, kind, body FROM entries WHERE seq = 100", "ends with number 101"},
	"an entry near the end is deleted":     {"DELETE FROM entries WHERE seq = 90", "entry 89 is missing"},
	"an entry near the end is changed":     {"UPDATE entries SET body = x'7b7d' WHERE seq = 90", "entry 89 is not the one that was written"},
	"an entry is changed with its leaf":    {"UPDATE entries SET body = x'7b7d' WHERE seq = 90; UPDATE tree SET hashes = CAST(x'LEAF' || substr(hashes, 33) AS BLOB) WHERE leaf = 89", "one of the last 64 entries is not the one that was written"},
	"two entries are swapped":              {"UPDATE entries SET seq = 1000 WHERE seq = 90; UPDATE entries SET seq = 90 WHERE seq = 91; UPDATE entries SET seq = 91 WHERE seq = 1000", "entry 89 is not the one that was written"},
	"a leaf is deleted":                    {"DELETE FROM tree WHERE leaf = 99", "the tree has 99 leaves"},
	"an inner hash is changed":             {"UPDATE tree SET hashes = CAST(substr(hashes, 1, 32) || zeroblob(length(hashes) - 32) AS BLOB) WHERE leaf = 63", "the hashes of the tree do not give its root"},
	"a hash is cut off":                    {"UPDATE tree SET hashes = substr(hashes, 1, 32) WHERE leaf = 63", "the tree has no hash of node"},
	"the head is deleted":                  {"DELETE FROM meta WHERE name = 'head'", "the head of the tree is missing"},
	"the head is no head":                  {"UPDATE meta SET value = x'00' WHERE name = 'head'", "the head of the tree cannot be read"},
	"the head is another":                  {"UPDATE meta SET value = CAST(substr(value, 1, 7) || x'63' || substr(value, 9) AS BLOB) WHERE name = 'head'", "was not written by a govern with this state's key"},
}

// A log that was cut, changed or added to near its end is refused when its store is opened, and left as it is.
func TestALogThatDoesNotVerifyAtItsTail(t *testing.T) {
	for name, c := range tampered {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			logOf(t, path, 100)
			leaf := merkle.Leaf([]byte(`{}`))
			untie(t, path, strings.ReplaceAll(c.sql, "LEAF", hex.EncodeToString(leaf[:])))
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = Open(t.Context(), path, Options{})
			require.ErrorContains(t, err, c.want)
			for _, want := range []string{path, "does not verify at its tail", "govern log verify --state " + path, "backup"} {
				assert.Contains(t, err.Error(), want)
			}
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, before, after)
		})
	}
}

// logOf makes a store with that many entries, and closes it.
func logOf(t *testing.T, path string, entries int) {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	require.NoError(t, err)
	task := createTask(t, s, "labels-1")
	for i := range entries - 1 {
		c := next(task)
		c.Entries[0].Body = fmt.Appendf(nil, `{"i":%d}`, i)
		require.NoError(t, s.Apply(t.Context(), c))
		task = c.Task
	}
	head, err := s.Head(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, entries, head.Size)
	require.NoError(t, s.Close())
}

// What is changed while a store is in use stops the next commit that reads the tip again.
func TestALogThatIsChangedWhileItIsUsed(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	task := createTask(t, s, "labels-1")
	untie(t, path, "UPDATE meta SET value = CAST(zeroblob(length(value)) AS BLOB) WHERE name = 'head'")
	err := s.Apply(t.Context(), next(task))
	require.ErrorContains(t, err, "does not verify at its tail")
	have, err := s.Task(t.Context(), task.TaskKey)
	require.NoError(t, err)
	assert.Equal(t, task, have)
}

// An entry of somebody else's at the place of the next one is no other commit that came first.
func TestAnEntryThatIsAddedWhileALogIsUsed(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	task := createTask(t, s, "labels-1")
	untie(t, path, "INSERT INTO entries SELECT 2, tenant, task, 200, n, kind, body FROM entries WHERE seq = 1")
	for range 2 {
		err := s.Apply(t.Context(), next(task))
		require.NotErrorIs(t, err, dispatch.ErrMoved)
		require.ErrorContains(t, err, "does not verify at its tail")
	}
}

// A head that is changed while a store is in use is not passed on.
func TestAHeadThatIsChangedWhileItIsUsed(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	createTask(t, s, "labels-1")
	head, err := s.Head(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, head.Size)
	untie(t, path, "UPDATE meta SET value = CAST(substr(value, 1, 8) || zeroblob(32) || substr(value, 41) AS BLOB) WHERE name = 'head'")
	_, err = s.Head(t.Context())
	require.ErrorContains(t, err, "was not written by a govern with this state's key")
	require.ErrorContains(t, err, "govern log verify")
}

// So do rows that are gone from its end, though nobody has touched the head.
func TestALogThatIsCutWhileItIsUsed(t *testing.T) {
	for name, sql := range map[string]string{"entries": "DELETE FROM entries WHERE seq = 2", "leaves": "DELETE FROM tree WHERE leaf = 1"} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s := openFile(t, path)
			task := createTask(t, s, "labels-1")
			c := next(task)
			require.NoError(t, s.Apply(t.Context(), c))
			untie(t, path, sql)
			err := s.Apply(t.Context(), next(c.Task))
			require.ErrorContains(t, err, "does not verify at its tail: the head counts 2 entries")
			have, err := s.Task(t.Context(), task.TaskKey)
			require.NoError(t, err)
			assert.Equal(t, c.Task, have)
		})
	}
}

// The tree is right whoever grows it: two stores on one file take turns.
func TestTwoStoresGrowOneTree(t *testing.T) {
	path := newPath(t)
	a, b := openFile(t, path), openFile(t, path)
	left, right := createTask(t, a, "left"), createTask(t, b, "right")
	for range 40 {
		c, d := next(left), next(right)
		require.NoError(t, a.Apply(t.Context(), c))
		require.NoError(t, b.Apply(t.Context(), d))
		left, right = c.Task, d.Task
	}
	sound(t, a)
}

// sound checks that the tree is that of the entries.
func sound(t *testing.T, s *Store) {
	t.Helper()
	var edge merkle.Edge
	for e, err := range s.EntriesFrom(t.Context(), 0) {
		require.NoError(t, err)
		edge.Append(merkle.Leaf(e.Body), nil)
	}
	head, err := s.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, edge.Head(), head)
}

// A store without a tree gets one when it is opened, and says so on record.
func TestALogThatIsOlderThanItsTree(t *testing.T) {
	path := newPath(t)
	version1(t, path)
	s := openFile(t, path)
	sound(t, s)
	const old = 9
	last, found, err := s.LastEntry(t.Context(), "", dispatch.KindBaseline)
	require.NoError(t, err)
	require.True(t, found)
	var e dispatch.BaselineEntry
	require.NoError(t, ijson.Unmarshal(last.Body, &e))
	assert.EqualValues(t, old, e.Entries)
	head, err := s.Head(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, old+1, head.Size)
	require.NoError(t, s.Close())

	again := openFile(t, path)
	same, err := again.Head(t.Context())
	require.NoError(t, err)
	assert.Equal(t, head, same, "once")
}

// One that has lost entries before it had a tree gets none.
func TestALogWithAHoleGetsNoTree(t *testing.T) {
	path := newPath(t)
	version1(t, path)
	untie(t, path, "DELETE FROM entries WHERE seq = 3")
	_, err := Open(t.Context(), path, Options{})
	require.ErrorContains(t, err, "entry 2 of the log is missing")
}

func TestTheTreeIsNeverChanged(t *testing.T) {
	path := newPath(t)
	logOf(t, path, 3)
	for _, sql := range []string{"UPDATE tree SET hashes = x'00'", "DELETE FROM tree", "UPDATE contents SET bytes = x'00'", "DELETE FROM contents",
		"UPDATE operations SET step = 2", "DELETE FROM operations", "UPDATE records SET value = x'00'", "DELETE FROM records"} {
		conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
		require.NoError(t, err)
		err = sqlitex.ExecuteScript(conn, "INSERT OR IGNORE INTO contents VALUES ('x', x'01'); "+
			"INSERT OR IGNORE INTO operations (tenant, task, actor, key, dispatch, id, signature, tool, state, step, run, lookups) VALUES ('t', 'k', 'a', 'o', 0, 'op', 's', 'x', 'committed', 1, 1, 0);"+
			"INSERT OR IGNORE INTO records VALUES ('t', 'k', 'x', 'y', x'01', NULL);"+sql, nil)
		require.Error(t, err, sql)
		assert.True(t, strings.Contains(err.Error(), "never"), fmt.Sprint(err))
		require.NoError(t, conn.Close())
	}
}
