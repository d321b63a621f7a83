package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A named pipe that nobody writes to does not open. Whoever named it by mistake can still interrupt the command.
func TestACommandThatWaitsForAPipeCanBeInterrupted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	done := make(chan error, 1)
	go func() {
		_, err := new(app).open(ctx, pipe)
		done <- err
	}()
	select {
	case err := <-done:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(10 * time.Second):
		require.Fail(t, "it still waits")
	}
}
