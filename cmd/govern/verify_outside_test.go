package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/audit"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// auditLog has the log of a lab audited, which nobody may find fault with.
func (l *lab) auditLog() {
	var export bytes.Buffer
	for e, err := range l.store.EntriesFrom(context.Background(), 0) {
		require.NoError(l.t, err)
		export.Write(append(slices.Clip(e.Body), '\n'))
	}
	r, err := audit.Export(context.Background(), &export, audit.Options{})
	require.NoError(l.t, err)
	assert.Empty(l.t, r.Findings)
}

// deaf is a store that takes no outcome any more, as if the process died before it.
type deaf struct{ *sqlite.Store }

func (s deaf) Apply(ctx context.Context, c dispatch.Commit) error {
	if slices.ContainsFunc(c.Entries, func(e dispatch.Entry) bool { return e.Kind == dispatch.KindOutcome }) {
		return errors.New("the process died")
	}
	return s.Store.Apply(ctx, c)
}

// abroadFile is the file of a state in which everything happened that can with calls of outside tools:
//
//	 1.0  a read, which is answered
//	 2.0  the write draft-1, of which nobody knows; 3.0 it is resumed, and took place
//	 4.0  draft-2, which nobody hears of: 4.1 a look-up finds nothing out, 4.2 an operator says that it took place, 4.4 the late outcome
//	 5.0  draft-3, which 5.1 a look-up takes for absent, and 5.2 a late outcome says took place
//	 6.0  draft-4 asks, and is approved; 7.0 nothing was sent, and the approval is back; 8.0 it is begun anew, and took place
//	 9.0  a write without a key, of which nobody knows
//	10.0  a read and 11.0 draft-6, whose process died
func abroadFile(t *testing.T) string {
	t.Helper()
	l := fileLab(t)
	numbered := func(n int) string {
		return draft(fmt.Sprint("d", n), "draft_id", fmt.Sprint("note-", n), "idempotency_key", fmt.Sprint("draft-", n))
	}
	reads := l.outside("read_document", costing(3))
	reads.does(answer7)
	require.Equal(t, dispatch.StatusOK, l.propose(read("r1", "/warehouse/labels.txt")).Status)

	o := l.outside("record_draft", byRule, remembers, costing(5))
	o.does(lost)
	l.propose(numbered(1))
	o.does(landed)
	require.Equal(t, dispatch.StatusOK, l.propose(numbered(1)).Status)

	operation := func(key string) string {
		for _, o := range l.operations() {
			if o.Key == key {
				return o.ID
			}
		}
		require.Fail(t, "no operation", key)
		return ""
	}
	o = l.outside("record_draft", findable)
	end := l.begin(o, numbered(2))
	l.pass(time.Minute)
	o.find = func(dispatch.Call) dispatch.Finding { return dispatch.Finding{State: dispatch.Unknown, Detail: "503"} }
	_, err := l.dispatcher.LookUp(t.Context(), l.who.Tenant, operation("draft-2"))
	require.NoError(t, err)
	_, err = l.dispatcher.Resolve(t.Context(), l.who.Tenant, operation("draft-2"), dispatch.Resolution{State: dispatch.Committed, Result: ijson.Raw(`{"id":"p-9"}`), Reason: "ledger", By: "olga"})
	require.NoError(t, err)
	end(landed)

	end = l.begin(o, numbered(3))
	l.pass(time.Minute)
	o.find = func(dispatch.Call) dispatch.Finding { return dispatch.Finding{State: dispatch.Absent} }
	_, err = l.dispatcher.LookUp(t.Context(), l.who.Tenant, operation("draft-3"))
	require.NoError(t, err)
	end(landed)

	o = l.outside("record_draft", func(d *dispatch.Definition) { d.Approval = dispatch.Always })
	l.propose(numbered(4))
	require.NoError(t, l.review(numbered(4), "approved", 5))
	o.does(unsent)
	l.propose(numbered(4))
	o.does(landed)
	require.Equal(t, dispatch.StatusOK, l.propose(numbered(4)).Status)

	o = l.outside("record_draft", byRule, keyless)
	o.does(lost)
	l.propose(numbered(5))

	o.does(landed)
	l.dispatcher = dispatch.New(deaf{l.store}, l.store.Key(), l.clock, l.snapshot)
	for _, proposal := range []string{read("r2", "/warehouse/labels.txt"), numbered(6)} {
		_, err = l.dispatcher.Dispatch(t.Context(), l.who, l.task, dispatch.Origin{Door: "test"}, []byte(proposal))
		require.ErrorContains(t, err, "the process died")
	}
	l.auditLog()
	require.NoError(t, l.store.Close())
	return l.file
}

// Whatever is changed in what is on record of calls of outside tools is named, although tree and head were made anew.
func TestAuditFindsTamperingWithOutsideCalls(t *testing.T) {
	whole := abroadFile(t)
	noFaults(t, whole)
	// set changes a member of an entry.
	set := func(step, n int, path, value string) string {
		return fmt.Sprintf("UPDATE entries SET body = CAST(json_set(CAST(body AS TEXT), '%s', %s) AS BLOB) WHERE task = 'labels-1' AND step = %d AND n = %d", path, value, step, n)
	}
	const (
		table   = "labels-1: table_differs"
		started = "UPDATE operations SET %s WHERE dispatch = 11"
		done    = "UPDATE operations SET %s WHERE key = 'draft-4'"
	)
	for name, c := range map[string]struct {
		sql  string
		want []string
	}{
		"a state":                        {fmt.Sprintf(started, "state = 'unknown'"), []string{table}},
		"a state that is final":          {fmt.Sprintf(done, "state = 'absent', result = NULL"), []string{table, table}},
		"a run":                          {fmt.Sprintf(done, "run = 1"), []string{table}},
		"a step":                         {fmt.Sprintf(done, "step = 7"), []string{table}},
		"a signature":                    {fmt.Sprintf(done, "signature = 's'"), []string{table}},
		"a tool":                         {fmt.Sprintf(done, "tool = 'calculate'"), []string{table}},
		"a target":                       {fmt.Sprintf(started, "target = 'x'"), []string{table}},
		"a key":                          {fmt.Sprintf(done, "key = 'draft-7'"), []string{table}},
		"an actor":                       {fmt.Sprintf(started, "actor = 'eve'"), []string{table}},
		"an effect":                      {fmt.Sprintf(started, "effect = 'e'"), []string{table}},
		"a definition":                   {fmt.Sprintf(started, "definition = 'd'"), []string{table}},
		"an outward key":                 {fmt.Sprintf(started, "outward = 'o'"), []string{table}},
		"the beginning of a memory":      {fmt.Sprintf(started, "since = '2036-01-01T00:00:00.000Z'"), []string{table}},
		"a lease":                        {fmt.Sprintf(started, "lease = '2016-01-01T00:00:00.000Z'"), []string{table}},
		"an approval":                    {fmt.Sprintf(done, "approval = NULL"), []string{table}},
		"a version":                      {fmt.Sprintf(done, "policy_version = 'v'"), []string{table}},
		"look-ups":                       {"UPDATE operations SET lookups = 0 WHERE key = 'draft-2'", []string{table}},
		"a call":                         {fmt.Sprintf(started, "proposal = CAST(replace(CAST(proposal AS TEXT), '84', '99') AS BLOB)"), []string{table}},
		"a result":                       {fmt.Sprintf(done, "result = x'31'"), []string{table}},
		"a result that an operator gave": {"UPDATE operations SET result = NULL WHERE key = 'draft-2'", []string{table}},
		"the dispatch of a keyless one":  {"UPDATE operations SET dispatch = 8 WHERE dispatch = 9", []string{table}},
		"a name":                         {fmt.Sprintf(started, "id = 'op-0'"), []string{table, table}},
		"one that is deleted":            {"DELETE FROM operations WHERE dispatch = 11", []string{table}},
		"a keyless one that is deleted":  {"DELETE FROM operations WHERE dispatch = 9", []string{table}},
		"what is under way":              {"UPDATE tasks SET in_flight = NULL", []string{table}},
		"until when it is":               {"UPDATE tasks SET in_flight = replace(in_flight, '2026', '2016')", []string{table}},
		"what it reserves":               {"UPDATE tasks SET in_flight = replace(in_flight, '1000', '1')", []string{table}},
		"what was tried":                 {"UPDATE tasks SET spent_attempts = spent_attempts - 1 WHERE id = 'labels-1'", []string{table}},
		"what it cost":                   {"UPDATE tasks SET spent_cost = spent_cost - 5 WHERE id = 'labels-1'", []string{table}},
		"what it gave":                   {"UPDATE tasks SET spent_output = spent_output - 1 WHERE id = 'labels-1'", []string{table}},

		"a lease on record":            {set(11, 0, "$.started.lease", "'2016-01-01T00:00:00.000Z'"), []string{"labels-1 11.0 decision: start_differs", table, table}},
		"an effect on record":          {set(11, 0, "$.started.effect", "'e'"), []string{table}},
		"an effect of another":         {"UPDATE entries SET body = CAST(json_set(CAST(body AS TEXT), '$.started.effect', (SELECT CAST(body AS TEXT) ->> '$.started.effect' FROM entries WHERE step = 9 AND n = 0)) AS BLOB) WHERE step = 11 AND n = 0", []string{"labels-1 11.0 decision: effect_unsettled", table}},
		"a run on record":              {set(8, 0, "$.started.run", "1"), []string{"labels-1 8.0 decision: run_differs", "labels-1 8.1 outcome: outcome_differs", table}},
		"an outcome that turns":        {set(9, 1, "$.state", "'absent'"), []string{"labels-1 9.1 outcome: outcome_differs", table}},
		"an outcome that turns wholly": {set(9, 1, "$.state", "'absent'") + ";" + set(9, 1, "$.status", "'timeout'"), []string{table}},
		"an outcome of another call":   {set(8, 1, "$.call_id", "'d9'"), []string{"labels-1 8.1 outcome: outcome_differs"}},
		"a late one that is not":       {"UPDATE entries SET body = CAST(json_remove(CAST(body AS TEXT), '$.late') AS BLOB) WHERE step = 5 AND n = 2", []string{"labels-1 5.2 outcome: outcome_differs"}},
		"an outcome that is gone":      {"DELETE FROM entries WHERE step = 9 AND n = 1", []string{"labels-1 11.0 decision: writes_overlap", table, table, table}},
		"an action that is gone":       {"DELETE FROM entries WHERE step = 8 AND n = 2", []string{"leaf 25: dropped", table, table}},
		"a settlement by nobody":       {"UPDATE entries SET body = CAST(json_remove(CAST(body AS TEXT), '$.by') AS BLOB) WHERE step = 4 AND n = 2", []string{"labels-1 4.2 settlement: settlement_differs"}},
		"a settlement that turns":      {set(4, 2, "$.state", "'absent'"), []string{"labels-1 4.3 action: action_without_decision", "leaf 15: dropped", table}},
		"an approval that stays":       {"UPDATE entries SET body = CAST(json_remove(CAST(body AS TEXT), '$.approvals') AS BLOB) WHERE step = 7 AND n = 1", []string{"labels-1 8.0 decision: approval_used_twice"}},
		"a resume of what was done":    {set(2, 1, "$.state", "'committed'") + ";" + set(2, 1, "$.status", "'ok'"), []string{"leaf 7: dropped", "labels-1 3.0 decision: operation_move"}},
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
