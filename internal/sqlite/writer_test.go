package sqlite

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

func named(id string) dispatch.TaskKey {
	return dispatch.TaskKey{Tenant: dispatch.DefaultTenant, ID: id}
}

func creation(id string) dispatch.Commit {
	return dispatch.Commit{
		Task:    dispatch.Task{TaskKey: named(id), Entries: 1, Revision: 1},
		Entries: []dispatch.Entry{{Task: named(id), Kind: dispatch.KindTask, Body: []byte("{}")}},
	}
}

// next judges a task's next call.
func next(task dispatch.Task) dispatch.Commit {
	c := dispatch.Commit{Revision: task.Revision, Task: task}
	c.Task.Revision++
	c.Task.Steps++
	c.Entries = []dispatch.Entry{{Task: task.TaskKey, Step: c.Task.Steps, Kind: dispatch.KindDecision, Body: []byte("{}")}}
	return c
}

func createTask(t *testing.T, s *Store, id string) dispatch.Task {
	t.Helper()
	c := creation(id)
	assert.NoError(t, s.Apply(t.Context(), c))
	return c.Task
}

// lock takes a file's write lock as another process would.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	require.NoError(t, err)
	require.NoError(t, execute(conn, "BEGIN IMMEDIATE"))
	return func() {
		require.NoError(t, execute(conn, "ROLLBACK"))
		require.NoError(t, conn.Close())
	}
}

func TestCommitsThatWaitShareATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		s := openFile(t, path)
		unlock := lock(t, path)
		const callers = 100
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() { createTask(t, s, fmt.Sprint(i)) })
		}
		synctest.Wait() // everybody waits: the writer for the lock, the callers for the writer
		unlock()
		all.Wait()

		// The first, or the first few, went alone to wait for the lock.
		assert.LessOrEqual(t, s.writer.transactions.Load(), int64(2))
		tasks, err := s.Tasks(t.Context(), dispatch.DefaultTenant)
		require.NoError(t, err)
		assert.Len(t, tasks, callers)
	})
}

func TestABatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		s := openFile(t, path)
		unlock := lock(t, path)
		const callers = 2*maxBatch + 10
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() { createTask(t, s, fmt.Sprint(i)) })
		}
		synctest.Wait()
		unlock()
		all.Wait()
		assert.GreaterOrEqual(t, s.writer.transactions.Load(), int64(3))
		assert.LessOrEqual(t, s.writer.transactions.Load(), int64(4))
	})
}

func TestABatchKeepsGoodCommitsBesideABadOne(t *testing.T) {
	s := openFile(t, newPath(t))
	of := func(c dispatch.Commit) *request {
		r, err := encode(c)
		require.NoError(t, err)
		return &request{rows: r}
	}
	halfway := creation("halfway")
	halfway.Entries = append(halfway.Entries, halfway.Entries[0])
	batch := []*request{
		of(creation("a")), of(halfway), of(creation("b")), of(creation("a")), of(creation("c")),
	}
	before := s.writer.transactions.Load()
	s.writer.run(batch) // the writer's goroutine is idle
	assert.Equal(t, before+2, s.writer.transactions.Load(), "the batch is written again, each commit apart")

	for i, want := range []error{nil, dispatch.ErrMoved, nil, dispatch.ErrTaskExists, nil} {
		assert.ErrorIs(t, batch[i].err, want)
	}
	tasks, err := s.Tasks(t.Context(), dispatch.DefaultTenant)
	require.NoError(t, err)
	require.Len(t, tasks, 3)

	// What another commit came before is refused at its task's row, and leaves nothing to undo.
	batch = []*request{of(creation("d")), of(creation("a")), of(next(dispatch.Task{TaskKey: named("b"), Revision: 9})), of(creation("e"))}
	before = s.writer.transactions.Load()
	s.writer.run(batch)
	assert.Equal(t, before+1, s.writer.transactions.Load())
	for i, want := range []error{nil, dispatch.ErrTaskExists, dispatch.ErrMoved, nil} {
		assert.ErrorIs(t, batch[i].err, want)
	}
	tasks, err = s.Tasks(t.Context(), dispatch.DefaultTenant)
	require.NoError(t, err)
	require.Len(t, tasks, 5)
}

func TestALockThatStaysIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		s := openFile(t, path)
		task := createTask(t, s, "labels-1")
		unlock := lock(t, path)
		begun := time.Now()
		err := s.Apply(t.Context(), next(task))
		require.ErrorIs(t, err, dispatch.ErrUnavailable)
		assert.ErrorContains(t, err, path)
		assert.Equal(t, DefaultBusyTimeout, time.Since(begun))

		_, err = s.Load(t.Context(), task.TaskKey, dispatch.Lookup{}) // readers do not wait for writers
		require.NoError(t, err)
		_, err = Open(t.Context(), path, Options{BusyTimeout: time.Second})
		require.ErrorIs(t, err, dispatch.ErrUnavailable)

		unlock()
		require.NoError(t, s.Apply(t.Context(), next(task)))
	})
}

// Apply that is called back before its turn leaves nothing; one that has begun tells the truth.
func TestAContextCallsBackOnlyWhatHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		s := openFile(t, path)
		unlock := lock(t, path)
		ctx, cancel := context.WithCancel(t.Context())
		var begun, waiting error
		var all sync.WaitGroup
		all.Go(func() { begun = s.Apply(ctx, creation("begun")) })
		synctest.Wait()
		all.Go(func() { waiting = s.Apply(ctx, creation("waiting")) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		unlock()
		all.Wait()

		assert.NoError(t, begun)
		assert.ErrorIs(t, waiting, context.Canceled)
		tasks, err := s.Tasks(t.Context(), dispatch.DefaultTenant)
		require.NoError(t, err)
		require.Len(t, tasks, 1)
		assert.Equal(t, "begun", tasks[0].ID)
	})
}

func TestCloseAnswersWhatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		s := openFile(t, path)
		unlock := lock(t, path)
		var begun, waiting, closed error
		var all sync.WaitGroup
		all.Go(func() { begun = s.Apply(t.Context(), creation("begun")) })
		synctest.Wait()
		all.Go(func() { waiting = s.Apply(t.Context(), creation("waiting")) })
		all.Go(func() { closed = s.Close() })
		synctest.Wait()
		unlock()
		all.Wait()
		assert.NoError(t, begun)
		assert.NoError(t, closed)
		assert.ErrorIs(t, waiting, errClosed)
	})
}

// A database error fails the whole batch, is told to each of its callers, and leaves the writer usable.
func TestADatabaseErrorFailsItsBatchAlone(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *Store{
		"file":   func(t *testing.T) *Store { return openFile(t, newPath(t)) },
		"memory": openMemory,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			task := createTask(t, s, "labels-1")
			pages := pragma(t, s.writer.conn, "page_count")
			require.Equal(t, pages, pragma(t, s.writer.conn, fmt.Sprintf("max_page_count = %d", pages)))

			large := next(task)
			large.Entries[0].Body = make([]byte, 1<<20)
			r, err := encode(large)
			require.NoError(t, err)
			small, err := encode(creation("labels-2"))
			require.NoError(t, err)
			batch := []*request{{rows: small}, {rows: r}, {rows: small}}
			s.writer.run(batch)
			for _, req := range batch {
				assert.Equal(t, sqlite.ResultFull, sqlite.ErrCode(req.err))
				assert.Equal(t, dispatch.Broken, dispatch.KindOf(req.err))
			}
			_, err = s.Task(t.Context(), named("labels-2"))
			assert.ErrorIs(t, err, dispatch.ErrUnknownTask)

			pragma(t, s.writer.conn, "max_page_count = 1000000")
			require.NoError(t, s.Apply(t.Context(), large))
			createTask(t, s, "labels-2")
		})
	}
}

// A deferred foreign key makes COMMIT itself fail, with the transaction still open.
func TestAFailedCommitIsNobodysSuccess(t *testing.T) {
	s := openFile(t, newPath(t))
	task := createTask(t, s, "labels-1")
	for _, sql := range []string{
		"PRAGMA foreign_keys = ON",
		"CREATE TABLE parent (id INTEGER PRIMARY KEY)",
		"CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
		"CREATE TRIGGER spoil AFTER INSERT ON entries WHEN new.kind = 'spoil' BEGIN INSERT INTO child VALUES (1); END",
	} {
		require.NoError(t, execute(s.writer.conn, sql))
	}
	spoiled := next(task)
	spoiled.Entries[0].Kind = "spoil"
	r, err := encode(spoiled)
	require.NoError(t, err)
	good, err := encode(creation("labels-2"))
	require.NoError(t, err)
	batch := []*request{{rows: good}, {rows: r}}
	s.writer.run(batch)
	for _, req := range batch {
		assert.ErrorContains(t, req.err, "not known whether the commit is durable")
		assert.Equal(t, sqlite.ResultConstraintForeignKey, sqlite.ErrCode(req.err))
	}
	_, err = s.Task(t.Context(), named("labels-2"))
	assert.ErrorIs(t, err, dispatch.ErrUnknownTask)

	require.NoError(t, s.Apply(t.Context(), next(task)))
}

// A connection that cannot roll back is given up, and the next batch has another.
func TestABrokenConnectionIsReplaced(t *testing.T) {
	s := openFile(t, newPath(t))
	task := createTask(t, s, "labels-1")
	require.NoError(t, s.writer.conn.Close())
	s.writer.conn = nil
	require.NoError(t, s.Apply(t.Context(), next(task)))
	assert.Equal(t, 2, pragma(t, s.writer.conn, "synchronous"))
}
