package sqlite

import (
	"context"
	"iter"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Entries gives entries in the order of their commits.
func (r *Reader) Entries(ctx context.Context, tenant, task string) iter.Seq2[dispatch.Entry, error] {
	if task == "" {
		return entries(ctx, r, sqlEntries, bySeq, scope(tenant, task))
	}
	return entries(ctx, r, sqlEntriesOfTask, byPlace, scope(tenant, task))
}

func entries[At any](ctx context.Context, r *Reader, sql string, o order[At], scope func(*sqlite.Stmt)) iter.Seq2[dispatch.Entry, error] {
	s := stream[dispatch.Entry, At]{sql: sql, scan: scanEntry, at: o.of, size: entrySize,
		bind: func(stmt *sqlite.Stmt, after At) {
			scope(stmt)
			o.set(stmt, ":after", after)
		}}
	return func(yield func(dispatch.Entry, error) bool) { s.read(ctx, r.readers, o.begin, 0, yield) }
}

func entrySize(e dispatch.Entry) int { return len(e.Body) }

// EntriesIn gives a part of the entries of one kind. Those of a task are found in its own order, past its other entries:
// an index by task and kind would be written to at another place with every dispatch, and slow all of them down.
func (r *Reader) EntriesIn(ctx context.Context, tenant, task string, kind dispatch.Kind, span dispatch.Span[dispatch.Place]) iter.Seq2[dispatch.Entry, error] {
	if task == "" {
		return entriesIn(ctx, r, tenant, task, kind, span, sqlEntriesKind, bySeq)
	}
	return entriesIn(ctx, r, tenant, task, kind, span, sqlEntriesKindOfTask, byPlace)
}

func entriesIn[At any](ctx context.Context, r *Reader, tenant, task string, kind dispatch.Kind, span dispatch.Span[dispatch.Place], sql string, o order[At]) iter.Seq2[dispatch.Entry, error] {
	of := scope(tenant, task)
	l := listing[dispatch.Entry, dispatch.Place, At]{
		sql: sql, order: o, scan: scanEntry, size: entrySize,
		scope: func(stmt *sqlite.Stmt) {
			of(stmt)
			stmt.SetText(":kind", string(kind))
		},
		find: func(conn *sqlite.Conn, p dispatch.Place) (*At, error) {
			if task != "" && p.Task != task {
				return nil, nil
			}
			return one(conn, sqlEntry, func(stmt *sqlite.Stmt) {
				bindTaskKey(stmt, dispatch.TaskKey{Tenant: tenant, ID: p.Task})
				stmt.SetInt64(":step", int64(p.Step))
				stmt.SetInt64(":n", int64(p.N))
			}, o.scan)
		},
	}
	return l.in(ctx, r.readers, span)
}

// EntriesFrom gives the entries of every tenant and task in the order of the log, from a leaf on.
func (r *Reader) EntriesFrom(ctx context.Context, leaf int64) iter.Seq2[dispatch.Entry, error] {
	s := stream[dispatch.Entry, int64]{sql: sqlEntriesFrom, scan: scanEntry, at: bySeq.of, size: entrySize,
		bind: func(stmt *sqlite.Stmt, after int64) { stmt.SetInt64(":after", after) }}
	return func(yield func(dispatch.Entry, error) bool) { s.read(ctx, r.readers, leaf, 0, yield) }
}

// Content gives what is kept under a digest.
func (r *Reader) Content(ctx context.Context, digest string) ([]byte, error) {
	var found *[]byte
	err := r.readers.snapshot(ctx, func(conn *sqlite.Conn) (err error) {
		found, err = one(conn, sqlContent, func(stmt *sqlite.Stmt) { stmt.SetText(":digest", digest) },
			func(stmt *sqlite.Stmt) ([]byte, error) { return getBytes(stmt, "bytes"), nil })
		return err
	})
	if err == nil && found == nil {
		err = dispatch.ErrUnknownContent
	}
	if err != nil {
		return nil, err
	}
	return *found, nil
}
