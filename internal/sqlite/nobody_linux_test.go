package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Root may do everything, so a test run by root opens these stores as another user.
const nobody = 65534

func init() {
	if os.Getenv("GOVERN_TEST_USER") == "nobody" {
		// Only now: a user who is not root may not be able to reach the test binary.
		if err := syscall.Setuid(nobody); err != nil {
			panic(err)
		}
	}
}

// openAsNobody gives what a process prints that fails to open a store in a folder that is its own.
func openAsNobody(t *testing.T, folder, path string) string {
	t.Helper()
	cmd := process(t, "open", path, "")
	if os.Getuid() == 0 {
		cmd.Env = append(cmd.Env, "GOVERN_TEST_USER=nobody")
		require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755))
		files, err := filepath.Glob(folder + "/*")
		require.NoError(t, err)
		for _, file := range append(files, folder) {
			require.NoError(t, os.Chown(file, nobody, nobody))
		}
	}
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "the store was opened")
	return string(out)
}

func TestAnUnwritableStoreSaysHowToChangeThat(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, path string)
		want    []string
	}{
		"folder of a new store": {
			func(t *testing.T, path string) { require.NoError(t, os.Chmod(filepath.Dir(path), 0o555)) },
			[]string{"cannot create the store", "chmod u+rwx"},
		},
		"folder of a store": {
			func(t *testing.T, path string) {
				makeStore(t, path)
				require.NoError(t, os.Chmod(filepath.Dir(path), 0o555))
			},
			[]string{"cannot write", "chmod u+rw"},
		},
		"file": {
			func(t *testing.T, path string) {
				makeStore(t, path)
				require.NoError(t, os.Chmod(path, 0o400))
			},
			[]string{"cannot write", "chmod u+rw"},
		},
		"unreadable file": {
			func(t *testing.T, path string) {
				makeStore(t, path)
				require.NoError(t, os.Chmod(path, 0))
			},
			[]string{"cannot write", "chmod u+rw"},
		},
		"unreadable key": {
			func(t *testing.T, path string) {
				makeStore(t, path)
				require.NoError(t, os.Chmod(path+".key", 0))
			},
			[]string{"cannot read the store's key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "govern.db")
			c.prepare(t, path)
			t.Cleanup(func() { assert.NoError(t, os.Chmod(folder, 0o700)) })
			out := openAsNobody(t, folder, path)
			for _, want := range append(c.want, path) {
				assert.Contains(t, out, want)
			}
		})
	}
}
