package sqlite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// draft is a commit with a row of every kind, as an allowed write makes it, and what is looked up for it.
func draft(task dispatch.Task) (dispatch.Commit, dispatch.Lookup) {
	c := next(task)
	name := fmt.Sprint(c.Task.Steps)
	c.Approvals = []dispatch.ApprovalChange{{Approval: dispatch.Approval{
		ID: task.ID + "-" + name, Task: task.TaskKey, Signature: name, Mode: dispatch.Enforce, State: dispatch.Consumed, Proposal: []byte("{}")}}}
	c.Operation = &dispatch.OperationChange{Operation: dispatch.Operation{ID: task.ID + "-" + name, Task: task.TaskKey, Key: name,
		State: dispatch.Committed, Run: 1, Result: []byte("{}")}}
	c.Record = &dispatch.Record{Task: task.TaskKey, Tool: "record_draft", Target: name, Value: []byte("{}")}
	c.Entries = append(c.Entries, dispatch.Entry{Task: task.TaskKey, Step: c.Task.Steps, N: 1, Kind: dispatch.KindAction, Body: []byte("{}")})
	return c, dispatch.Lookup{Signature: name, Mode: dispatch.Enforce, Key: name, Tool: "record_draft", Target: name}
}

// ran gives the statements that a function has run.
func ran(t *testing.T, do func()) (all []string) {
	t.Helper()
	testingOnlyRan = func(sql string) { all = append(all, sql) }
	defer func() { testingOnlyRan = nil }()
	do()
	return all
}

// What a dispatch asks of the database, by count: each statement that is added is seen here.
func TestStatementsOfADispatch(t *testing.T) {
	s := openFile(t, newPath(t))
	tasks := make([]dispatch.Task, 10)
	for i := range tasks {
		tasks[i] = createTask(t, s, fmt.Sprint(i))
	}
	_, err := s.Load(t.Context(), tasks[0].TaskKey, dispatch.Lookup{}) // opens a connection
	require.NoError(t, err)
	rows := []string{sqlTaskChange, sqlApprovalCreate, sqlOperationCreate, sqlRecordCreate, sqlEntryCreate, sqlEntryCreate}

	c, lookup := draft(tasks[0])
	assert.Equal(t, []string{"BEGIN", sqlTask, sqlApprovalLatest, sqlOperation, sqlOpen, sqlPending, sqlRecordExists, "COMMIT"},
		ran(t, func() {
			_, err := s.Load(t.Context(), c.Task.TaskKey, lookup)
			assert.NoError(t, err)
		}))
	leaves := []string{sqlTreeAdd, sqlTreeAdd}
	one := slices.Concat([]string{"BEGIN IMMEDIATE", sqlTreeTip}, rows, leaves, []string{sqlMetaChange, "COMMIT"})
	assert.Equal(t, one, ran(t, func() { assert.NoError(t, s.Apply(t.Context(), c)) }))

	many, grown := []string{"BEGIN IMMEDIATE", sqlTreeTip}, []string{}
	var batch []*request
	for _, task := range tasks[1:] {
		c, _ := draft(task)
		r, err := encode(c)
		require.NoError(t, err)
		batch = append(batch, &request{rows: r})
		many, grown = append(many, rows...), append(grown, leaves...)
	}
	many = slices.Concat(many, grown, []string{sqlMetaChange, "COMMIT"})
	assert.Equal(t, many, ran(t, func() { s.writer.run(batch) }))
	for _, req := range batch {
		assert.NoError(t, req.err)
	}
}

// A statement is planned once for each connection. SQLite plans some anew for each value that is bound to them.
func TestStatementsOfADispatchArePlannedOnce(t *testing.T) {
	s := openFile(t, newPath(t))
	task := createTask(t, s, "labels-1")
	planned := 0
	count := sqlite.AuthorizeFunc(func(sqlite.Action) sqlite.AuthResult { planned++; return sqlite.AuthResultOK })
	require.NoError(t, s.writer.conn.SetAuthorizer(count))
	require.NoError(t, s.readers.snapshot(t.Context(), func(conn *sqlite.Conn) error { return conn.SetAuthorizer(count) }))

	step := func() {
		c, lookup := draft(task)
		_, err := s.Load(t.Context(), task.TaskKey, lookup)
		require.NoError(t, err)
		require.NoError(t, s.Apply(t.Context(), c))
		task = c.Task
	}
	for range 2 { // a new authorizer has everything planned again, BEGIN only now
		step()
	}
	require.NotZero(t, planned, "the authorizer hears of plans")
	planned = 0
	for range 3 {
		step()
	}
	assert.Zero(t, planned)
}
