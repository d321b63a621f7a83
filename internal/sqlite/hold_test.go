package sqlite

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

const holdsExcludeProcesses = runtime.GOOS == "linux"

// A caller who gives up while it waits, here or for another process, leaves nothing behind and lets the next one in.
func TestGivingUpLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		holder, other := openFile(t, path), openFile(t, path)
		release, err := holder.Hold(t.Context(), named("labels-1"))
		require.NoError(t, err)

		waitOn := []*Store{holder, holder}
		if holdsExcludeProcesses {
			waitOn = append(waitOn, other, other)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var impatient, patient sync.WaitGroup
		for _, s := range waitOn {
			impatient.Go(func() {
				_, err := s.Hold(ctx, named("labels-1"))
				assert.ErrorIs(t, err, context.Canceled)
			})
			patient.Go(func() {
				release, err := s.Hold(t.Context(), named("labels-1"))
				if assert.NoError(t, err) {
					release()
				}
			})
		}
		synctest.Wait() // everybody waits
		cancel()
		impatient.Wait()
		release()
		patient.Wait()
		assert.Empty(t, holder.holds.turns)
		assert.Empty(t, other.holds.turns)
	})
}

// Nobody waits for ever for whoever is stuck, here or in another process; and a caller's own limit is told apart.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		holder, other := openFile(t, path), openFile(t, path)
		release, err := holder.Hold(t.Context(), named("labels-1"))
		require.NoError(t, err)
		waiting := []*Store{holder}
		if holdsExcludeProcesses {
			waiting = append(waiting, other)
		}
		for _, s := range waiting {
			began := time.Now()
			_, err = s.Hold(t.Context(), named("labels-1"))
			require.ErrorIs(t, err, dispatch.ErrUnavailable)
			assert.GreaterOrEqual(t, time.Since(began), longestHold)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err = s.Hold(ctx, named("labels-1"))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		release()
		for _, s := range waiting {
			release, err := s.Hold(t.Context(), named("labels-1"))
			require.NoError(t, err)
			release()
			assert.Empty(t, s.holds.turns)
		}
	})
}

// Two Stores on one file are two processes to each other, as far as holds go.
func TestHoldsExcludeOtherStores(t *testing.T) {
	if !holdsExcludeProcesses {
		t.Skip("this system has no locks that belong to an open file")
	}
	path := newPath(t)
	stores := []*Store{openFile(t, path), openFile(t, path)}
	var holders atomic.Int32
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			release, err := stores[i%2].Hold(t.Context(), named("labels-1"))
			if !assert.NoError(t, err) {
				return
			}
			defer release()
			assert.Equal(t, int32(1), holders.Add(1))
			holders.Add(-1)
		})
	}
	all.Wait()

	release, err := stores[0].Hold(t.Context(), named("labels-1"))
	require.NoError(t, err)
	defer release()
	other, err := stores[1].Hold(t.Context(), named("labels-2"))
	require.NoError(t, err)
	other()
}
