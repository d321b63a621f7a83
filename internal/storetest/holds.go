package storetest

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

var holds = []part{
	{"a task is held by one at a time", func(t *testing.T, s dispatch.Store) {
		var holders atomic.Int32
		held := 0
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				release, err := s.Hold(t.Context(), key("labels-1"))
				if !assert.NoError(t, err) {
					return
				}
				defer release()
				assert.Equal(t, int32(1), holders.Add(1))
				held++
				holders.Add(-1)
			})
		}
		all.Wait()
		assert.Equal(t, 50, held)
	}},
	{"tasks do not hold each other up", func(t *testing.T, s dispatch.Store) {
		for _, task := range []dispatch.TaskKey{key("a"), key("b"), {Tenant: tenant + "a"}, {Tenant: "", ID: tenant + "a"}} {
			release, err := s.Hold(t.Context(), task)
			require.NoError(t, err)
			defer release()
		}
	}},
	{"waiting ends with its context, and leaves no trace", func(t *testing.T, s dispatch.Store) {
		release, err := s.Hold(t.Context(), key("labels-1"))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, err := s.Hold(ctx, key("labels-1"))
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		cancel()
		all.Wait()
		release()

		release, err = s.Hold(t.Context(), key("labels-1"))
		require.NoError(t, err)
		release()
	}},
	{"a context that is over holds nothing", func(t *testing.T, s dispatch.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Hold(ctx, key("labels-1"))
		require.ErrorIs(t, err, context.Canceled)
		release, err := s.Hold(t.Context(), key("labels-1"))
		require.NoError(t, err)
		release()
	}},
	{"the end of the context does not end the hold", func(t *testing.T, s dispatch.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		release, err := s.Hold(ctx, key("labels-1"))
		require.NoError(t, err)
		cancel()
		waiting, stop := context.WithCancel(t.Context())
		stop()
		_, err = s.Hold(waiting, key("labels-1"))
		require.Error(t, err)
		release()
	}},
	{"releasing twice releases once", func(t *testing.T, s dispatch.Store) {
		first, err := s.Hold(t.Context(), key("labels-1"))
		require.NoError(t, err)
		first()
		second, err := s.Hold(t.Context(), key("labels-1"))
		require.NoError(t, err)
		first() // must not free the second's

		var released atomic.Bool
		var all sync.WaitGroup
		all.Go(func() {
			third, err := s.Hold(t.Context(), key("labels-1"))
			if assert.NoError(t, err) {
				assert.True(t, released.Load(), "the third holds with the second")
				third()
			}
		})
		for range 100 {
			runtime.Gosched() // let the third in, if it can be
		}
		released.Store(true)
		second()
		all.Wait()
	}},
	{"a panic under a deferred release frees the task", func(t *testing.T, s dispatch.Store) {
		assert.Panics(t, func() {
			release, err := s.Hold(t.Context(), key("labels-1"))
			require.NoError(t, err)
			defer release()
			panic("in a tool")
		})
		release, err := s.Hold(t.Context(), key("labels-1"))
		require.NoError(t, err)
		release()
	}},
	{"a task can be held before it exists", func(t *testing.T, s dispatch.Store) {
		release, err := s.Hold(t.Context(), key("new"))
		require.NoError(t, err)
		defer release()
		apply(t, s, create(key("new")))
	}},
}
