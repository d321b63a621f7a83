package sqlite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// version1 makes a store as the first version of the tables had it, with two tasks: one that has run and one that has not.
// Another tenant has a task of the first's name.
func version1(t *testing.T, path string) {
	t.Helper()
	first, err := migrations.ReadFile("migrations/0001_state.sql")
	require.NoError(t, err)
	of := func(tenant string, step, n int, kind, body string) string {
		return fmt.Sprintf("INSERT INTO entries (tenant, task, step, n, kind, body) VALUES ('%s', 'labels-1', %d, %d, '%s', CAST('%s' AS BLOB));\n", tenant, step, n, kind, body)
	}
	entry := func(step, n int, kind, body string) string { return of("default", step, n, kind, body) }
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	require.NoError(t, err)
	require.NoError(t, sqlitex.ExecuteScript(conn, string(first)+
		"INSERT INTO tasks VALUES ('default', 'labels-1', 'labels', 'learner', 4, 0, NULL, '2026-03-01T12:00:00.000Z', 1, 9);\n"+
		"INSERT INTO tasks VALUES ('default', 'labels-2', 'labels', 'learner', 0, 1, NULL, '2026-03-01T12:00:00.000Z', 1, 2);\n"+
		"INSERT INTO tasks VALUES ('other', 'labels-1', 'labels', 'learner', 1, 0, NULL, '2026-03-01T12:00:00.000Z', 1, 3);\n"+
		"INSERT INTO operations VALUES ('default', 'labels-1', 'learner', 'draft-1', 'sig', 'record_draft', 1, CAST('{\"draft_id\":\"d\"}' AS BLOB));\n"+
		"INSERT INTO operations VALUES ('default', 'labels-1', 'learner', 'draft-2', 'sig', 'record_draft', 2, NULL);\n"+
		"INSERT INTO records VALUES ('default', 'labels-1', 'record_draft', 'd', CAST('{\"body\":\"é\"}' AS BLOB));\n"+
		of("other", 1, 0, "decision", `{"decision":{"effect":"allow"},"status":"ok"}`)+
		of("other", 1, 1, "action", `{"value":"beside"}`)+
		entry(0, 0, "task", `{"kind":"task"}`)+
		entry(1, 0, "decision", `{"decision":{"effect":"allow"},"status":"ok"}`)+
		entry(1, 1, "action", `{"value":{"a":"é\n","b":[1e+30,0.1]}}`)+
		entry(2, 0, "decision", `{"decision":{"effect":"allow"},"status":"timeout"}`)+
		entry(3, 0, "decision", `{"decision":{"effect":"deny"},"status":"tool_denied"}`)+
		entry(4, 0, "decision", `{"decision":{"effect":"allow"},"status":"ok"}`)+
		entry(4, 1, "action", `{"value":84}`)+
		fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = 1;", applicationID), nil))
	require.NoError(t, conn.Close())
}

// A store of the first version opens, with everything in it, and knows what its tasks have spent: two runs that gave
// something, and one that did not.
func TestUpgradeFromVersion1(t *testing.T) {
	path := newPath(t)
	version1(t, path)
	s := openFile(t, path)
	assert.Equal(t, len(migrationNames()), pragma(t, s.writer.conn, "user_version"))

	ran, err := s.Task(t.Context(), named("labels-1"))
	require.NoError(t, err)
	assert.Equal(t, dispatch.Spent{Attempts: 3, Output: int64(len(`{"a":"é\n","b":[1e+30,0.1]}`) + len(`84`))}, ran.Spent)
	assert.Equal(t, []any{"labels", "learner", 4, false, 1, int64(9)}, []any{ran.Profile, ran.Actor, ran.Steps, ran.Cancelled, ran.Entries, ran.Revision})
	idle, err := s.Task(t.Context(), named("labels-2"))
	require.NoError(t, err)
	assert.Zero(t, idle.Spent)
	assert.True(t, idle.Cancelled)

	operations, err := s.Operations(t.Context(), "default", "")
	require.NoError(t, err)
	of := func(key string, step int, result ijson.Raw) dispatch.Operation {
		return dispatch.Operation{ID: dispatch.OperationID(named("labels-1"), "learner", key, 0), Task: named("labels-1"), Actor: "learner", Key: key,
			Signature: "sig", Tool: "record_draft", State: dispatch.Committed, Step: step, Run: 1, Result: result}
	}
	assert.Equal(t, []dispatch.Operation{of("draft-1", 1, ijson.Raw(`{"draft_id":"d"}`)), of("draft-2", 2, nil)}, operations)
	records, err := s.Records(t.Context(), "default", "")
	require.NoError(t, err)
	assert.Equal(t, []dispatch.Record{{Task: named("labels-1"), Tool: "record_draft", Target: "d", Value: ijson.Raw(`{"body":"é"}`)}}, records)

	c := next(ran)
	c.Task.Spent.Cost = 5
	require.NoError(t, s.Apply(t.Context(), c))
	again, err := s.Task(t.Context(), named("labels-1"))
	require.NoError(t, err)
	assert.Equal(t, c.Task, again)
}

// version5 makes the tables of a store what they were before operations moved. Its rows stay.
func version5(t *testing.T, path string) {
	t.Helper()
	old, err := sqlite.OpenConn(":memory:")
	require.NoError(t, err)
	for _, name := range migrationNames()[:5] {
		script, err := migrations.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, sqlitex.ExecuteScript(old, string(script), nil))
	}
	kept := map[string]string{}
	require.NoError(t, each(old, "SELECT name, sql FROM sqlite_schema WHERE name = 'operations' OR type = 'trigger' AND (tbl_name = 'operations' OR name = 'approvals_keep_their_bytes')", nil,
		func(stmt *sqlite.Stmt) (bool, error) {
			kept[stmt.GetText("name")] = stmt.GetText("sql")
			return true, nil
		}))
	require.NoError(t, old.Close())
	require.Len(t, kept, 4)
	require.NoError(t, tamper(t, path, "DROP TRIGGER approvals_keep_their_bytes; DROP TRIGGER operations_never_go; ALTER TABLE operations RENAME TO moving;\n"+
		kept["operations"]+"; INSERT INTO operations SELECT tenant, task, actor, key, signature, tool, step, result, sealed FROM moving; DROP TABLE moving;\n"+
		kept["operations_never_change"]+";"+kept["operations_never_go"]+";"+kept["approvals_keep_their_bytes"]+";"+
		"ALTER TABLE tasks DROP COLUMN in_flight; PRAGMA user_version = 5;"))
}

// The operations that were committed before they moved are what they were, under whatever names, and have their ids. What
// is sealed in them opens.
func TestUpgradeFromVersion5(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	var want []dispatch.Operation
	for _, name := range []string{"labels-1", "a\x00b", `"é`} {
		task := creation(name)
		require.NoError(t, s.Apply(t.Context(), task))
		c, _ := draft(task.Task)
		o := &c.Operation.Operation
		o.Actor, o.Key, o.Signature, o.Tool, o.Step, o.Exact = name, name, "sig", "record_draft", 1, exact
		o.ID = dispatch.OperationID(o.Task, o.Actor, o.Key, 0)
		require.NoError(t, s.Apply(t.Context(), c))
		want = append(want, *o)
	}
	before, err := s.Operations(t.Context(), dispatch.DefaultTenant, "")
	require.NoError(t, err)
	require.ElementsMatch(t, want, before)
	tasks, err := s.Tasks(t.Context(), dispatch.DefaultTenant)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	version5(t, path)

	s = openFile(t, path)
	after, err := s.Operations(t.Context(), dispatch.DefaultTenant, "")
	require.NoError(t, err)
	assert.Equal(t, before, after)
	for _, o := range before {
		found, err := s.Operation(t.Context(), dispatch.DefaultTenant, o.ID)
		require.NoError(t, err)
		assert.Equal(t, o, found)
	}
	same, err := s.Tasks(t.Context(), dispatch.DefaultTenant)
	require.NoError(t, err)
	assert.Equal(t, tasks, same)
}

// An upgrade that fails leaves the file as it was.
func TestAnUpgradeIsDoneWholeOrNotAtAll(t *testing.T) {
	path := newPath(t)
	openFile(t, path)
	version5(t, path)
	require.NoError(t, tamper(t, path, "INSERT INTO operations VALUES ('default', 'labels-1', 'learner', CAST(x'ff' AS TEXT), 'sig', 'record_draft', 1, NULL, NULL)"))
	for range 2 {
		_, err := Open(t.Context(), path, Options{})
		require.ErrorContains(t, err, "0006_outside.sql")
		require.ErrorContains(t, err, "NOT NULL constraint failed: moving_operations.id")
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	require.NoError(t, err)
	assert.Equal(t, 5, pragma(t, conn, "user_version"))
	require.NoError(t, conn.Close())
}
