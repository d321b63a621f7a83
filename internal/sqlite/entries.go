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
		s := stream[dispatch.Entry, int64]{sqlEntries, func(stmt *sqlite.Stmt, after int64) {
			stmt.SetText(":tenant", tenant)
			stmt.SetInt64(":after", after)
		}, scanEntry, seqOf, entrySize}
		return s.whole(ctx, r.readers, 0)
	}
	// A task's entries are numbered in the order of their commits, so that its own order needs no further index.
	s := stream[dispatch.Entry, [2]int64]{sqlEntriesOfTask, func(stmt *sqlite.Stmt, after [2]int64) {
		bindTaskKey(stmt, dispatch.TaskKey{Tenant: tenant, ID: task})
		stmt.SetInt64(":step", after[0])
		stmt.SetInt64(":n", after[1])
	}, scanEntry, func(stmt *sqlite.Stmt) [2]int64 { return [2]int64{stmt.GetInt64("step"), stmt.GetInt64("n")} }, entrySize}
	return s.whole(ctx, r.readers, [2]int64{-1, 0})
}

func seqOf(stmt *sqlite.Stmt) int64  { return stmt.GetInt64("seq") }
func entrySize(e dispatch.Entry) int { return len(e.Body) }
