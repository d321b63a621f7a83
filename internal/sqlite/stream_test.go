package sqlite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// One transaction reads so many rows, or so many bytes, whichever comes first, and always a row.
func TestPagesOfAStreamAreBounded(t *testing.T) {
	s := openMemory(t)
	task := createTask(t, s, "labels-1")
	c := next(task)
	c.Entries = nil
	add := func(rows, size int) {
		for range rows {
			c.Entries = append(c.Entries, dispatch.Entry{Task: task.TaskKey, Step: 1, N: len(c.Entries), Kind: dispatch.KindDecision, Body: make([]byte, size)})
		}
	}
	add(600, 1)
	add(5, 400<<10)
	add(2, 3<<20)
	require.NoError(t, s.Apply(t.Context(), c))

	entries := stream[dispatch.Entry, int64]{sql: bySeq.all(sqlEntriesKind), scan: scanEntry, at: bySeq.of, size: entrySize,
		bind: func(stmt *sqlite.Stmt, after int64) {
			stmt.SetText(":tenant", task.Tenant)
			stmt.SetText(":kind", string(dispatch.KindDecision))
			bySeq.set(stmt, ":after", after)
			bySeq.set(stmt, ":before", bySeq.end)
		}}
	var pages []int
	for more, after := true, bySeq.begin; more; {
		var page []dispatch.Entry
		var err error
		page, after, more, err = entries.page(t.Context(), s.readers, after, 0)
		require.NoError(t, err)
		pages = append(pages, len(page))
	}
	assert.Equal(t, []int{500, 100 + 3, 2 + 1, 1, 0}, pages)
}
