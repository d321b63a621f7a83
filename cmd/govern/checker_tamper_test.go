package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	zsqlite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/config"
)

// noFaults has the independent checker look at a state.
func noFaults(t require.TestingT, file string) {
	found, err := faultsOf(file)
	require.NoError(t, err)
	require.Empty(t, found, "%s", file)
	treeFits(t, file)
}

// eventfulFile is the file of a state in which everything happened that can.
func eventfulFile(t *testing.T) string {
	t.Helper()
	c, err := parseConfig("")
	require.NoError(t, err)
	budgets(config.Budgets{})(&c)
	g, err := assemble(t.Context(), c)
	require.NoError(t, err)
	l := emptyLab(t, g, filepath.Join(t.TempDir(), "govern.db"))
	eventful(l)
	require.NoError(t, l.store.Close())
	return l.file
}

// A checker that finds nothing in a sound state finds each thing that was tampered with, and says what it is.
func TestCheckerFindsEveryTampering(t *testing.T) {
	whole := eventfulFile(t)
	noFaults(t, whole)
	// change replaces text in the body of an entry.
	change := func(step, n int, old, new string) string {
		return fmt.Sprintf("UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), '%s', '%s') AS BLOB) WHERE task = 'labels-1' AND step = %d AND n = %d", old, new, step, n)
	}
	// Step 6 asks, its second entry is the vote, and step 7 runs.
	for name, c := range map[string]struct{ sql, want string }{
		"an entry is deleted":                         {"DELETE FROM entries WHERE task = 'labels-1' AND step = 3", "labels-1 4.0 decision: follows 2.0: entries are missing"},
		"the last entry is deleted":                   {"DELETE FROM entries WHERE task = 'labels-2' AND step = 2", "tasks: steps of default/labels-2 is 2, and the entries say 1"},
		"all entries of a task are deleted":           {"DELETE FROM entries WHERE task = 'labels-2'", "tasks: the row default/labels-2 is in no entry"},
		"an entry comes twice":                        {"INSERT INTO entries (tenant, task, step, n, kind, body) SELECT tenant, task, step, 9, kind, CAST(replace(CAST(body AS TEXT), '\"n\":0', '\"n\":9') AS BLOB) FROM entries WHERE task = 'labels-1' AND step = 2", "2.9 decision: follows"},
		"an action comes twice":                       {"INSERT INTO entries (tenant, task, step, n, kind, body) SELECT tenant, task, step, 2, kind, CAST(replace(CAST(body AS TEXT), '\"n\":1', '\"n\":2') AS BLOB) FROM entries WHERE task = 'labels-1' AND step = 7 AND n = 1", "a second action of the operation default/labels-1/learner/draft-1"},
		"a number in a row":                           {"UPDATE entries SET n = 4 WHERE task = 'labels-1' AND step = 5", "5.4 decision: its body says that it is default/labels-1 5.0 decision"},
		"a body is no JSON":                           {"UPDATE entries SET body = x'7b' WHERE task = 'labels-1' AND step = 5", "5.0 decision: its body cannot be read"},
		"a time runs back":                            {change(7, 0, `"time":"2026`, `"time":"2025`), "7.0 decision: before the entry that it follows"},
		"a kind is made up":                           {"UPDATE entries SET kind = 'note', body = CAST(replace(CAST(body AS TEXT), '\"kind\":\"decision\"', '\"kind\":\"note\"') AS BLOB) WHERE task = 'labels-1' AND step = 2", "2.0 note: a kind that there is not"},
		"an action without an allow":                  {change(7, 0, `"effect":"allow"`, `"effect":"deny"`), "7.1 action: no decision of its step allows it"},
		"an action of another call":                   {change(7, 1, `"call_id":"d1"`, `"call_id":"d2"`), "7.1 action: not the call that its decision allows"},
		"an action with another signature":            {change(7, 1, `"signature":"`, `"signature":"0`), "7.1 action: not the call that its decision allows"},
		"an action without its approval":              {change(7, 1, `"approval":"ap-`, `"approva_":"ap-`), "7.1 action: ran without the approval that it demands"},
		"an action under an approval of nobody":       {change(7, 1, `"approval":"ap-`, `"approval":"ap-0`), "7.1 action: ran under an approval that nobody asked for"},
		"an action that consumes nothing":             {change(7, 0, `"state":"consumed"`, `"state":"approved"`), "is not consumed with it"},
		"an action after its approval's limit":        {change(6, 1, `"expires_at_step":11`, `"expires_at_step":6`) + ";" + change(7, 0, `"expires_at_step":11`, `"expires_at_step":6`), "was past its limits"},
		"an approval that lives longer as it is used": {change(6, 1, `"expires_at_step":11`, `"expires_at_step":6`), "is changed as it is closed"},
		"an approval of another call":                 {change(6, 1, `"signature":"`, `"signature":"0`), "becomes one of another call"},
		"an approval that nobody asked for":           {change(6, 0, `"effect":"require_approval"`, `"effect":"deny"`), "begins without a decision that asks for it"},
		"a vote that nobody gave":                     {change(7, 0, `"reviewer":"maya"`, `"reviewer":"eve"`), "gets or loses votes that nobody gave"},
		"a vote of somebody else":                     {change(6, 1, `"reviewer":"maya","step"`, `"reviewer":"eve","step"`), "the vote of eve is not counted"},
		"a vote that says no":                         {change(6, 1, `"decision":"approved"`, `"decision":"rejected"`), "its votes do not meet its terms"},
		"a vote is taken out everywhere":              {"UPDATE entries SET body = CAST(json_set(CAST(body AS TEXT), '$.approval.votes', json('[]')) AS BLOB) WHERE task = 'labels-1' AND step = 6 AND n = 1; UPDATE entries SET body = CAST(json_set(CAST(body AS TEXT), '$.approvals[0].votes', json('[]')) AS BLOB) WHERE task = 'labels-1' AND step = 7 AND n = 0; UPDATE approvals SET votes = '[]'", "do not meet its terms"},
		"terms that ask for more people":              {"UPDATE entries SET body = CAST(json_set(CAST(body AS TEXT), '$.decision.approval.approvers', 2) AS BLOB) WHERE task = 'labels-1' AND step = 7 AND n = 0", "the votes for the approval"},
		"an approval goes a way that there is not":    {change(10, 1, `"state":"rejected"`, `"state":"expired"`), `from "pending" to "expired"`},
		"entries change places":                       {"UPDATE entries SET seq = 1000 WHERE task = 'labels-1' AND step = 3", "4.0 decision: committed before the entry that it follows"},
		"a call in an input":                          {change(6, 0, "There are 84", "There are 99"), "6.0 decision: its signature is not that of its call"},
		"an actor in an input":                        {change(2, 0, `"actor":"learner"`, `"actor":"eve"`), "2.0 decision: decided for another task, actor or step"},
		"steps":                                       {"UPDATE tasks SET steps = steps + 1 WHERE id = 'labels-1'", "tasks: steps of default/labels-1"},
		"revision":                                    {"UPDATE tasks SET revision = revision + 1 WHERE id = 'labels-1'", "tasks: revision of default/labels-1"},
		"cost":                                        {"UPDATE tasks SET spent_cost = 0 WHERE id = 'labels-1'", "tasks: spent_cost of default/labels-1 is 0, and the entries say 8"},
		"output":                                      {"UPDATE tasks SET spent_output = 0 WHERE id = 'labels-1'", "tasks: spent_output of default/labels-1 is 0"},
		"a cancelled task goes on":                    {"UPDATE tasks SET cancelled = 0 WHERE id = 'labels-2'", "tasks: cancelled of default/labels-2 is 0, and the entries say 1"},
		"a task is deleted":                           {"DELETE FROM tasks WHERE id = 'labels-2'", "tasks: the row default/labels-2 is missing"},
		"an approval can be used again":               {"UPDATE approvals SET state = 'approved' WHERE state = 'consumed'", "is approved, and the entries say consumed"},
		"an approval lives longer":                    {"UPDATE approvals SET expires_at = '2036-01-01T00:00:00.000Z' WHERE state = 'pending'", "approvals: expires_at of ap-"},
		"an approval's votes":                         {"UPDATE approvals SET votes = '[]' WHERE state = 'consumed'", "approvals: votes of ap-"},
		"an approval shows another call":              {"UPDATE approvals SET proposal = CAST(replace(CAST(proposal AS TEXT), '84', '99') AS BLOB)", "is not that of the call which it shows"},
		"an approval is deleted":                      {"DELETE FROM approvals WHERE state = 'pending'", "is missing"},
		"an operation is deleted":                     {"DELETE FROM operations", "operations: the row default/labels-1/learner/draft-1 is missing"},
		"an operation's result":                       {"UPDATE operations SET result = x'31'", "operations: result of default/labels-1/learner/draft-1 is 1"},
		"an operation that never ran":                 {"INSERT INTO operations VALUES ('default', 'labels-1', 'learner', 'k', 's', 'record_draft', 7, x'31', NULL)", "operations: the row default/labels-1/learner/k is in no entry"},
		"a record":                                    {"UPDATE records SET value = x'31'", "records: value of default/labels-1/record_draft/labels-note is 1"},
		"a record is deleted":                         {"DELETE FROM records", "records: the row default/labels-1/record_draft/labels-note is missing"},
		"a cancelled task keeps an approval":          {"UPDATE entries SET body = CAST(json_remove(CAST(body AS TEXT), '$.approvals') AS BLOB) WHERE task = 'labels-2' AND kind = 'cancel'; UPDATE approvals SET state = 'pending' WHERE task = 'labels-2'", "of a cancelled task is pending"},
		"the key's name":                              {"UPDATE meta SET value = x'00'", "the key is not the state's"},
	} {
		t.Run(name, func(t *testing.T) {
			file := copyState(t, whole)
			tamper(t, file, c.sql)
			found, err := faultsOf(file)
			require.NoError(t, err)
			assert.Contains(t, strings.Join(found, "\n"), c.want)
		})
	}
	t.Run("another key", func(t *testing.T) {
		file := copyState(t, whole)
		require.NoError(t, os.WriteFile(file+".key", []byte(strings.Repeat("k", 32)), 0o600))
		found, err := faultsOf(file)
		require.NoError(t, err)
		assert.Contains(t, found, "the key is not the state's")
	})
	t.Run("a page", func(t *testing.T) {
		file := copyState(t, whole)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		copy(b[len(b)-4096:], strings.Repeat("x", 4096))
		require.NoError(t, os.WriteFile(file, b, 0o600))
		found, err := faultsOf(file)
		require.NoError(t, err)
		assert.Contains(t, strings.Join(found, "\n"), "malformed")
	})
}

func copyState(t *testing.T, file string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "govern.db")
	for _, suffix := range []string{"", ".key"} {
		b, err := os.ReadFile(file + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to+suffix, b, 0o600))
	}
	return to
}

// tamper changes a state as somebody with an editor does, whom no trigger stops.
func tamper(t *testing.T, file, sql string) {
	t.Helper()
	conn, err := zsqlite.OpenConn(file, zsqlite.OpenReadWrite)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, sqlitex.ExecuteScript(conn, "DROP TRIGGER entries_never_change; DROP TRIGGER entries_never_go; DROP TRIGGER approvals_keep_their_call;", nil))
	require.NoError(t, sqlitex.ExecuteScript(conn, sql+";", nil))
}
