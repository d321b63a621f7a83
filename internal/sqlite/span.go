package sqlite

import (
	"context"
	"errors"
	"iter"
	"math"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// listing is rows of which any part can be read, in an order that no two of them share a place in.
type listing[Row, Name, At any] struct {
	// sql takes the rows between :after and :before, and leaves the order to be added.
	sql   string
	order order[At]
	scope func(*sqlite.Stmt)
	scan  func(*sqlite.Stmt) (Row, error)
	size  func(Row) int
	// find gives where a row stands.
	find func(*sqlite.Conn, Name) (at *At, err error)
}

// order is that of one column or of several. All rows stand between begin and end.
type order[At any] struct {
	forwards, backwards string
	begin, end          At
	of                  func(*sqlite.Stmt) At
	set                 func(stmt *sqlite.Stmt, param string, at At)
}

var (
	bySeq = order[int64]{"seq", "seq DESC", 0, math.MaxInt64,
		func(stmt *sqlite.Stmt) int64 { return stmt.GetInt64("seq") }, (*sqlite.Stmt).SetInt64}
	// No valid UTF-8 is behind this end.
	byID = order[string]{"id", "id DESC", "", "\xff",
		func(stmt *sqlite.Stmt) string { return stmt.GetText("id") }, (*sqlite.Stmt).SetText}
	// A task's entries are numbered in the order of their commits.
	byPlace = order[[2]int64]{"step, n", "step DESC, n DESC", [2]int64{-1, 0}, [2]int64{math.MaxInt64, 0},
		func(stmt *sqlite.Stmt) [2]int64 { return [2]int64{stmt.GetInt64("step"), stmt.GetInt64("n")} },
		func(stmt *sqlite.Stmt, param string, at [2]int64) {
			stmt.SetInt64(param+"_step", at[0])
			stmt.SetInt64(param+"_n", at[1])
		}}
)

func (o order[At]) scan(stmt *sqlite.Stmt) (At, error) { return o.of(stmt), nil }

// all is the SQL of a listing with its order, and nth of the one row of it that has so many others behind it.
func (o order[At]) all(sql string) string { return sql + "ORDER BY " + o.forwards }
func (o order[At]) nth(sql string) string {
	return sql + "ORDER BY " + o.backwards + " LIMIT 1 OFFSET :limit"
}

// in gives a part of the listing. Where it begins is settled at first; from there it is read forwards, also when the
// last rows are wanted.
func (l listing[Row, Name, At]) in(ctx context.Context, r *readers, span dispatch.Span[Name]) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		after, before := l.order.begin, l.order.end
		bind := func(stmt *sqlite.Stmt, after At) {
			l.scope(stmt)
			l.order.set(stmt, ":after", after)
			l.order.set(stmt, ":before", before)
		}
		err := r.snapshot(ctx, func(conn *sqlite.Conn) error {
			if err := errors.Join(l.place(conn, span.After, &after), l.place(conn, span.Before, &before)); err != nil {
				return err
			}
			if !span.Last || span.Limit == 0 {
				return nil
			}
			// The row ahead of the last ones, if there are more.
			ahead, err := one(conn, l.order.nth(l.sql), func(stmt *sqlite.Stmt) {
				bind(stmt, after)
				stmt.SetInt64(":limit", int64(span.Limit))
			}, l.order.scan)
			if ahead != nil {
				after = *ahead
			}
			return err
		})
		if err != nil {
			var none Row
			yield(none, err)
			return
		}
		limit := span.Limit
		if span.Last && span.Before != nil {
			limit = 0 // both ends are known: what comes between them meanwhile must not push out the last
		}
		stream[Row, At]{l.order.all(l.sql), bind, l.scan, l.order.of, l.size}.read(ctx, r, after, limit, yield)
	}
}

// place sets at to where a row stands, if one is named.
func (l listing[Row, Name, At]) place(conn *sqlite.Conn, name *Name, at *At) error {
	if name == nil {
		return nil
	}
	found, err := l.find(conn, *name)
	if err != nil {
		return err
	}
	if found == nil {
		return dispatch.ErrUnknownRow
	}
	*at = *found
	return nil
}

// ApprovalsIn lists a part of a tenant's approvals, or of those that wait.
func (r *Reader) ApprovalsIn(ctx context.Context, tenant, task string, waiting bool, span dispatch.Span[string]) iter.Seq2[dispatch.Approval, error] {
	sql, scope := scoped(sqlApprovalsIn, sqlApprovalsInTask, tenant, task)
	if waiting {
		sql, scope = scoped(sqlApprovalsWaiting, sqlApprovalsWaitingInTask, tenant, task)
	}
	return listing[dispatch.Approval, string, int64]{
		sql: sql, scope: scope, scan: scanApproval, order: bySeq,
		size: func(a dispatch.Approval) int { return len(a.Proposal) },
		find: func(conn *sqlite.Conn, id string) (*int64, error) {
			return one(conn, sqlApprovalSeq, func(stmt *sqlite.Stmt) {
				stmt.SetText(":tenant", tenant)
				stmt.SetText(":id", id)
			}, bySeq.scan)
		},
	}.in(ctx, r.readers, span)
}

// TasksIn lists a part of a tenant's tasks.
func (r *Reader) TasksIn(ctx context.Context, tenant string, span dispatch.Span[string]) iter.Seq2[dispatch.Task, error] {
	return listing[dispatch.Task, string, string]{
		sql: sqlTasksIn, scan: scanTask, order: byID,
		scope: func(stmt *sqlite.Stmt) { stmt.SetText(":tenant", tenant) },
		size:  func(dispatch.Task) int { return 0 },
		find: func(conn *sqlite.Conn, id string) (*string, error) {
			t, err := task(conn, dispatch.TaskKey{Tenant: tenant, ID: id})
			if errors.Is(err, dispatch.ErrUnknownTask) {
				return nil, nil
			}
			return &t.ID, err
		},
	}.in(ctx, r.readers, span)
}
