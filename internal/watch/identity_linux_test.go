package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file with another's size and time is another file, and so is one whose time was set back.
func TestTimesThatWereSetBack(t *testing.T) {
	dir := t.TempDir()
	file, next := filepath.Join(dir, "f"), filepath.Join(dir, "g")
	then := time.Now().Add(-time.Hour)
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(name, then, then))
	}
	put(file, "one")
	put(next, "two")
	was, _ := take([]string{file})
	require.NoError(t, os.Rename(next, file))
	now, _ := take([]string{file})
	assert.False(t, now.equal(was))

	// Two writes within one tick of the system's clock are told apart by nothing.
	was = now
	assert.Eventually(t, func() bool {
		put(file, "tow")
		now, _ = take([]string{file})
		return !now.equal(was)
	}, time.Second, time.Millisecond)
}
