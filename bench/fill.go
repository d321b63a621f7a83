package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// size is how much of everything a state holds, spread evenly over its tasks.
type size struct{ tasks, pending, entries int }

// fill makes a state of a size and names its tasks. govern writes one task with a row of each kind; the others are copies of
// those rows under random names, in a random order, put in with SQL: through the store a million would take many minutes.
func (s size) fill(ctx context.Context, e *env, what string, t template) (_ *state, tasks []string, err error) {
	pattern := t.task(keyOf(name('t')), min(s.pending, 1), min(s.entries, len(t.commit.Entries)))
	st, err := newState(ctx, e, what, func(store *sqlite.Store) error { return store.Apply(ctx, pattern) })
	if err != nil {
		return nil, nil, err
	}
	if tasks, err = s.copies(ctx, stateFile(st.dir), pattern); err != nil {
		return nil, nil, fmt.Errorf("a state of %+v: %w", s, err)
	}
	store, err := sqlite.Open(ctx, stateFile(st.dir), sqlite.Options{MustExist: true})
	if err != nil {
		return nil, nil, err
	}
	return st, tasks, errors.Join(s.check(ctx, store, tasks), store.Close())
}

// task is a commit that makes a task as it is after a step: with calls that wait for a person, and entries.
func (t template) task(key dispatch.TaskKey, pending, entries int) dispatch.Commit {
	c := dispatch.Commit{Task: t.before.Task}
	c.Task.TaskKey, c.Task.Revision = key, 1
	for range pending {
		a := *t.before.Approval
		a.Task, a.State, a.Votes, a.ExpiresAtStep = key, dispatch.Pending, nil, 0
		c.Approvals = append(c.Approvals, dispatch.ApprovalChange{Approval: a})
	}
	for i := range entries {
		e := t.commit.Entries[i]
		e.Task, e.Step, e.N = key, 1, i
		c.Task.Steps, c.Task.Entries = 1, i+1
		c.Entries = append(c.Entries, e)
	}
	return c
}

// numbers are 0 to :n - 1.
const numbers = "WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < :n) "

// copies copies the rows of the pattern. What a column holds that is not named here stays as govern wrote it.
func (s size) copies(ctx context.Context, file string, pattern dispatch.Commit) (tasks []string, err error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=locking_mode(EXCLUSIVE)&_pragma=synchronous(OFF)&_pragma=cache_size(-1000000)")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	own := sql.Named("pattern", pattern.Task.ID)
	// No journal: nobody wants the file of a run that failed.
	run := func(query string, args ...any) {
		if err == nil {
			_, err = db.ExecContext(ctx, query, args...)
		}
	}
	run("PRAGMA journal_mode = OFF")
	run("BEGIN")
	clone := func(table, each string, n int, changes map[string]string) {
		if err != nil || n == 0 {
			return
		}
		var names, values []string
		if names, values, err = columns(ctx, db, table, changes); err == nil {
			run(fmt.Sprintf("INSERT INTO %s (%s) %s SELECT %s FROM %s", table, strings.Join(names, ", "), numbers, strings.Join(values, ", "), each), sql.Named("n", n))
		}
	}
	// What is read must not be the table that is written: SQLite would first gather all of it elsewhere.
	run("CREATE TEMP TABLE old_task AS SELECT * FROM tasks WHERE id = :pattern", own)
	run("CREATE TEMP TABLE old_approval AS SELECT * FROM approvals WHERE task = :pattern", own)
	run("CREATE TEMP TABLE old_entries AS SELECT * FROM entries WHERE task = :pattern", own)

	clone("tasks", "numbers, old_task AS old", s.tasks, map[string]string{"id": "'t' || lower(hex(randomblob(10)))"})
	run("CREATE TEMP TABLE others AS SELECT id FROM tasks WHERE id <> :pattern", own)

	asked := map[string]string{"task": "other.id", "id": "'ap-' || lower(hex(randomblob(8)))", "signature": "lower(hex(randomblob(32)))"}
	clone("approvals", "(SELECT id FROM numbers, others ORDER BY i, random()) AS other CROSS JOIN old_approval AS old", s.pending/s.tasks, asked)
	clone("approvals", fmt.Sprintf("(SELECT id FROM numbers, others ORDER BY random() LIMIT %d) AS other CROSS JOIN old_approval AS old", s.pending%s.tasks), min(s.pending%s.tasks, 1), asked)

	two := max(len(pattern.Entries), 1)
	clone("entries", fmt.Sprintf("(SELECT id, i FROM numbers, others ORDER BY i, random()) AS other CROSS JOIN old_entries AS old WHERE old.n = other.i %% %d", two),
		s.entries/s.tasks, map[string]string{"task": "other.id", "step": fmt.Sprintf("1 + other.i / %d", two)})
	run("UPDATE tasks SET steps = :steps WHERE id <> :pattern", own, sql.Named("steps", (s.entries/s.tasks+1)/2))
	run("COMMIT")
	if err != nil {
		return nil, err
	}
	leaves, err := openTree(ctx, db, file)
	if err != nil {
		return nil, err
	}
	if err := leaves.plant(ctx, db); err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT id FROM others ORDER BY random()")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		tasks = append(tasks, id)
	}
	return tasks, rows.Err()
}

// columns names the columns of a table, but for the number that SQLite gives, and what a copy has in each.
func columns(ctx context.Context, db *sql.DB, table string, changes map[string]string) (names, values []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info(?) WHERE name <> 'seq'", table)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			return nil, nil, err
		}
		value, changed := changes[column]
		if !changed {
			value = "old." + column
		}
		names, values = append(names, column), append(values, value)
	}
	for column := range changes {
		if !slices.Contains(names, column) {
			return nil, nil, fmt.Errorf("%s has no column %s", table, column)
		}
	}
	return names, values, rows.Err()
}

// check asserts that a store has what was put in beside it.
func (s size) check(ctx context.Context, store *sqlite.Store, tasks []string) error {
	if len(tasks) != s.tasks {
		return fmt.Errorf("it has %d tasks", len(tasks))
	}
	few := tasks[:min(len(tasks), 100)]
	pending, entries := 0, 0
	for _, task := range few {
		state, err := store.Load(ctx, keyOf(task), dispatch.Lookup{})
		if err != nil {
			return err
		}
		pending += state.Pending
		for _, err := range store.Entries(ctx, who.Tenant, task) {
			if err != nil {
				return err
			}
			entries++
		}
	}
	if pending < s.pending/s.tasks*len(few) || entries != s.entries/s.tasks*len(few) {
		return fmt.Errorf("%d of its tasks have %d approvals and %d entries", len(few), pending, entries)
	}
	return nil
}
