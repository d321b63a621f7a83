package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// The exact call of an operation opens in its own row alone, and not as what the operation gave.
func TestAnExactCallHasItsOwnPlace(t *testing.T) {
	for name, sql := range map[string]string{
		"another row's":             "UPDATE operations SET proposal_sealed = (SELECT o.proposal_sealed FROM operations AS o WHERE o.task = 'labels-2' AND o.dispatch = 1) WHERE task = 'labels-1'",
		"another operation's":       "UPDATE operations SET proposal_sealed = (SELECT o.proposal_sealed FROM operations AS o WHERE o.task = 'labels-1' AND o.dispatch = 1) WHERE task = 'labels-1' AND dispatch = 2",
		"a result, of its own":      "UPDATE operations SET state = 'committed', result = x'00', sealed = proposal_sealed, proposal_sealed = NULL",
		"a call, of its own result": "UPDATE operations SET proposal_sealed = (SELECT o.sealed FROM operations AS o WHERE o.task = operations.task AND o.dispatch = 3) WHERE dispatch = 1",
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s := openFile(t, path)
			for _, id := range []string{"labels-1", "labels-2"} {
				task := createTask(t, s, id)
				for i := 1; i <= 3; i++ {
					c := next(task)
					c.Operation = &dispatch.OperationChange{Operation: started(task, i)}
					if i == 3 {
						c.Operation.State, c.Operation.Exact = dispatch.Committed, exact
					}
					require.NoError(t, s.Apply(t.Context(), c))
					task = c.Task
				}
			}
			list := func() error {
				_, err := s.Operations(t.Context(), dispatch.DefaultTenant, "labels-1")
				return err
			}
			require.NoError(t, list())
			untie(t, path, sql)
			require.ErrorIs(t, list(), seal.ErrClosed)
			require.ErrorContains(t, list(), " of the table operations: its sealed bytes do not open")
			// A load of another call goes on.
			_, err := s.Load(t.Context(), named("labels-1"), dispatch.Lookup{})
			require.NoError(t, err)
		})
	}
}

// started is a call of an outside tool that has no key, with an exact call.
func started(task dispatch.Task, step int) dispatch.Operation {
	return dispatch.Operation{ID: dispatch.OperationID(task.TaskKey, "learner", "", step), Task: task.TaskKey, Actor: "learner", Dispatch: step,
		Signature: "signature", Tool: "send_message", State: dispatch.Started, Step: step, Run: 1, Effect: fmt.Sprint("effect-", step),
		Definition: "definition", Outward: "outward", Since: started0, Lease: started0.Add(time.Minute),
		Proposal: ijson.Raw(`{}`), ExactProposal: exact}
}

var started0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The tables themselves hold against a program that tells of an operation otherwise than it moves.
func TestTablesKeepOperations(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	task := createTask(t, s, "labels-1")
	c := next(task)
	c.Operation = &dispatch.OperationChange{Operation: started(task, 1)}
	require.NoError(t, s.Apply(t.Context(), c))

	for _, column := range []string{"tenant", "task", "actor", "key", "dispatch", "id"} {
		assert.ErrorContains(t, tamper(t, path, "UPDATE operations SET "+column+" = "+column), "never changed", column)
	}
	for _, change := range []string{
		"run = 2", "lookups = 1", "state = 'started'", "proposal_sealed = NULL", // no move at all
		"state = 'unknown', proposal_sealed = NULL", "state = 'unknown', proposal_sealed = x'01'",
		"state = 'committed'", // and the exact call stays
		"state = 'unknown', outward = NULL", "state = 'unknown', since = '2026-03-01T12:00:01.000Z'", "state = 'unknown', proposal = x'01'",
	} {
		assert.ErrorContains(t, tamper(t, path, "UPDATE operations SET "+change), "changed", change)
	}
	require.NoError(t, tamper(t, path, "UPDATE operations SET state = 'absent'"))
	for _, change := range []string{
		"state = 'committed', proposal_sealed = NULL, signature = 'other'", "state = 'committed', proposal_sealed = NULL, outward = 'other'", "state = 'started'", "state = 'unknown'",
	} {
		assert.ErrorContains(t, tamper(t, path, "UPDATE operations SET "+change), "changed", change)
	}
	require.NoError(t, tamper(t, path, "UPDATE operations SET state = 'started', run = 2, step = 3, signature = 'other', proposal_sealed = x'02'"))
	require.NoError(t, tamper(t, path, "UPDATE operations SET state = 'committed', proposal_sealed = NULL"))
	for _, change := range []string{"step = step", "result = x'01'", "sealed = x'01'", "state = 'unknown'", "approval = 'other'"} {
		assert.ErrorContains(t, tamper(t, path, "UPDATE operations SET "+change), "never changed", change)
	}
	assert.ErrorContains(t, tamper(t, path, "DELETE FROM operations"), "never deleted")
}

// Only an approval that comes back gets bytes.
func TestTablesGiveAnExactCallBackOnce(t *testing.T) {
	_, path, _ := secrets(t)
	require.NoError(t, tamper(t, path, "UPDATE approvals SET state = 'consumed', sealed = NULL"))
	for _, change := range []string{"sealed = x'01'", "state = 'pending', sealed = x'01'", "state = 'withdrawn', sealed = x'01'", "state = 'rejected', sealed = x'01'"} {
		assert.ErrorContains(t, tamper(t, path, "UPDATE approvals SET "+change), "never changed", change)
	}
	require.NoError(t, tamper(t, path, "UPDATE approvals SET state = 'approved', sealed = x'01'"))
	assert.ErrorContains(t, tamper(t, path, "UPDATE approvals SET sealed = x'02'"), "never changed")
}
