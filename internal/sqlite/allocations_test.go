//go:build !race

package sqlite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a dispatch allocates here, beside what SQLite does: a load the rows that it found and what opens what
// is sealed in them, a commit its texts of JSON and its leaves, and a transaction the edge of the tree and what os.Stat makes of the file and its log. (Under the race detector it is more.)
func TestAllocationsOfADispatch(t *testing.T) {
	const runs = 100
	s := openFile(t, newPath(t))
	task := createTask(t, s, "labels-1")
	c, lookup := draft(task)
	require.NoError(t, s.Apply(t.Context(), c))
	assert.LessOrEqual(t, testing.AllocsPerRun(runs, func() {
		if _, err := s.Load(t.Context(), task.TaskKey, lookup); err != nil {
			t.Error(err)
		}
	}), 22.0)

	assert.LessOrEqual(t, testing.AllocsPerRun(runs, func() {
		if _, err := encode(c); err != nil {
			t.Error(err)
		}
	}), 8.0)

	var batches [][]*request
	for range runs + 1 { // AllocsPerRun runs once more
		c, _ = draft(c.Task)
		r, err := encode(c)
		require.NoError(t, err)
		batches = append(batches, []*request{{rows: r}})
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(runs, func() {
		s.writer.run(batches[0])
		if err := batches[0][0].err; err != nil {
			t.Error(err)
		}
		batches = batches[1:]
	}), 7.0)
}
