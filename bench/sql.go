package main

import (
	"context"
	"database/sql"
	"errors"
	"os"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// better is n commits by the program that anybody would write first: database/sql, a transaction for each commit, the same
// engine, tables, rows and durability. It has one connection or one for each caller, whichever is faster.
func (b block) better(callers, n int) side {
	return func(ctx context.Context) (float64, error) {
		one, err := b.obvious(ctx, 1, callers, n)
		if err != nil {
			return 0, err
		}
		many, err := b.obvious(ctx, callers, callers, n)
		return min(one, many), err
	}
}

func (b block) obvious(ctx context.Context, connections, callers, n int) (cost float64, err error) {
	dir, err := b.copy()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := openProgram(ctx, stateFile(dir), connections)
	if err != nil {
		return 0, err
	}
	if err := p.settle(ctx, b.state); err != nil {
		return 0, errors.Join(err, p.db.Close())
	}
	cost, err = b.run(func(c dispatch.Commit) error { return p.apply(ctx, c) },
		func(op func(int) error) (float64, error) { return together(callers, n, op) })
	if err = errors.Join(err, p.db.Close()); err != nil {
		return 0, err
	}
	// Only now: govern beside it could help.
	store, err := sqlite.Open(ctx, stateFile(dir), sqlite.Options{MustExist: true})
	if err != nil {
		return 0, err
	}
	return cost, errors.Join(b.look(ctx, store, n), store.Close())
}

// The statements of one commit.
const (
	changeTask = `UPDATE tasks SET steps = ?, spent_cost = ?, spent_attempts = ?, spent_output = ?, updated = ?, entries = ?, revision = ?
		WHERE tenant = ? AND id = ? AND revision = ?`
	changeApproval = `UPDATE approvals SET state = ?, terms = ?, votes = ?, expires_at_step = ?, expires_at = ?, policy_version = ?
		WHERE tenant = ? AND id = ? AND state = ?`
	createOperation = `INSERT INTO operations (tenant, task, actor, key, dispatch, id, signature, tool, state, step, run, lookups, result) VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, 0, ?)`
	createRecord    = `INSERT INTO records (tenant, task, tool, target, value) VALUES (?, ?, ?, ?, ?)`
	createEntry     = `INSERT INTO entries (tenant, task, step, n, kind, body) VALUES (?, ?, ?, ?, ?, ?)`
)

// program is the obvious one.
type program struct {
	db                                       *sql.DB
	task, approval, operation, record, entry *sql.Stmt
	tree                                     *tree
}

func openProgram(ctx context.Context, file string, connections int) (*program, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	p := &program{db: db}
	err = prepareAll(ctx, db, map[**sql.Stmt]string{
		&p.task: changeTask, &p.approval: changeApproval, &p.operation: createOperation, &p.record: createRecord, &p.entry: createEntry,
	})
	if err == nil {
		p.tree, err = openTree(ctx, db, file)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return p, nil
}

// settle does for the program what state.settle does for the store.
func (p *program) settle(ctx context.Context, s *state) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := p.log(ctx, tx, s.ballast(dispatch.TaskKey{Tenant: "settling", ID: name('t')})); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// log writes entries and their leaves.
func (p *program) log(ctx context.Context, tx *sql.Tx, entries []dispatch.Entry) error {
	bodies := make([][]byte, len(entries))
	for i, e := range entries {
		bodies[i] = e.Body
		if err := one(ctx, tx, p.entry, e.Task.Tenant, e.Task.ID, e.Step, e.N, e.Kind, bodies[i]); err != nil {
			return err
		}
	}
	return p.tree.grow(ctx, tx, bodies)
}

func (p *program) apply(ctx context.Context, c dispatch.Commit) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := p.write(ctx, tx, c); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (p *program) write(ctx context.Context, tx *sql.Tx, c dispatch.Commit) error {
	t, a, o, r := c.Task, c.Approvals[0], c.Operation, c.Record
	terms, err := ijson.Marshal(a.Terms)
	if err != nil {
		return err
	}
	votes, err := ijson.Marshal(a.Votes)
	if err != nil {
		return err
	}
	return errors.Join(
		one(ctx, tx, p.task, t.Steps, t.Spent.Cost, t.Spent.Attempts, t.Spent.Output, dispatch.FormatTime(t.Updated), t.Entries, t.Revision, t.Tenant, t.ID, c.Revision),
		one(ctx, tx, p.approval, a.State, string(terms), string(votes), a.ExpiresAtStep, dispatch.FormatTime(a.ExpiresAt), a.PolicyVersion, a.Task.Tenant, a.ID, a.From),
		one(ctx, tx, p.operation, o.Task.Tenant, o.Task.ID, o.Actor, o.Key, o.ID, o.Signature, o.Tool, o.State, o.Step, o.Run, []byte(o.Result)),
		one(ctx, tx, p.record, r.Task.Tenant, r.Task.ID, r.Tool, r.Target, []byte(r.Value)),
		p.log(ctx, tx, c.Entries),
	)
}

// one runs a statement that must change exactly one row.
func one(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt, args ...any) error {
	result, err := tx.StmtContext(ctx, stmt).ExecContext(ctx, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = dispatch.ErrMoved
	}
	return err
}
