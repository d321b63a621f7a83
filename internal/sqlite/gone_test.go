package sqlite

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file that was removed or replaced can still be written by whoever has it open, and nobody finds that again. So
// nothing is committed there, and nothing is told.
func TestNothingIsCommittedToAFileThatIsGone(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"renamed": func(t *testing.T, path string) { require.NoError(t, os.Rename(path, path+".old")) },
		"put back from a copy": func(t *testing.T, path string) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".copy", text, 0o600))
			require.NoError(t, os.Rename(path+".copy", path))
		},
		"its log": func(t *testing.T, path string) { require.NoError(t, os.Remove(path+"-wal")) },
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s, err := Open(t.Context(), path, Options{})
			require.NoError(t, err)
			defer s.Close()
			createTask(t, s, "labels-1")
			require.NoError(t, increment(t.Context(), s, "labels-1"))
			harm(t, path)
			err = increment(t.Context(), s, "labels-1")
			require.ErrorContains(t, err, path)
			assert.ErrorContains(t, err, "was removed or replaced while it was in use")
			assert.NotErrorIs(t, err, fs.ErrNotExist, "a command would take that for a state that was never made")
		})
	}
}
