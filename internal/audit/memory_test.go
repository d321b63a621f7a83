package audit

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tasksOf is an export of many tasks, made as it is read. Every task is as story has it.
type tasksOf struct {
	story   []byte
	task, n int
	left    []byte
}

const anyTask = "t0000000"

func manyTasks(t testing.TB, n int) io.Reader {
	return io.MultiReader(bytes.NewReader(file(operatorActs().lines(t))), &tasksOf{story: file(withoutDigests(story(anyTask).lines(t))), n: n})
}

func (m *tasksOf) Read(b []byte) (int, error) {
	if len(m.left) == 0 {
		if m.task == m.n {
			return 0, io.EOF
		}
		m.task++
		m.left = bytes.ReplaceAll(m.story, []byte(anyTask), fmt.Appendf(nil, "t%07d", m.task))
	}
	n := copy(b, m.left)
	m.left = m.left[n:]
	return n, nil
}

// withoutDigests takes out of lines what names their task by a digest: they are then of any task.
func withoutDigests(lines [][]byte) [][]byte {
	for i, line := range lines {
		lines[i] = digests.ReplaceAll(line, nil)
	}
	return lines
}

var digests = regexp.MustCompile(`"input_digest":"[0-9a-f]*",`)

// Memory does not grow with the log, neither by tasks nor by what they did: what was not touched lately waits in a file that
// nobody else can read or find.
func TestMemoryDoesNotGrow(t *testing.T) {
	const tasks = 20_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, early, late, spilled := heap(), uint64(0), uint64(0), false
	r, err := Export(t.Context(), manyTasks(t, tasks), Options{Recent: 500, Progress: func(n int64) {
		if now := heap(); n < tasks*9/2 {
			early = max(early, now)
		} else {
			late = max(late, now)
		}
		spilled = namelessFile(t) || spilled
	}})
	require.NoError(t, err)
	require.Equal(t, []string{}, found(r), "%+v", r.Findings[:min(len(r.Findings), 3)])
	assert.EqualValues(t, 1+9*tasks, r.Size)
	assert.Less(t, early-before, uint64(16<<20))
	assert.Less(t, late, early+1<<20, "the second half takes no more than the first")
	if runtime.GOOS == "linux" {
		assert.True(t, spilled)
		assert.False(t, namelessFile(t), "it is gone afterwards")
	}
}

// namelessFile finds a file without a name that this process has open. Nobody else may read it.
func namelessFile(t *testing.T) bool {
	open, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, fd := range open {
		name, err := os.Readlink(fd)
		if err != nil || !strings.HasSuffix(name, " (deleted)") {
			continue
		}
		info, err := os.Stat(fd)
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, info.Mode().Perm())
		return true
	}
	return false
}

// Whatever has to come back from the file comes back as it was: the findings are those of an audit that forgets nothing.
func TestLittleMemoryFindsTheSame(t *testing.T) {
	// Forty tasks, entry by entry in turn, and something wrong in many of them.
	var tasks []log
	for i := range 40 {
		l := story(fmt.Sprintf("t%02d", i))
		switch i % 8 {
		case 1:
			l[7]["call_id"] = "c9"
		case 2:
			l = slices.Delete(l, 3, 4)
		case 3:
			delete(l.at(6), "approvals")
		case 4:
			l.at(5, "approval")["votes"] = []any{}
		case 5:
			l[7], l[6] = l[6], l[7]
		case 6:
			l[8]["time"] = "2025-01-01T12:00:00.000Z"
		case 7:
			l = append(l, l[8])
		}
		tasks = append(tasks, l)
	}
	for i := range 16 {
		l := abroad(t, fmt.Sprintf("u%02d", i))
		switch i % 8 {
		case 1:
			l.at(14, "started")["run"] = 5
		case 2:
			l = slices.Delete(l, 10, 11)
		case 3:
			delete(l.at(7), "approvals")
		case 4:
			l.at(24, "started")["effect"] = "e2"
			l.at(17)["state"], l = "unknown", l[:26]
		case 5:
			l.at(11)["call_id"] = "c9"
		case 6:
			l = append(l, l[15])
		}
		tasks = append(tasks, l)
	}
	all := operatorActs()
	for n := range 28 {
		for _, l := range tasks {
			if n < len(l) {
				all = append(all, l[n])
			}
		}
	}
	export := file(all.lines(t))
	want := audited(t, export, Options{})
	require.Greater(t, len(want.Findings), 50)
	assert.Equal(t, want, audited(t, export, Options{Recent: 2}))
}

// Of a file of which nothing is right, the first findings are kept, and all are counted.
func TestManyFindings(t *testing.T) {
	r := audited(t, bytes.Repeat([]byte("{}\n"), mostFindings+5000), Options{})
	assert.EqualValues(t, mostFindings+5000, r.Found)
	require.Len(t, r.Findings, mostFindings)
	assert.EqualValues(t, mostFindings-1, *r.Findings[mostFindings-1].Leaf)
	assert.False(t, r.Verified)
}
