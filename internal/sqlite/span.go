package sqlite

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// listing is rows of which any part can be read, in the order of one column that no two of them share. Its SQL ends with
// that order, and takes the rows between :after and :before.
type listing[Row, Name, At any] struct {
	sql   string
	scope func(*sqlite.Stmt)
	scan  func(*sqlite.Stmt) (Row, error)
	size  func(Row) int
	order order[At]
	// find gives where a row stands.
	find func(*sqlite.Conn, Name) (at *At, err error)
}

// order is that of one column. All rows are between begin and end.
type order[At any] struct {
	begin, end At
	of         func(*sqlite.Stmt) At
	set        func(stmt *sqlite.Stmt, param string, at At)
}

var (
	bySeq = order[int64]{0, math.MaxInt64, seqOf, (*sqlite.Stmt).SetInt64}
	// No text of valid UTF-8 is behind its end.
	byID = order[string]{"", "\xff", func(stmt *sqlite.Stmt) string { return stmt.GetText("id") }, (*sqlite.Stmt).SetText}
)

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
			ahead, err := one(conn, lastOf(l.sql), func(stmt *sqlite.Stmt) {
				bind(stmt, after)
				stmt.SetInt64(":limit", int64(span.Limit))
			}, func(stmt *sqlite.Stmt) (At, error) { return l.order.of(stmt), nil })
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
		stream[Row, At]{l.sql, bind, l.scan, l.order.of, l.size}.read(ctx, r, after, limit, yield)
	}
}

// lastOf finds the row that has so many others of a listing behind it.
func lastOf(sql string) string { return strings.TrimSpace(sql) + " DESC LIMIT 1 OFFSET :limit" }

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

// seq finds a row's place in an order of seq.
func seq(conn *sqlite.Conn, sql string, bind func(*sqlite.Stmt)) (*int64, error) {
	return one(conn, sql, bind, func(stmt *sqlite.Stmt) (int64, error) { return seqOf(stmt), nil })
}

// EntriesIn gives a part of the entries of one kind.
func (r *Reader) EntriesIn(ctx context.Context, tenant, task string, kind dispatch.Kind, span dispatch.Span[dispatch.Place]) iter.Seq2[dispatch.Entry, error] {
	sql, scope := scoped(sqlEntriesKind, sqlEntriesKindOfTask, tenant, task)
	return listing[dispatch.Entry, dispatch.Place, int64]{
		sql: sql,
		scope: func(stmt *sqlite.Stmt) {
			scope(stmt)
			stmt.SetText(":kind", string(kind))
		},
		scan: scanEntry, size: entrySize, order: bySeq,
		find: func(conn *sqlite.Conn, p dispatch.Place) (*int64, error) {
			return seq(conn, sqlEntrySeq, func(stmt *sqlite.Stmt) {
				bindTaskKey(stmt, dispatch.TaskKey{Tenant: tenant, ID: p.Task})
				stmt.SetInt64(":step", int64(p.Step))
				stmt.SetInt64(":n", int64(p.N))
			})
		},
	}.in(ctx, r.readers, span)
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
			return seq(conn, sqlApprovalSeq, func(stmt *sqlite.Stmt) {
				stmt.SetText(":tenant", tenant)
				stmt.SetText(":id", id)
			})
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
