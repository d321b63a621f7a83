package sqlite

import (
	"fmt"
	"iter"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// longestLog is what the log takes at most while nobody is in the way: a look sees less than a full one, what is
// written before the next begins and while it moves the log is bounded, and so is what a look is late by.
const longestLog = 3*logFull + logLook

const large = 1 << 20

func logSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	return info.Size()
}

// fill judges calls of a task, with entries of a size.
func fill(t *testing.T, s *Store, task dispatch.Task, size, calls int) dispatch.Task {
	t.Helper()
	for range calls {
		c := next(task)
		c.Entries[0].Body = make([]byte, size)
		require.NoError(t, s.Apply(t.Context(), c))
		task = c.Task
	}
	return task
}

// An export whose client has stopped reading is in nobody's way, and reads on when the client does.
func TestB065AClientThatStopsReading(t *testing.T) {
	path := newPath(t)
	s, err := Open(t.Context(), path, Options{Warn: func(message string) { t.Error(message) }})
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	task := createTask(t, s, "labels-1")
	task = fill(t, s, task, large, 3)

	export, stop := iter.Pull2(s.Entries(t.Context(), dispatch.DefaultTenant, ""))
	defer stop()
	first, err, ok := export()
	require.True(t, ok)
	require.NoError(t, err)
	assert.Equal(t, dispatch.KindTask, first.Kind)

	const calls = 2 * longestLog / large
	fill(t, s, task, large, calls)
	assert.LessOrEqual(t, logSize(t, path), int64(longestLog+2*large))
	n := 1
	for _, err, more := export(); more; _, err, more = export() {
		require.NoError(t, err)
		n++
	}
	assert.Equal(t, 1+3+calls, n)
}

// Another program that keeps a state open has the log grow. People are told, with the size, and when it has gone the
// log becomes short again.
func TestB065AnotherProgramThatReadsOn(t *testing.T) {
	path := newPath(t)
	warnings := make(chan string, 100)
	s, err := Open(t.Context(), path, Options{Warn: func(message string) { warnings <- message }})
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	task := createTask(t, s, "labels-1")

	other, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	require.NoError(t, err)
	defer func() { assert.NoError(t, other.Close()) }()
	require.NoError(t, execute(other, "BEGIN"))
	require.NoError(t, each(other, "SELECT count(*) FROM tasks", nil, nil))

	for len(warnings) == 0 {
		require.Less(t, logSize(t, path), int64(logLong+2*longestLog), "nobody was told")
		task = fill(t, s, task, large, 1)
	}
	warning := <-warnings
	var size int64
	assert.Contains(t, warning, "open for reading")
	_, err = fmt.Sscanf(warning, path+"-wal has grown to %d MiB", &size)
	require.NoError(t, err, warning)
	assert.GreaterOrEqual(t, size, int64(logLong>>20))
	assert.LessOrEqual(t, size, logSize(t, path)>>20)
	task = fill(t, s, task, large, 2*logFull/large)
	assert.Empty(t, warnings, "told again before the log has doubled")

	require.NoError(t, execute(other, "ROLLBACK"))
	fill(t, s, task, large, longestLog/large)
	assert.LessOrEqual(t, logSize(t, path), int64(longestLog+2*large))
}

// Processes that write little and end see to the log too: the one that stays open may never write.
func TestB065ManyShortProcesses(t *testing.T) {
	path := newPath(t)
	idle := openFile(t, path)
	task := createTask(t, idle, "labels-1")
	const little = logLook / 2 // too little for a look while it runs
	for range 3 * longestLog / 2 / little {
		s, err := Open(t.Context(), path, Options{})
		require.NoError(t, err)
		task = fill(t, s, task, little, 1)
		require.NoError(t, s.Close())
	}
	assert.LessOrEqual(t, logSize(t, path), int64(longestLog))
}

// Processes that write at once move the log under one another, and lose nothing by it.
func TestProcessesMoveOneLog(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	const others = 2
	var all sync.WaitGroup
	for i := range others {
		cmd := process(t, "fill", path, fmt.Sprint(i))
		all.Go(func() {
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, string(out))
		})
	}
	task := fill(t, s, createTask(t, s, "here"), large, 40)
	all.Wait()
	assert.LessOrEqual(t, logSize(t, path), int64((1+others)*longestLog))
	for i := range others {
		other, err := s.Task(t.Context(), named(fmt.Sprint(i)))
		require.NoError(t, err)
		assert.Equal(t, task.Steps, other.Steps)
	}
	n := 0
	for e, err := range s.Entries(t.Context(), dispatch.DefaultTenant, "") {
		require.NoError(t, err)
		require.Contains(t, []int{len("{}"), large}, len(e.Body))
		n++
	}
	assert.Equal(t, (1+others)*41, n)
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	require.NoError(t, err)
	defer func() { assert.NoError(t, conn.Close()) }()
	found, err := sqlitex.ResultText(conn.Prep("PRAGMA integrity_check"))
	require.NoError(t, err)
	assert.Equal(t, "ok", found)
}
