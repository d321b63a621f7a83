package sqlite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func needStrace(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "strace", "-f", "-o", os.DevNull, "true").CombinedOutput()
	if err == nil {
		return
	}
	why := fmt.Sprintf("strace cannot be used here: %v: %s", err, out)
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

var (
	said   = regexp.MustCompile(`write\(1<[^>]*>, "([a-z ]+)\\n"`)
	synced = regexp.MustCompile(`(f(?:data)?sync)\(\d+<[^>]*/([^/>]+)>`)
)

// A commit by itself is one sync of the log before its answer, and so are many that share a transaction.
func TestSyncsOfACommit(t *testing.T) {
	needStrace(t)
	path := newPath(t)
	trace := filepath.Join(t.TempDir(), "trace")
	job := process(t, "syncs", path, "labels-1")
	cmd := exec.CommandContext(t.Context(), "strace", append([]string{"-f", "-qq", "-y", "-o", trace,
		"-e", "signal=none", "-e", "trace=write,fsync,fdatasync,msync,sync_file_range"}, job.Args...)...)
	cmd.Env = job.Env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	lines, err := os.ReadFile(trace)
	require.NoError(t, err)

	syncs, part := map[string][]string{}, "before"
	for line := range strings.SplitSeq(string(lines), "\n") {
		if m := said.FindStringSubmatch(line); m != nil {
			part = m[1]
		} else if strings.Contains(line, "sync") && !strings.Contains(line, "resumed>") {
			m := synced.FindStringSubmatch(line)
			require.NotNil(t, m, line)
			syncs[part] = append(syncs[part], m[1]+" "+m[2])
		}
	}
	log := "fdatasync " + filepath.Base(path) + "-wal"
	assert.Equal(t, []string{log, log, log, log, log}, syncs["one by one"])
	assert.Equal(t, []string{log}, syncs["together"])
	assert.Contains(t, syncs, "done", "closing syncs the file")
}
