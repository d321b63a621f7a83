package sqlite

import (
	"context"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Load reads a task and the rows that a call depends on, all in one snapshot.
func (r *Reader) Load(ctx context.Context, key dispatch.TaskKey, l dispatch.Lookup) (dispatch.State, error) {
	var state dispatch.State
	err := r.readers.snapshot(ctx, func(conn *sqlite.Conn) (err error) {
		if state.Task, err = task(conn, key); err != nil {
			return err
		}
		if state.Approval, err = approval(conn, key, l); err != nil {
			return err
		}
		if state.Operation, err = r.operation(conn, key, l); err != nil {
			return err
		}
		if state.Open, err = open(conn, key); err != nil {
			return err
		}
		if state.Pending, err = pending(conn, key); err != nil {
			return err
		}
		state.TargetExists, err = recordExists(conn, key, l)
		return err
	})
	if err != nil {
		return dispatch.State{}, err
	}
	return state, nil
}

// Task reads one task.
func (r *Reader) Task(ctx context.Context, key dispatch.TaskKey) (t dispatch.Task, err error) {
	err = r.readers.snapshot(ctx, func(conn *sqlite.Conn) (err error) {
		t, err = task(conn, key)
		return err
	})
	return t, err
}

// Tasks lists a tenant's tasks by id.
func (r *Reader) Tasks(ctx context.Context, tenant string) ([]dispatch.Task, error) {
	return list(ctx, r.readers, sqlTasks, func(stmt *sqlite.Stmt) { stmt.SetText(":tenant", tenant) }, scanTask)
}

// Approval finds an approval by its id.
func (r *Reader) Approval(ctx context.Context, tenant, id string) (dispatch.Approval, error) {
	var found *dispatch.Approval
	err := r.readers.snapshot(ctx, func(conn *sqlite.Conn) (err error) {
		found, err = approvalByID(conn, tenant, id, r.exactApproval)
		return err
	})
	if err != nil {
		return dispatch.Approval{}, err
	}
	if found == nil {
		return dispatch.Approval{}, dispatch.ErrUnknownApproval
	}
	return *found, nil
}

var everyState = []dispatch.ApprovalState{
	dispatch.Pending, dispatch.Approved, dispatch.Rejected, dispatch.Consumed, dispatch.Expired, dispatch.Withdrawn,
}

func settled(state dispatch.ApprovalState) bool {
	return state != dispatch.Pending && state != dispatch.Approved
}

// Approvals lists a tenant's approvals in the order in which they were asked for.
func (r *Reader) Approvals(ctx context.Context, tenant, task string, states ...dispatch.ApprovalState) ([]dispatch.Approval, error) {
	if len(states) == 0 {
		states = everyState
	}
	wanted, err := ijson.Marshal(states)
	if err != nil {
		return nil, err
	}
	sql, bind := scoped(sqlApprovals, sqlApprovalsOfTask, tenant, task)
	if !slices.ContainsFunc(states, settled) {
		sql, bind = scoped(sqlApprovalsUnsettled, sqlApprovalsUnsettledOfTask, tenant, task)
	}
	return list(ctx, r.readers, sql, func(stmt *sqlite.Stmt) {
		bind(stmt)
		stmt.SetText(":states", string(wanted))
	}, scanApproval)
}

// Records lists what local writes created, by task, tool and target.
func (r *Reader) Records(ctx context.Context, tenant, task string) ([]dispatch.Record, error) {
	sql, bind := scoped(sqlRecords, sqlRecordsOfTask, tenant, task)
	return list(ctx, r.readers, sql, bind, r.exactRecord)
}

// Operation finds an operation by its id.
func (r *Reader) Operation(ctx context.Context, tenant, id string) (dispatch.Operation, error) {
	var found *dispatch.Operation
	err := r.readers.snapshot(ctx, func(conn *sqlite.Conn) (err error) {
		found, err = one(conn, sqlOperationByID, func(stmt *sqlite.Stmt) {
			stmt.SetText(":tenant", tenant)
			stmt.SetText(":id", id)
		}, r.exactOperation)
		return err
	})
	if err != nil {
		return dispatch.Operation{}, err
	}
	if found == nil {
		return dispatch.Operation{}, dispatch.ErrUnknownOperation
	}
	return *found, nil
}

var everyOperation = []dispatch.OperationState{dispatch.Started, dispatch.Unknown, dispatch.Committed, dispatch.Absent}

func known(state dispatch.OperationState) bool {
	return state != dispatch.Started && state != dispatch.Unknown
}

// Operations lists operations by task, step and key.
func (r *Reader) Operations(ctx context.Context, tenant, task string, states ...dispatch.OperationState) ([]dispatch.Operation, error) {
	if len(states) == 0 {
		states = everyOperation
	}
	wanted, err := ijson.Marshal(states)
	if err != nil {
		return nil, err
	}
	sql, bind := scoped(sqlOperations, sqlOperationsOfTask, tenant, task)
	if !slices.ContainsFunc(states, known) {
		sql, bind = scoped(sqlOperationsOpen, sqlOperationsOpenOfTask, tenant, task)
	}
	return list(ctx, r.readers, sql, func(stmt *sqlite.Stmt) {
		bind(stmt)
		stmt.SetText(":states", string(wanted))
	}, r.exactOperation)
}

// LastEntry gives the entry of a kind that was committed last.
func (r *Reader) LastEntry(ctx context.Context, tenant string, kind dispatch.Kind) (last dispatch.Entry, found bool, err error) {
	var e *dispatch.Entry
	err = r.readers.snapshot(ctx, func(conn *sqlite.Conn) (err error) {
		e, err = one(conn, sqlEntryLast, func(stmt *sqlite.Stmt) {
			stmt.SetText(":tenant", tenant)
			stmt.SetText(":kind", string(kind))
		}, scanEntry)
		return err
	})
	if err != nil || e == nil {
		return last, false, err
	}
	return *e, true, nil
}

// scoped chooses between a tenant's rows and one task's, and binds which.
func scoped(ofTenant, ofTask, tenant, task string) (sql string, bind func(*sqlite.Stmt)) {
	if task == "" {
		return ofTenant, scope(tenant, task)
	}
	return ofTask, scope(tenant, task)
}

// scope binds a tenant and, if there is one, a task.
func scope(tenant, task string) func(*sqlite.Stmt) {
	return func(stmt *sqlite.Stmt) {
		stmt.SetText(":tenant", tenant)
		if task != "" {
			stmt.SetText(":task", task)
		}
	}
}

func list[T any](ctx context.Context, r *readers, sql string, bind func(*sqlite.Stmt), scan func(*sqlite.Stmt) (T, error)) ([]T, error) {
	var found []T
	err := r.snapshot(ctx, func(conn *sqlite.Conn) error {
		return each(conn, sql, bind, func(stmt *sqlite.Stmt) (bool, error) {
			v, err := scan(stmt)
			found = append(found, v)
			return true, err
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// one gives the first row, or nil.
func one[T any](conn *sqlite.Conn, sql string, bind func(*sqlite.Stmt), scan func(*sqlite.Stmt) (T, error)) (found *T, err error) {
	err = each(conn, sql, bind, func(stmt *sqlite.Stmt) (bool, error) {
		v, err := scan(stmt)
		found = &v
		return false, err
	})
	return found, err
}

func bindTaskKey(stmt *sqlite.Stmt, key dispatch.TaskKey) {
	stmt.SetText(":tenant", key.Tenant)
	stmt.SetText(":task", key.ID)
}

func task(conn *sqlite.Conn, key dispatch.TaskKey) (dispatch.Task, error) {
	t, err := one(conn, sqlTask, func(stmt *sqlite.Stmt) {
		stmt.SetText(":tenant", key.Tenant)
		stmt.SetText(":id", key.ID)
	}, scanTask)
	if err != nil {
		return dispatch.Task{}, err
	}
	if t == nil {
		return dispatch.Task{}, dispatch.ErrUnknownTask
	}
	return *t, nil
}

// approval finds the approval that a lookup names within a task, if it names one.
func approval(conn *sqlite.Conn, key dispatch.TaskKey, l dispatch.Lookup) (*dispatch.Approval, error) {
	if l.Signature == "" {
		return nil, nil
	}
	return one(conn, sqlApprovalLatest, func(stmt *sqlite.Stmt) {
		bindTaskKey(stmt, key)
		stmt.SetText(":signature", l.Signature)
		stmt.SetText(":mode", string(l.Mode))
	}, scanApproval)
}

func approvalByID(conn *sqlite.Conn, tenant, id string, scan func(*sqlite.Stmt) (dispatch.Approval, error)) (*dispatch.Approval, error) {
	return one(conn, sqlApproval, func(stmt *sqlite.Stmt) {
		stmt.SetText(":tenant", tenant)
		stmt.SetText(":id", id)
	}, scan)
}

// operation finds the operation that a lookup names within a task, if it names one.
func (r *Reader) operation(conn *sqlite.Conn, key dispatch.TaskKey, l dispatch.Lookup) (*dispatch.Operation, error) {
	if l.Key != "" {
		l.Dispatch = 0
	} else if l.Dispatch == 0 {
		return nil, nil
	}
	return one(conn, sqlOperation, func(stmt *sqlite.Stmt) {
		bindTaskKey(stmt, key)
		stmt.SetText(":actor", l.Actor)
		stmt.SetText(":key", l.Key)
		stmt.SetInt64(":dispatch", int64(l.Dispatch))
	}, r.exactOperation)
}

// open gives the operations of a task of which it is not known whether they took place.
func open(conn *sqlite.Conn, key dispatch.TaskKey) (all []dispatch.Operation, err error) {
	err = each(conn, sqlOpen, func(stmt *sqlite.Stmt) { bindTaskKey(stmt, key) },
		func(stmt *sqlite.Stmt) (bool, error) {
			o, err := scanOperation(stmt)
			all = append(all, o)
			return true, err
		})
	return all, err
}

func pending(conn *sqlite.Conn, key dispatch.TaskKey) (n int, err error) {
	err = each(conn, sqlPending, func(stmt *sqlite.Stmt) { bindTaskKey(stmt, key) },
		func(stmt *sqlite.Stmt) (bool, error) {
			n = stmt.ColumnInt(0)
			return false, nil
		})
	return n, err
}

func recordExists(conn *sqlite.Conn, key dispatch.TaskKey, l dispatch.Lookup) (exists bool, err error) {
	if l.Tool == "" || l.Target == "" {
		return false, nil
	}
	err = each(conn, sqlRecordExists, func(stmt *sqlite.Stmt) {
		bindTaskKey(stmt, key)
		stmt.SetText(":tool", l.Tool)
		stmt.SetText(":target", l.Target)
	}, func(*sqlite.Stmt) (bool, error) {
		exists = true
		return false, nil
	})
	return exists, err
}
