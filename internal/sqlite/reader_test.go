package sqlite

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// To look at a store changes nothing: not the files that there are, and not what is in them.
func TestOpenReader(t *testing.T) {
	path := newPath(t)
	_, err := OpenReader(t.Context(), path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Empty(t, filesAt(t, path))

	s, err := Open(t.Context(), path, Options{})
	require.NoError(t, err)
	task := createTask(t, s, "labels-1")
	look := func() {
		t.Helper()
		r, err := OpenReader(t.Context(), path)
		require.NoError(t, err)
		got, err := r.Task(t.Context(), task.TaskKey)
		require.NoError(t, err)
		assert.Equal(t, task, got)
		require.NoError(t, r.Close())
	}
	unlock := lock(t, path)
	look() // while somebody writes
	unlock()
	createTask(t, s, "labels-2")
	look()
	require.NoError(t, s.Close())

	before := filesAt(t, path)
	look() // with nobody else there
	assert.Equal(t, before, filesAt(t, path))
	require.NoError(t, os.Remove(path+".key"))
	look()
	assert.NoFileExists(t, path+".key")
}

func TestOpenReaderRefuses(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, path string){
		"an older store": version1,
		"an empty file":  func(t *testing.T, path string) { write(t, path, "") },
		"no store":       func(t *testing.T, path string) { write(t, path, "some text that is no database") },
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			make(t, path)
			before := filesAt(t, path)
			_, err := OpenReader(t.Context(), path)
			require.ErrorContains(t, err, path)
			assert.Equal(t, before, filesAt(t, path))
		})
	}
}

// filesAt are a store's files and what they hold.
func filesAt(t *testing.T, path string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	all := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		all[name] = string(b)
	}
	return all
}
