package sqlite

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

func TestReadersCannotWrite(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *Store{
		"file":   func(t *testing.T) *Store { return openFile(t, newPath(t)) },
		"memory": openMemory,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			err := s.readers.snapshot(t.Context(), func(conn *sqlite.Conn) error {
				return execute(conn, "INSERT INTO meta (name, value) VALUES ('a', x'00')")
			})
			assert.Equal(t, sqlite.ResultReadOnly, sqlite.ErrCode(err).ToPrimary())
		})
	}
}

// When every connection is in use, a reader waits for one, and no longer than its context allows.
func TestReadersWaitForAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openFile(t, newPath(t))
		task := createTask(t, s, "labels-1")
		finish := make(chan struct{})
		var reading, waiting sync.WaitGroup
		for range maxReaders {
			reading.Go(func() {
				assert.NoError(t, s.readers.snapshot(t.Context(), func(*sqlite.Conn) error {
					<-finish
					return nil
				}))
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		waiting.Go(func() {
			_, err := s.Load(ctx, task.TaskKey, dispatch.Lookup{})
			assert.ErrorIs(t, err, context.Canceled)
		})
		waiting.Go(func() {
			_, err := s.Load(t.Context(), task.TaskKey, dispatch.Lookup{})
			assert.NoError(t, err)
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(finish)
		reading.Wait()
		waiting.Wait()
	})
}

// A snapshot does not move while commits go on beside it.
func TestASnapshotStandsStill(t *testing.T) {
	s := openFile(t, newPath(t))
	one := createTask(t, s, "labels-1")
	require.NoError(t, s.readers.snapshot(t.Context(), func(conn *sqlite.Conn) error {
		before, err := task(conn, one.TaskKey)
		require.NoError(t, err)
		require.NoError(t, s.Apply(t.Context(), next(one)))
		after, err := task(conn, one.TaskKey)
		require.NoError(t, err)
		assert.Equal(t, before, after)
		return nil
	}))
}
