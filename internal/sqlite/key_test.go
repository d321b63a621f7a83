package sqlite

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheKeyIsMadeOnce(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	assert.Len(t, s.Key(), 32)
	kept, err := os.ReadFile(path + ".key")
	require.NoError(t, err)
	assert.Equal(t, kept, s.Key())
	assert.NotEqual(t, openFile(t, newPath(t)).Key(), s.Key())
}

func TestRefusedKeys(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, file string)
		want  []string
	}{
		"missing": {
			func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) },
			[]string{"is missing", "restore it beside the state"},
		},
		"short": {
			func(t *testing.T, file string) { write(t, file, "short") },
			[]string{"does not have 32 bytes", "restore it beside the state"},
		},
		"long": {
			func(t *testing.T, file string) { write(t, file, strings.Repeat("k", 33)) },
			[]string{"does not have 32 bytes", "restore it beside the state"},
		},
		"another's": {
			func(t *testing.T, file string) { write(t, file, strings.Repeat("k", 32)) },
			[]string{"key of another store", "restore the key"},
		},
		"for the group": {
			func(t *testing.T, file string) { require.NoError(t, os.Chmod(file, 0o640)) },
			[]string{"0640", "chmod 600 "},
		},
		"for everybody": {
			func(t *testing.T, file string) { require.NoError(t, os.Chmod(file, 0o604)) },
			[]string{"0604", "chmod 600 "},
		},
		"a folder": {
			func(t *testing.T, file string) {
				require.NoError(t, os.Remove(file))
				require.NoError(t, os.Mkdir(file, 0o700))
			},
			[]string{"cannot read the store's key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			makeStore(t, path)
			c.spoil(t, path+".key")
			before, err := os.ReadFile(path)
			require.NoError(t, err)

			_, err = Open(t.Context(), path, Options{})
			require.Error(t, err)
			for _, want := range append(c.want, path+".key") {
				assert.Contains(t, err.Error(), want)
			}
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, before, after)
		})
	}
}

func TestANewStoreRefusesAnOpenKey(t *testing.T) {
	path := newPath(t)
	write(t, path+".key", strings.Repeat("k", 32))
	require.NoError(t, os.Chmod(path+".key", 0o644))
	_, err := Open(t.Context(), path, Options{})
	require.ErrorContains(t, err, "chmod 600")

	require.NoError(t, os.Chmod(path+".key", 0o600))
	assert.Equal(t, []byte(strings.Repeat("k", 32)), openFile(t, path).Key())
}
