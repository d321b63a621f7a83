package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/storetest"
)

func TestContractOnAFile(t *testing.T) {
	storetest.Run(t, func(t *testing.T) dispatch.Store { return openFile(t, newPath(t)) })
}

func TestContractInMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T) dispatch.Store { return openMemory(t) })
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "govern.db") }

func openFile(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func openMemory(t *testing.T) *Store {
	t.Helper()
	s, err := OpenMemory(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
