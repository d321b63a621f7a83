package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/journal"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// says runs a command on a state, which must end well, and gives what it wrote.
func says(t *testing.T, file string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append(args, "--state", file), strings.NewReader(""), &out, &errs)
	require.Equal(t, exitOK, code, "%v: %s", args, errs.String())
	return out.String(), errs.String()
}

var nextLine = regexp.MustCompile(`(?m)^next: --from (\d+)\n\z`)

// nextFrom is where an export or a follower says that the next one goes on.
func nextFrom(t *testing.T, stderr string) string {
	t.Helper()
	found := nextLine.FindStringSubmatch(stderr)
	require.NotNil(t, found, stderr)
	return found[1]
}

// An export is the log: each line an entry byte by byte, in their order, of every task and of none; and another
// implementation makes the state's tree of it.
func TestExportIsTheLog(t *testing.T) {
	file := eventfulFile(t)
	entries := logged(t, file)
	stdout, stderr := says(t, file, "log", "export")
	require.Equal(t, entries, exported(stdout))
	assert.Equal(t, treeOf(t, file), sizeAndRoot(t, exported(stdout)))
	assert.Contains(t, stdout, `"kind":"activation"`)
	assert.Contains(t, stdout, `"task":"labels-2"`)
	assert.Equal(t, fmt.Sprintf("exported %d of the %[1]d entries from number 0 on\nto verify them, also elsewhere: govern log verify FILE\nnext: --from %[1]d\n", len(entries)), stderr)

	output := filepath.Join(t.TempDir(), "entries.jsonl")
	none, stderr := says(t, file, "log", "export", "--output", output)
	assert.Empty(t, none)
	assert.Contains(t, stderr, "govern log verify "+output)
	b, err := os.ReadFile(output)
	require.NoError(t, err)
	assert.Equal(t, stdout, string(b))
	info, err := os.Stat(output)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(output))
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

// Pages joined are the whole, with filters and without, whatever their length.
func TestExportPages(t *testing.T) {
	file := eventfulFile(t)
	for _, filter := range [][]string{nil, {"--kind", "action"}, {"--task", "labels-2", "--task", ""}, {"--format", "opa"}} {
		all, _ := says(t, file, append([]string{"log", "export"}, filter...)...)
		require.NotEmpty(t, all)
		for _, limit := range []int{1, 2, 3, 1000} {
			var joined strings.Builder
			for from, done := "0", false; !done; {
				page, stderr := says(t, file, append([]string{"log", "export", "--limit", fmt.Sprint(limit), "--from", from}, filter...)...)
				joined.WriteString(page)
				lines := len(exported(page))
				require.LessOrEqual(t, lines, limit)
				done = lines < limit
				before := from
				from = nextFrom(t, stderr)
				if filter == nil {
					require.Equal(t, fmt.Sprint(lines), difference(t, before, from), "without filters, lines are counted")
				}
			}
			require.Equal(t, all, joined.String(), "%v in pages of %d", filter, limit)
		}
	}
}

func difference(t *testing.T, from, to string) string {
	t.Helper()
	var a, b int
	_, err := fmt.Sscan(from+" "+to, &a, &b)
	require.NoError(t, err)
	return fmt.Sprint(b - a)
}

// An export that cannot be written is not there at all.
func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	err := writeWhole(path, func(w *checkedWriter) error {
		_, err := io.WriteString(w, "half")
		require.NoError(t, err)
		return unwritten(syscall.ENOSPC)
	})
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.Equal(t, exitBroken, exitCode(err))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)

	whole := func(w *checkedWriter) error { _, err := io.WriteString(w, "whole"); return err }
	require.NoError(t, writeWhole(path, whole))
	assert.Equal(t, exitMisuse, exitCode(writeWhole(path, whole)), "nothing is overwritten")
	assert.Equal(t, exitMisuse, exitCode(writeWhole(filepath.Join(dir, "no", "folder"), whole)))
}

// A log that was changed where starting does not look is no export.
func TestExportOfAChangedLog(t *testing.T) {
	l := emptyLab(t, labWith(t), filepath.Join(t.TempDir(), "govern.db"))
	for range 100 {
		l.propose(add("m1"))
	}
	require.NoError(t, l.store.Close())
	tamper(t, l.file, "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'ok', 'OK') AS BLOB) WHERE seq = 9")
	output := filepath.Join(t.TempDir(), "entries.jsonl")
	for _, args := range [][]string{{}, {"--limit", "20"}, {"--output", output}, {"--kind", "task"}} {
		var stderr bytes.Buffer
		code := run(t.Context(), append([]string{"log", "export", "--state", l.file}, args...), strings.NewReader(""), io.Discard, &stderr)
		require.Equal(t, exitBroken, code)
		assert.Contains(t, stderr.String(), "the log is not the one that its tree covers")
		assert.Contains(t, stderr.String(), "govern log verify")
		assert.NotContains(t, stderr.String(), "next:")
	}
	assert.NoFileExists(t, output)
	says(t, l.file, "log", "export", "--from", "9")
}

// labWith is the shipped parts with steps enough for any test.
func labWith(t testing.TB) governed {
	t.Helper()
	c, err := parseConfig("")
	require.NoError(t, err)
	budget(1_000_000)(&c)
	g, err := assemble(t.Context(), c)
	require.NoError(t, err)
	return g
}

// Every decision as an event of OPA's log can be made again from its input, and the state keeps the policy of its version.
// (That what is kept decides alike is TestStockOPADecidesWithWhatIsKept's.)
func TestOPAEventsReplay(t *testing.T) {
	file := eventfulFile(t)
	store, err := sqlite.Open(t.Context(), file, sqlite.Options{MustExist: true})
	require.NoError(t, err)
	defer store.Close()
	var decisions []string
	for e, err := range store.EntriesFrom(t.Context(), 0) {
		require.NoError(t, err)
		if e.Kind == dispatch.KindDecision {
			decisions = append(decisions, fmt.Sprint(e.Task.ID, " ", e.Step))
		}
	}
	stdout, _ := says(t, file, "log", "export", "--format", "opa")
	ids := map[string]bool{}
	var events []string
	for _, line := range exported(stdout) {
		var event journal.OPAEvent
		require.NoError(t, ijson.Unmarshal(line, &event))
		events = append(events, fmt.Sprint(event.Custom.Task, " ", event.Custom.Step))
		require.False(t, ids[event.DecisionID])
		ids[event.DecisionID] = true

		version := event.Bundles["govern"].Revision
		_, err := keptPolicy(t.Context(), store, version)
		require.NoError(t, err)
		g := labWith(t)
		again, err := dispatch.Judge(t.Context(), g.snapshot.Decider, g.snapshot.Version, event.Input)
		require.NoError(t, err)
		want, err := ijson.Marshal(again)
		require.NoError(t, err)
		assert.JSONEq(t, strings.ReplaceAll(string(want), g.snapshot.Version, version), string(event.Result))
	}
	assert.Equal(t, decisions, events)
}

// What is kept under a version is given out only if it is what was kept.
func TestPolicyExportRefusesWhatWasChanged(t *testing.T) {
	for name, sql := range map[string]string{
		"another policy":    "UPDATE contents SET bytes = CAST(replace(CAST(bytes AS TEXT), 'allow', 'ALLOW') AS BLOB)",
		"no policy":         "DELETE FROM contents",
		"a digest with it":  "UPDATE contents SET bytes = x'7b7d'",
		"nothing but a nul": "UPDATE contents SET bytes = x'00'",
	} {
		t.Run(name, func(t *testing.T) {
			file := eventfulFile(t)
			row, _ := says(t, file, "log", "activations", "--format", "json", "--last", "1")
			var activation journal.Activation
			require.NoError(t, json.Unmarshal([]byte(row), &activation))
			tamper(t, file, sql)
			var stderr bytes.Buffer
			dest := filepath.Join(t.TempDir(), "policy")
			code := run(context.Background(), []string{"policy", "export", dest, "--version", activation.PolicyVersion, "--state", file}, strings.NewReader(""), io.Discard, &stderr)
			require.Equal(t, exitBroken, code)
			assert.Contains(t, stderr.String(), "is not there as it was kept")
			assert.NoDirExists(t, dest)
		})
	}
}

// The kinds and effects that a filter knows are all that there are.
func TestKindsAndEffectsAreListed(t *testing.T) {
	for file, c := range map[string]struct {
		form   string
		listed []string
	}{
		"entry.go":    {`(?m)^\tKind\w+ +Kind = "(\w+)"`, words(dispatch.Kinds)},
		"decision.go": {`(?m)^\t\w+ +Effect = "(\w+)"`, words(dispatch.Effects)},
	} {
		text, err := os.ReadFile("../../internal/dispatch/" + file)
		require.NoError(t, err)
		var declared []string
		for _, m := range regexp.MustCompile(c.form).FindAllStringSubmatch(string(text), -1) {
			declared = append(declared, m[1])
		}
		require.NotEmpty(t, declared)
		slices.Sort(declared)
		assert.Equal(t, declared, slices.Sorted(slices.Values(c.listed)), file)
	}
}

// A long export needs no more memory than a short one.
func TestExportNeedsNoMoreMemoryForMoreEntries(t *testing.T) {
	l := emptyLab(t, labWith(t), filepath.Join(t.TempDir(), "govern.db"))
	defer func() { require.NoError(t, l.store.Close()) }()
	const few, many = 1 << 20, 5 << 20 // bytes
	for range many / 50_000 {
		l.propose(call("m1", "read_document", map[string]any{"path": strings.Repeat("x", 60_000)}))
	}
	out := &measured{heap: map[int]uint64{few: 0, many: 0}}
	require.Equal(t, exitOK, run(t.Context(), []string{"log", "export", "--state", l.file}, strings.NewReader(""), out, io.Discard))
	require.Greater(t, out.bytes, many)
	t.Logf("heap after %d bytes: %d KiB, after %d: %d KiB", few, out.heap[few]>>10, many, out.heap[many]>>10)
	require.NotZero(t, out.heap[few])
	require.Less(t, out.heap[many], out.heap[few]+2<<20)
}

// measured is an output that measures the heap once so many bytes have come.
type measured struct {
	bytes int
	heap  map[int]uint64
}

func (m *measured) Write(p []byte) (int, error) {
	m.bytes += len(p)
	for at, heap := range m.heap {
		if heap == 0 && m.bytes >= at {
			var stats runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&stats)
			m.heap[at] = stats.HeapAlloc
		}
	}
	return len(p), nil
}

// What is written into a folder stays in it, whatever its name is.
func TestAFolderHoldsItsFiles(t *testing.T) {
	for _, name := range []string{"../out", "/out", "a/../../out", "a//b", "nul\x00"} {
		dir := t.TempDir()
		err := writeFolder(filepath.Join(dir, "in"), map[string][]byte{name: nil})
		assert.Equal(t, exitMisuse, exitCode(err), name)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, left, name)
	}
}
