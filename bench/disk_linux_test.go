package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A sync to memory costs nothing, and would make every figure of the store worthless.
func TestMemoryIsNoDisk(t *testing.T) {
	kind, err := filesystem("/dev/shm")
	require.NoError(t, err)
	require.Equal(t, "tmpfs", kind)
	s := fixed(duel{})
	assert.ErrorContains(t, run(t.Context(), []subject{s}, []string{"-dir", "/dev/shm"}, io.Discard, io.Discard), "in memory a sync costs nothing")
}
