package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	zsqlite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/audit"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// noFaults has a state audited, which nobody may find fault with.
func noFaults(t require.TestingT, file string) {
	r, err := audit.State(context.Background(), file, audit.Options{})
	require.NoError(t, err)
	require.Empty(t, r.Findings, "%s", file)
	require.Equal(t, []string{audit.NotNewest}, r.Unchecked, "%s", file)
}

// eventfulFile is the file of a state in which everything happened that can.
func eventfulFile(t *testing.T) string {
	t.Helper()
	l := fileLab(t)
	eventful(l)
	require.NoError(t, l.store.Close())
	return l.file
}

// fileLab is a lab without budgets, over a state in a file, whose store the test closes.
func fileLab(t *testing.T) *lab {
	t.Helper()
	c, err := parseConfig("")
	require.NoError(t, err)
	budgets(config.Budgets{})(&c)
	g, err := assemble(t.Context(), c)
	require.NoError(t, err)
	return emptyLab(t, g, filepath.Join(t.TempDir(), "govern.db"))
}

// foundIn gives what an audit found: the place as far as it is known, and the code. What tables hold comes last, in an order
// that does not depend on the names of approvals.
func foundIn(r audit.Report) []string {
	out, tables := []string{}, []string{}
	for _, f := range r.Findings {
		at := f.Task
		switch {
		case f.Leaf == nil:
			tables = append(tables, at+": "+string(f.Code))
			continue
		case f.Step != nil && f.N != nil:
			at = fmt.Sprintf("%s %d.%d %s", f.Task, *f.Step, *f.N, f.Kind)
		default:
			at = fmt.Sprintf("leaf %d", *f.Leaf)
		}
		out = append(out, at+": "+string(f.Code))
	}
	slices.Sort(tables)
	return append(out, tables...)
}

// bodies are the entries of a state, as an export has them.
func bodies(t *testing.T, file string) (lines [][]byte) {
	t.Helper()
	conn, err := zsqlite.OpenConn(file, zsqlite.OpenReadOnly)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, sqlitex.Execute(conn, "SELECT body FROM entries ORDER BY seq", &sqlitex.ExecOptions{ResultFunc: func(stmt *zsqlite.Stmt) error {
		body := make([]byte, stmt.ColumnLen(0))
		stmt.ColumnBytes(0, body)
		lines = append(lines, body)
		return nil
	}}))
	return lines
}

// keptAt is the checkpoint that somebody kept when the log had that many entries.
func keptAt(lines [][]byte, size int) audit.Checkpoint {
	var e merkle.Edge
	for _, line := range lines[:size] {
		e.Append(merkle.Leaf(line), nil)
	}
	return audit.Checkpoint{Name: fmt.Sprint("kept-", size), Size: int64(size), Root: e.Head().Root}
}

// forge makes tree and head anew over the entries as they are, as somebody does who also has the key.
func forge(t *testing.T, file string) {
	t.Helper()
	lines := bodies(t, file)
	key, err := os.ReadFile(file + ".key")
	require.NoError(t, err)
	script := "DELETE FROM tree;"
	var e merkle.Edge
	for i, line := range lines {
		var hashes []byte
		for _, h := range e.Append(merkle.Leaf(line), nil) {
			hashes = append(hashes, h[:]...)
		}
		script += fmt.Sprintf("INSERT INTO tree VALUES (%d, x'%x');", i, hashes)
	}
	head := e.Head()
	signed := append(binary.BigEndian.AppendUint64(nil, uint64(head.Size)), head.Root[:]...)
	signed = append(signed, ijson.HMAC(key, "govern log head v1", signed)...)
	tamper(t, file, script+fmt.Sprintf("UPDATE meta SET value = x'%x' WHERE name = 'head'", signed))
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

// tamper changes a state as somebody with an editor does, whom no trigger stops, and who leaves no trace of that.
func tamper(t require.TestingT, file, sql string) {
	conn, err := zsqlite.OpenConn(file, zsqlite.OpenReadWrite)
	require.NoError(t, err)
	defer conn.Close()
	var drop, create string
	require.NoError(t, sqlitex.ExecuteTransient(conn, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'", &sqlitex.ExecOptions{ResultFunc: func(stmt *zsqlite.Stmt) error {
		drop += "DROP TRIGGER " + stmt.ColumnText(0) + ";"
		create += stmt.ColumnText(1) + ";"
		return nil
	}}))
	for _, script := range []string{drop, sql + ";", create} {
		require.NoError(t, sqlitex.ExecuteScript(conn, script, nil))
	}
}

// An audit that finds nothing in a sound state names each thing that was tampered with, at its place, although whoever did
// it made the tree anew and signed its head.
func TestAuditFindsEveryTampering(t *testing.T) {
	whole := eventfulFile(t)
	noFaults(t, whole)
	// change replaces text in the body of an entry.
	change := func(step, n int, old, new string) string {
		return fmt.Sprintf("UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), '%s', '%s') AS BLOB) WHERE task = 'labels-1' AND step = %d AND n = %d", old, new, step, n)
	}
	// Step 6 asks, its second entry is the vote, and step 7 runs.
	for name, c := range map[string]struct {
		sql  string
		want []string
	}{
		"an entry is deleted":                         {"DELETE FROM entries WHERE task = 'labels-1' AND step = 3", []string{"labels-1 4.0 decision: missing_step", "labels-1: table_differs"}},
		"the last entry is deleted":                   {"DELETE FROM entries WHERE task = 'labels-2' AND step = 2", []string{"leaf 26: cut"}},
		"all entries of a task are deleted":           {"DELETE FROM entries WHERE task = 'labels-2'", []string{"labels-2: table_differs", "labels-2: table_differs"}},
		"an entry comes twice":                        {"INSERT INTO entries (tenant, task, step, n, kind, body) SELECT tenant, task, step, 9, kind, CAST(replace(CAST(body AS TEXT), '\"n\":0', '\"n\":9') AS BLOB) FROM entries WHERE task = 'labels-1' AND step = 2", []string{"labels-1 2.9 decision: inserted"}},
		"an action comes twice":                       {"INSERT INTO entries (tenant, task, step, n, kind, body) SELECT tenant, task, step, 2, kind, CAST(replace(CAST(body AS TEXT), '\"n\":1', '\"n\":2') AS BLOB) FROM entries WHERE task = 'labels-1' AND step = 7 AND n = 1", []string{"labels-1 7.2 action: inserted"}},
		"a number in a row":                           {"UPDATE entries SET n = 4 WHERE task = 'labels-1' AND step = 5", []string{"labels-1 5.0 decision: row_differs"}},
		"a body is no JSON":                           {"UPDATE entries SET body = x'7b' WHERE task = 'labels-1' AND step = 5", []string{"labels-1 5.0 decision: changed", "labels-1: table_differs"}},
		"a time runs back":                            {change(7, 0, `"time":"2026`, `"time":"2025`), []string{"labels-1 7.0 decision: time_runs_back", "labels-1 7.0 decision: input_digest_differs", "labels-1 7.0 decision: vote_not_given", "labels-1: table_differs"}},
		"a kind is made up":                           {"UPDATE entries SET kind = 'note', body = CAST(replace(CAST(body AS TEXT), '\"kind\":\"decision\"', '\"kind\":\"note\"') AS BLOB) WHERE task = 'labels-1' AND step = 2", []string{"labels-1 2.0 note: step_without_decision", "labels-1 2.0 note: unknown_kind"}},
		"an action without an allow":                  {change(7, 0, `"effect":"allow"`, `"effect":"deny"`), []string{"labels-1 7.0 decision: approval_move", "labels-1 7.1 action: action_without_decision", "labels-1: table_differs", "labels-1: table_differs"}},
		"an action of another call":                   {change(7, 1, `"call_id":"d1"`, `"call_id":"d2"`), []string{"labels-1 7.1 action: action_differs"}},
		"an action with another signature":            {change(7, 1, `"signature":"`, `"signature":"0`), []string{"labels-1 7.1 action: action_differs", "labels-1 7.1 action: approval_of_another_call", "labels-1: table_differs"}},
		"an action without its approval":              {change(7, 1, `"approval":"ap-`, `"approva_":"ap-`), []string{"labels-1 7.1 action: effect_without_approval"}},
		"an action under an approval of nobody":       {change(7, 1, `"approval":"ap-`, `"approval":"ap-0`), []string{"labels-1 7.1 action: effect_without_approval"}},
		"an action that consumes nothing":             {change(7, 0, `"state":"consumed"`, `"state":"approved"`), []string{"labels-1 7.0 decision: approval_move", "labels-1 7.1 action: effect_without_approval", "labels-1: table_differs"}},
		"an action after its approval's limit":        {change(6, 1, `"expires_at_step":11`, `"expires_at_step":6`) + ";" + change(7, 0, `"expires_at_step":11`, `"expires_at_step":6`), []string{"labels-1 7.0 decision: input_digest_differs", "labels-1 7.1 action: approval_past_limits", "labels-1: table_differs"}},
		"an approval that lives longer as it is used": {change(6, 1, `"expires_at_step":11`, `"expires_at_step":6`), []string{"labels-1 7.0 decision: approval_changed"}},
		"an approval of another call":                 {change(6, 1, `"signature":"`, `"signature":"0`), []string{"labels-1 6.1 review: approval_of_another_call", "labels-1 7.0 decision: approval_of_another_call"}},
		"an approval that nobody asked for":           {change(6, 0, `"effect":"require_approval"`, `"effect":"deny"`), []string{"labels-1 6.0 decision: approval_unasked"}},
		"a vote that nobody gave":                     {change(7, 0, `"reviewer":"maya"`, `"reviewer":"eve"`), []string{"labels-1 7.0 decision: input_digest_differs", "labels-1 7.0 decision: vote_not_given", "labels-1 7.1 action: vote_not_given", "labels-1: table_differs"}},
		"a vote of somebody else":                     {change(6, 1, `"reviewer":"maya","step"`, `"reviewer":"eve","step"`), []string{"labels-1 6.1 review: vote_not_given"}},
		"a vote that says no":                         {change(6, 1, `"decision":"approved"`, `"decision":"rejected"`), []string{"labels-1 6.1 review: terms_not_met", "labels-1 7.0 decision: vote_not_given"}},
		"a vote is taken out everywhere":              {"UPDATE entries SET body = CAST(json_set(CAST(body AS TEXT), '$.approval.votes', json('[]')) AS BLOB) WHERE task = 'labels-1' AND step = 6 AND n = 1; UPDATE entries SET body = CAST(json_set(CAST(body AS TEXT), '$.approvals[0].votes', json('[]')) AS BLOB) WHERE task = 'labels-1' AND step = 7 AND n = 0; UPDATE approvals SET votes = '[]'", []string{"labels-1 6.1 review: vote_not_given", "labels-1 6.1 review: terms_not_met", "labels-1 7.1 action: terms_not_met", "labels-1 7.1 action: vote_not_given"}},
		"terms that ask for more people":              {"UPDATE entries SET body = CAST(json_set(CAST(body AS TEXT), '$.decision.approval.approvers', 2) AS BLOB) WHERE task = 'labels-1' AND step = 7 AND n = 0", []string{"labels-1 7.1 action: terms_not_met"}},
		"an approval goes a way that there is not":    {change(10, 1, `"state":"rejected"`, `"state":"expired"`), []string{"labels-1 10.1 review: approval_move"}},
		"entries change places":                       {"UPDATE entries SET seq = 1000 WHERE task = 'labels-1' AND step = 3", []string{"labels-1 4.0 decision: swapped"}},
		"a call in an input":                          {change(6, 0, "There are 84", "There are 99"), []string{"labels-1 6.0 decision: input_digest_differs", "labels-1 6.0 decision: signature_differs", "labels-1: table_differs"}},
		"an actor in an input":                        {change(2, 0, `"actor":"learner"`, `"actor":"eve"`), []string{"labels-1 2.0 decision: wrong_subject", "labels-1 2.0 decision: input_digest_differs", "labels-1 2.0 decision: signature_differs"}},
		"a denial is told as done":                    {"UPDATE entries SET body = CAST(json_set(CAST(body AS TEXT), '$.status', 'ok') AS BLOB) WHERE task = 'labels-1' AND step = 2", []string{"labels-1 2.0 decision: status_differs"}},
		"an action that did not run":                  {"UPDATE entries SET body = CAST(json_set(CAST(body AS TEXT), '$.status', 'timeout') AS BLOB) WHERE task = 'labels-1' AND step = 7 AND n = 0", []string{"labels-1 7.1 action: status_differs"}},
		"steps":                                       {"UPDATE tasks SET steps = steps + 1 WHERE id = 'labels-1'", []string{"labels-1: table_differs"}},
		"revision":                                    {"UPDATE tasks SET revision = revision + 1 WHERE id = 'labels-1'", []string{"labels-1: table_differs"}},
		"cost":                                        {"UPDATE tasks SET spent_cost = 0 WHERE id = 'labels-1'", []string{"labels-1: table_differs"}},
		"output":                                      {"UPDATE tasks SET spent_output = 0 WHERE id = 'labels-1'", []string{"labels-1: table_differs"}},
		"a cancelled task goes on":                    {"UPDATE tasks SET cancelled = 0 WHERE id = 'labels-2'", []string{"labels-2: table_differs"}},
		"a profile":                                   {"UPDATE tasks SET profile = 'x' WHERE id = 'labels-1'", []string{"labels-1: table_differs"}},
		"an actor of a task":                          {"UPDATE tasks SET actor = 'eve' WHERE id = 'labels-1'", []string{"labels-1: table_differs"}},
		"a deadline":                                  {"UPDATE tasks SET deadline = '2036-01-01T00:00:00.000Z' WHERE id = 'labels-1'", []string{"labels-1: table_differs"}},
		"a time of a task":                            {"UPDATE tasks SET updated = '2026-01-01T00:00:00.000Z' WHERE id = 'labels-1'", []string{"labels-1: table_differs"}},
		"an approval's step":                          {"UPDATE approvals SET step = step + 1 WHERE state = 'consumed'", []string{"labels-1: table_differs"}},
		"an approval's terms":                         {"UPDATE approvals SET terms = '{}' WHERE state = 'consumed'", []string{"labels-1: table_differs"}},
		"an approval's task":                          {"UPDATE approvals SET task = 'labels-2' WHERE state = 'consumed'", []string{"labels-1: table_differs"}},
		"an operation's tool":                         {"UPDATE operations SET tool = 'x'", []string{"labels-1: table_differs"}},
		"an operation's step":                         {"UPDATE operations SET step = 9", []string{"labels-1: table_differs"}},
		"a task is deleted":                           {"DELETE FROM tasks WHERE id = 'labels-2'", []string{"labels-2: table_differs"}},
		"an approval can be used again":               {"UPDATE approvals SET state = 'approved' WHERE state = 'consumed'", []string{"labels-1: table_differs"}},
		"an approval lives longer":                    {"UPDATE approvals SET expires_at = '2036-01-01T00:00:00.000Z' WHERE state = 'pending'", []string{"labels-1: table_differs"}},
		"an approval's votes":                         {"UPDATE approvals SET votes = '[]' WHERE state = 'consumed'", []string{"labels-1: table_differs"}},
		"an approval shows another call":              {"UPDATE approvals SET proposal = CAST(replace(CAST(proposal AS TEXT), '84', '99') AS BLOB)", []string{"labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-2: table_differs"}},
		"an approval is deleted":                      {"DELETE FROM approvals WHERE state = 'pending'", []string{"labels-1: table_differs"}},
		"an operation is deleted":                     {"DELETE FROM operations", []string{"labels-1: table_differs"}},
		"an operation's result":                       {"UPDATE operations SET result = x'31'", []string{"labels-1: table_differs"}},
		"an operation that never ran":                 {"INSERT INTO operations (tenant, task, actor, key, dispatch, id, signature, tool, state, step, run, lookups, result) VALUES ('default', 'labels-1', 'learner', 'k', 0, 'op-0', 's', 'record_draft', 'committed', 7, 1, 0, x'31')", []string{"labels-1: table_differs"}},
		"a record":                                    {"UPDATE records SET value = x'31'", []string{"labels-1: table_differs"}},
		"a record is deleted":                         {"DELETE FROM records", []string{"labels-1: table_differs"}},
		"a cancelled task keeps an approval":          {"UPDATE entries SET body = CAST(json_remove(CAST(body AS TEXT), '$.approvals') AS BLOB) WHERE task = 'labels-2' AND kind = 'cancel'; UPDATE approvals SET state = 'pending' WHERE task = 'labels-2'", []string{"labels-2 1.1 cancel: after_cancel"}},
		"the key's name":                              {"UPDATE meta SET value = x'00'", []string{": key_differs"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := copyState(t, whole)
			tamper(t, file, c.sql)
			forge(t, file)
			r, err := audit.State(t.Context(), file, audit.Options{})
			require.NoError(t, err)
			assert.Equal(t, c.want, foundIn(r), "%+v", r.Findings)
		})
	}
}

// Every way of tampering with the log of a state is named: by what the state has twice, by its tables, or by a checkpoint
// that was kept elsewhere.
func TestB070TamperedStates(t *testing.T) {
	whole := eventfulFile(t)
	lines := bodies(t, whole)
	last := len(lines)
	// renumber moves all entries behind one.
	renumber := func(after, by int) string {
		return fmt.Sprintf("UPDATE entries SET seq = -(seq + (%d)) WHERE seq > %d; UPDATE entries SET seq = -seq WHERE seq < 0", by, after)
	}
	swap := func(a, b int) string {
		return fmt.Sprintf("UPDATE entries SET seq = -1 WHERE seq = %d; UPDATE entries SET seq = %[1]d WHERE seq = %[2]d; UPDATE entries SET seq = %[2]d WHERE seq = -1", a, b)
	}
	cutEntries := fmt.Sprintf("DELETE FROM entries WHERE seq > %d", last-3)
	cutTree := fmt.Sprintf("DELETE FROM tree WHERE leaf >= %d", last-3)
	for name, c := range map[string]struct {
		sql   string
		forge bool
		kept  []int
		want  []string
	}{
		"one byte":                             {"UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), '\"by\":\"operator\"', '\"by\":\"operat0r\"') AS BLOB) WHERE seq = 1", false, nil, []string{"labels-1 0.0 task: changed"}},
		"one byte, made good":                  {"UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), '\"by\":\"operator\"', '\"by\":\"operat0r\"') AS BLOB) WHERE seq = 1", true, nil, []string{}},
		"one byte, made good, and checkpoints": {"UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), '\"by\":\"operator\"', '\"by\":\"operat0r\"') AS BLOB) WHERE seq = 1", true, []int{0, last}, []string{"leaf 0: forked"}},
		"a body that is none":                  {"UPDATE entries SET body = x'7b' WHERE seq = 5", false, nil, []string{"labels-1 2.0 decision: changed", "labels-1: table_differs"}},
		"the last three":                       {cutEntries, false, nil, []string{"leaf 24: cut", "labels-2: table_differs"}},
		"the last three of entries and tree":   {cutEntries + ";" + cutTree, false, nil, []string{"leaf 24: cut", "labels-2: table_differs"}},
		"the last three, made good":            {cutEntries, true, nil, []string{"leaf 24: cut", "labels-2: table_differs"}},
		"the last three, and a checkpoint":     {cutEntries, true, []int{5, last}, []string{"leaf 24: cut", "labels-2: table_differs"}},
		"all":                                  {"DELETE FROM entries", false, nil, []string{"leaf 0: cut", ": table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-2: table_differs", "labels-2: table_differs"}},
		"all of entries and tree":              {"DELETE FROM entries; DELETE FROM tree", false, nil, []string{"leaf 0: cut", ": table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-2: table_differs", "labels-2: table_differs"}},
		"the first three":                      {"DELETE FROM entries WHERE seq < 4", false, nil, []string{"leaf 0: dropped", "labels-1 2.0 decision: version_not_activated", ": table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs"}},
		"one":                                  {"DELETE FROM entries WHERE seq = 5", false, nil, []string{"leaf 4: dropped", "labels-1 3.0 decision: missing_step", "labels-1: table_differs"}},
		"one, renumbered":                      {"DELETE FROM entries WHERE seq = 5;" + renumber(5, -1), false, nil, []string{"labels-1 3.0 decision: missing_step", "leaf 4: dropped", "labels-1: table_differs"}},
		"one, renumbered and made good":        {"DELETE FROM entries WHERE seq = 5;" + renumber(5, -1), true, nil, []string{"labels-1 3.0 decision: missing_step", "labels-1: table_differs"}},
		"a step, made good, and a checkpoint":  {"DELETE FROM entries WHERE task = 'labels-1' AND step = 1;" + renumber(4, -2), true, []int{last}, []string{"labels-1 2.0 decision: missing_step", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs", "labels-1: table_differs"}},
		"two neighbours swapped":               {swap(5, 6), false, nil, []string{"labels-1 2.0 decision: swapped"}},
		"two swapped":                          {swap(5, 16), false, nil, []string{"labels-1 10.1 review: swapped"}},
		"two swapped, made good":               {swap(5, 6), true, nil, []string{"labels-1 3.0 decision: swapped"}},
		"one at the end":                       {"INSERT INTO entries (tenant, task, step, n, kind, body) SELECT tenant, task, 3, 1, 'cancel', CAST('{\"kind\":\"cancel\",\"n\":1,\"step\":3,\"task\":\"labels-2\",\"tenant\":\"default\",\"time\":\"2026-01-02T13:00:00.000Z\"}' AS BLOB) FROM entries WHERE seq = 3", false, nil, []string{"labels-2 3.1 cancel: row_differs", "labels-2 3.1 cancel: inserted", "labels-2: table_differs", "labels-2: table_differs", "labels-2: table_differs"}},
		"one in between":                       {renumber(5, 1) + "; INSERT INTO entries (seq, tenant, task, step, n, kind, body) VALUES (6, 'x', 'y', 0, 0, 'task', CAST('{\"actor\":\"a\",\"kind\":\"task\",\"n\":0,\"profile\":\"p\",\"step\":0,\"task\":\"y\",\"tenant\":\"x\",\"time\":\"2026-01-01T12:00:00.000Z\"}' AS BLOB))", false, nil, []string{"y 0.0 task: inserted", "y: table_differs"}},
		"a hash of a leaf":                     {"UPDATE tree SET hashes = zeroblob(32) WHERE leaf = 4", false, nil, []string{"leaf 4: tree_differs", "leaf 5: tree_differs"}},
		"an inner hash":                        {"UPDATE tree SET hashes = CAST(substr(hashes, 1, 32) || zeroblob(32) AS BLOB) WHERE leaf = 5", false, nil, []string{"leaf 5: tree_differs"}},
		"a row of the tree":                    {"DELETE FROM tree WHERE leaf = 4", false, nil, []string{"leaf 4: tree_differs"}},
		"the end of the tree":                  {cutTree, false, nil, []string{"leaf 24: tree_differs"}},
		"the head":                             {"UPDATE meta SET value = CAST(substr(value, 1, 8) || zeroblob(32) || substr(value, 41) AS BLOB) WHERE name = 'head'", false, nil, []string{": head_differs", ": head_differs"}},
		"the head's code":                      {"UPDATE meta SET value = CAST(substr(value, 1, 40) || zeroblob(64) AS BLOB) WHERE name = 'head'", false, nil, []string{": head_differs"}},
		"the head's size":                      {"UPDATE meta SET value = CAST(x'0000000000000014' || substr(value, 9) AS BLOB) WHERE name = 'head'", false, nil, []string{": head_differs", ": head_differs"}},
		"a row of the tree without a hash":     {"UPDATE tree SET hashes = x'00' WHERE leaf = 4", false, nil, []string{"leaf 4: tree_differs"}},
		"one before the first":                 {"INSERT INTO entries (seq, tenant, task, step, n, kind, body) SELECT -7, tenant, task, 99, 0, kind, body FROM entries WHERE seq = 3", false, nil, []string{"labels-1: inserted"}},
		"a row of the tree before the first":   {"INSERT INTO tree (leaf, hashes) VALUES (-1, zeroblob(32))", false, nil, []string{": tree_differs"}},
		"everything, and no head":              {"DELETE FROM entries; DELETE FROM tree; DELETE FROM tasks; DELETE FROM approvals; DELETE FROM operations; DELETE FROM records; DELETE FROM contents; DELETE FROM meta WHERE name = 'head'", false, nil, []string{": head_differs"}},
		"no head":                              {"DELETE FROM meta WHERE name = 'head'", false, nil, []string{": head_differs"}},
		"what is kept of a policy":             {"UPDATE contents SET bytes = x'00' WHERE rowid = 1", false, nil, []string{": table_differs"}},
		"a policy that is kept":                {"DELETE FROM contents WHERE rowid = 1", false, nil, []string{"leaf 1: table_differs"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := copyState(t, whole)
			tamper(t, file, c.sql)
			if c.forge {
				forge(t, file)
			}
			var kept []audit.Checkpoint
			for _, size := range c.kept {
				kept = append(kept, keptAt(lines, size))
			}
			r, err := audit.State(t.Context(), file, audit.Options{Checkpoints: kept})
			require.NoError(t, err)
			assert.Equal(t, c.want, foundIn(r), "%+v", r.Findings)
		})
	}
}

// The greatest number that a row can have ends the tree, and is not followed by the least one.
func TestAuditOfATreeWithTheGreatestNumber(t *testing.T) {
	file := copyState(t, eventfulFile(t))
	tamper(t, file, `WITH RECURSIVE c(i) AS (SELECT max(leaf) + 1 FROM tree UNION ALL SELECT i + 1 FROM c WHERE i < 19998)
		INSERT INTO tree (leaf, hashes) SELECT i, zeroblob(32) FROM c; INSERT INTO tree (leaf, hashes) VALUES (9223372036854775807, zeroblob(32))`)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := audit.State(ctx, file, audit.Options{})
	require.NoError(t, err)
	assert.False(t, r.Verified)
}

// What is exported is the log of the state, and says the same of itself.
func TestAuditOfAStateAndItsExport(t *testing.T) {
	whole := eventfulFile(t)
	of, err := audit.State(t.Context(), whole, audit.Options{})
	require.NoError(t, err)
	lines := bodies(t, whole)
	r, err := audit.Export(t.Context(), bytes.NewReader(bytes.Join(lines, []byte("\n"))), audit.Options{Checkpoints: []audit.Checkpoint{keptAt(lines, 9)}})
	require.NoError(t, err)
	assert.Empty(t, r.Findings)
	assert.Equal(t, []any{of.Size, of.Root}, []any{r.Size, r.Root})
	for i := range lines { // whatever line is gone, the checkpoint or the other lines tell
		left := slices.Delete(slices.Clone(lines), i, i+1)
		r, err := audit.Export(t.Context(), bytes.NewReader(bytes.Join(left, []byte("\n"))), audit.Options{Checkpoints: []audit.Checkpoint{keptAt(lines, len(lines))}})
		require.NoError(t, err)
		assert.False(t, r.Verified, "without line %d", i+1)
	}
}

func TestAuditOfADamagedFile(t *testing.T) {
	whole := eventfulFile(t)
	t.Run("a page", func(t *testing.T) {
		file := copyState(t, whole)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		copy(b[len(b)-4096:], strings.Repeat("x", 4096))
		require.NoError(t, os.WriteFile(file, b, 0o600))
		r, err := audit.State(t.Context(), file, audit.Options{})
		require.NoError(t, err)
		assert.Contains(t, foundIn(r), ": damaged")
		assert.True(t, slices.ContainsFunc(r.Findings, func(f audit.Finding) bool { return strings.HasPrefix(f.Message, "the file is damaged: ") }))
	})
	t.Run("another key", func(t *testing.T) {
		file := copyState(t, whole)
		require.NoError(t, os.WriteFile(file+".key", []byte(strings.Repeat("k", 32)), 0o600))
		r, err := audit.State(t.Context(), file, audit.Options{})
		require.NoError(t, err)
		assert.Equal(t, []string{": key_differs"}, foundIn(r))
	})
	t.Run("no key", func(t *testing.T) {
		file := copyState(t, whole)
		require.NoError(t, os.Remove(file+".key"))
		r, err := audit.State(t.Context(), file, audit.Options{})
		require.NoError(t, err)
		assert.True(t, r.Verified)
		require.Len(t, r.Unchecked, 2)
		assert.Contains(t, r.Unchecked[0], "signatures")
	})
	for name, content := range map[string]string{"no database": "this is no database, whatever its name says", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "govern.db")
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			_, err := audit.State(t.Context(), file, audit.Options{})
			require.Error(t, err)
		})
	}
}

// An audit leaves a state as it was, to the byte and the name, also one that nobody closed; and reads one in a folder that
// cannot be written.
func TestAuditChangesNothing(t *testing.T) {
	files := func(folder string) map[string]string {
		out := map[string]string{}
		all, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, f := range all {
			b, err := os.ReadFile(filepath.Join(folder, f.Name()))
			require.NoError(t, err)
			info, err := f.Info()
			require.NoError(t, err)
			if !strings.HasSuffix(f.Name(), "-shm") { // where readers say how far they are
				out[f.Name()] = fmt.Sprint(info.ModTime(), info.Mode(), sha256.Sum256(b))
			}
		}
		return out
	}
	whole := eventfulFile(t)
	t.Run("closed", func(t *testing.T) {
		file := copyState(t, whole)
		before := files(filepath.Dir(file))
		noFaults(t, file)
		assert.Equal(t, before, files(filepath.Dir(file)))
	})
	t.Run("in use", func(t *testing.T) {
		l := newLab(t, func(*config.Config) {})
		in := emptyLab(t, l.governed, filepath.Join(t.TempDir(), "govern.db"))
		in.propose(add("c1"))
		before := files(filepath.Dir(in.file))
		noFaults(t, in.file)
		assert.Equal(t, before, files(filepath.Dir(in.file)))
		// Left by a process that was killed, with commits in its log of writes.
		crashed := t.TempDir()
		for _, suffix := range []string{"", "-wal", ".key"} {
			b, err := os.ReadFile(in.file + suffix)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(crashed, "govern.db"+suffix), b, 0o600))
		}
		require.NoError(t, in.store.Close())
		before = files(crashed)
		noFaults(t, filepath.Join(crashed, "govern.db"))
		assert.Equal(t, before, files(crashed))
	})
	t.Run("by a link", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link.db")
		require.NoError(t, os.Symlink(whole, link))
		noFaults(t, link)
	})
}

// A state can be audited while it is written: nobody waits for the other, and what is found is of one moment.
func TestAuditBesideAWriter(t *testing.T) {
	l := newLab(t, budgets(config.Budgets{}))
	in := emptyLab(t, l.governed, filepath.Join(t.TempDir(), "govern.db"))
	done := make(chan struct{})
	var wrote sync.WaitGroup
	wrote.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				in.propose(draft(fmt.Sprint("d", i), "idempotency_key", fmt.Sprint("k", i)))
			}
		}
	})
	size := int64(0)
	for size < 100 {
		r, err := audit.State(t.Context(), in.file, audit.Options{})
		require.NoError(t, err)
		require.Empty(t, r.Findings)
		require.GreaterOrEqual(t, r.Size, size)
		size = r.Size
	}
	close(done)
	wrote.Wait()
	require.NoError(t, in.store.Close())
	noFaults(t, in.file)
}

// People are shown the first findings and how many there are; programs get them all.
func TestVerifyShowsTheFirstFindings(t *testing.T) {
	export := strings.Repeat("{}\n", 150)
	var out, said bytes.Buffer
	require.Equal(t, exitDenied, run(t.Context(), []string{"log", "verify", "-"}, strings.NewReader(export), &out, &said))
	assert.Equal(t, 100, strings.Count(out.String(), ": changed: "))
	assert.Contains(t, out.String(), "\n… and 50 more\n")
	assert.Contains(t, out.String(), "\nNOT verified: 150 findings\n150 entries, root ")
	assert.Empty(t, said.String())
	out.Reset()
	require.Equal(t, exitDenied, run(t.Context(), []string{"log", "verify", "--format", "json", "-"}, strings.NewReader(export), &out, &said))
	assert.Equal(t, 150, strings.Count(out.String(), `"code":"changed"`))
}
