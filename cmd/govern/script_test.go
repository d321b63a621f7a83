package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/sqlite"
)

// TestScript runs the commands as people do. Each script in testdata/script is one theme; a comment that begins with a
// number such as B009 stands over what once went wrong elsewhere.
//
// Beside testscript's own commands there are
//
//	exits CODE PROGRAM ARG…    run a program, which must end with this exit code
//	remember NAME REGEXP       keep the first group, as the last output has it, in a variable
//	lasts DURATION FROM UNTIL  compare the distance of two moments
//	entry STATE N FILE         write the bytes of an entry of the log, and a line break
//	secret KEYFILE FILE…       no file, nor the last output, holds the secret of a signing key
func TestScript(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("ROOT", root)
			proposals, err := os.ReadFile(filepath.Join(root, "examples", "warehouse", "proposals.jsonl"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(env.WorkDir, "proposals.jsonl"), proposals, 0o600)
		},
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return os.Geteuid() == 0, nil // whom no permission stops
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"remember": remember,
			"lasts":    lasts,
			"entry":    writeEntry,
			"secret":   keepsSecret,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, not %d", code, want)
	}
}

func remember(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: remember NAME REGEXP")
	}
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("no match for %#q", args[1])
	}
	ts.Setenv(args[0], found[1])
}

func lasts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: lasts DURATION FROM UNTIL")
	}
	want, err := time.ParseDuration(args[0])
	ts.Check(err)
	var moments [2]time.Time
	for i, text := range args[1:] {
		moments[i], err = time.Parse(time.RFC3339, text)
		ts.Check(err)
	}
	if got := moments[1].Sub(moments[0]); got != want {
		ts.Fatalf("%s, not %s", got, want)
	}
}

func writeEntry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: entry STATE N FILE")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	r, err := sqlite.OpenReader(context.Background(), ts.MkAbs(args[0]))
	ts.Check(err)
	defer r.Close()
	for e, err := range r.EntriesFrom(context.Background(), n) {
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[2]), append(e.Body, '\n'), 0o600))
		return
	}
	ts.Fatalf("there is no entry %d", n)
}

func keepsSecret(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: secret KEYFILE FILE…")
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "+", 5)
		if fields[0] != "PRIVATE" {
			continue
		}
		secret := fields[4]
		seed, err := base64.StdEncoding.DecodeString(secret)
		ts.Check(err)
		for _, file := range append(args[1:], "stdout", "stderr") {
			content := ts.ReadFile(file)
			for _, form := range []string{secret, string(seed[1:]), hex.EncodeToString(seed[1:])} {
				if strings.Contains(content, form) {
					ts.Fatalf("%s holds the secret of %s", file, args[0])
				}
			}
		}
	}
}

// Each result is there before the next proposal is read: an agent that waits for its answer is not kept waiting.
func TestRunStreams(t *testing.T) {
	stdin, agent := io.Pipe()
	results, stdout := io.Pipe()
	command := []string{"run", "--state", filepath.Join(t.TempDir(), "govern.db")}
	done := make(chan int, 1)
	go func() { done <- run(t.Context(), command, stdin, stdout, io.Discard) }()
	answers := bufio.NewScanner(results)
	for _, id := range []string{"first", "second", "third"} {
		_, err := io.WriteString(agent, add(id)+"\n")
		require.NoError(t, err)
		require.True(t, answers.Scan())
		require.Contains(t, answers.Text(), `"call_id":"`+id+`","status":"ok"`)
	}
	require.NoError(t, agent.Close())
	require.Equal(t, exitOK, <-done)
}

// A run that waits for a proposal that never comes can be stopped all the same.
func TestRunStopsWhileItWaits(t *testing.T) {
	stdin, agent := io.Pipe()
	defer agent.Close()
	results, stdout := io.Pipe()
	command := []string{"run", "--state", filepath.Join(t.TempDir(), "govern.db")}
	ctx, stop := context.WithCancelCause(t.Context())
	var stderr strings.Builder
	done := make(chan int, 1)
	go func() { done <- run(ctx, command, stdin, stdout, &stderr) }()
	_, err := io.WriteString(agent, add("first")+"\n")
	require.NoError(t, err)
	_, err = bufio.NewReader(results).ReadString('\n')
	require.NoError(t, err)
	stop(errors.New("Ctrl-C was pressed"))
	require.Equal(t, exitBroken, <-done)
	require.Contains(t, stderr.String(), "stopped before proposal 2: Ctrl-C was pressed\n  what came before is on record, and nothing of what comes from there on was judged\n")
	require.Contains(t, stderr.String(), "1 ok")
	require.Contains(t, stderr.String(), "step 1 of 20", "the summary is whole")
}

// So can a command that waits for its one input.
func TestReadingStopsWhileItWaits(t *testing.T) {
	state := filepath.Join(t.TempDir(), "govern.db")
	require.Equal(t, exitOK, run(t.Context(), []string{"task", "create", "labels-1", "--state", state}, strings.NewReader(""), io.Discard, io.Discard))
	for _, command := range [][]string{{"policy", "eval"}, {"review", "approve", "--proposal", "-", "--state", state}} {
		ctx, stop := context.WithCancelCause(t.Context())
		stdin := endless{asked: func() { stop(errors.New("Ctrl-C was pressed")) }, end: t.Context()}
		var stderr strings.Builder
		require.Equal(t, exitBroken, run(ctx, command, stdin, io.Discard, &stderr), command)
		require.Equal(t, "govern: Ctrl-C was pressed\n", stderr.String(), command)
	}
}

// endless is an input that says when it is asked, and gives nothing.
type endless struct {
	asked func()
	end   context.Context
}

func (e endless) Read([]byte) (int, error) {
	e.asked()
	<-e.end.Done()
	return 0, io.EOF
}

// A long run needs no more memory than a short one. Each line is long enough to show if lines were kept, and there
// are enough of them to show if results were.
func TestRunNeedsNoMoreMemoryForMoreLines(t *testing.T) {
	const few, many = 200, 5_000
	in := &manyLines{line: strings.Repeat("x", 4<<10) + "\n", lines: many, heap: map[int]uint64{few: 0, many: 0}}
	code := run(t.Context(), []string{"run", "--state", filepath.Join(t.TempDir(), "govern.db")}, in, io.Discard, io.Discard)
	require.Equal(t, exitDenied, code)
	t.Logf("heap after %d lines: %d KiB, after %d: %d KiB", few, in.heap[few]>>10, many, in.heap[many]>>10)
	require.Less(t, in.heap[many], in.heap[few]+1<<20)
}

// manyLines repeats a line, and measures the heap after some of them.
type manyLines struct {
	line        string
	rest        string
	lines, done int
	heap        map[int]uint64
}

func (m *manyLines) Read(p []byte) (int, error) {
	if m.rest == "" {
		if _, measure := m.heap[m.done]; measure {
			var stats runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&stats)
			m.heap[m.done] = stats.HeapAlloc
		}
		if m.done == m.lines {
			return 0, io.EOF
		}
		m.done++
		m.rest = m.line
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}
