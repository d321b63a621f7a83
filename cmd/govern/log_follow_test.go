package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// follower is a govern log follow whose output nobody reads but the test.
type follower struct {
	t      *testing.T
	lines  *bufio.Reader
	out    *io.PipeReader
	stop   context.CancelFunc
	stderr bytes.Buffer
	ended  chan int
}

func follow(t *testing.T, file string, args ...string) *follower {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	f := &follower{t: t, lines: bufio.NewReader(out), out: out, stop: stop, ended: make(chan int, 1)}
	go func() {
		code := run(ctx, append([]string{"log", "follow", "--state", file}, args...), strings.NewReader(""), in, &f.stderr)
		in.Close()
		f.ended <- code
	}()
	return f
}

func (f *follower) next() []byte {
	f.t.Helper()
	line, err := f.lines.ReadBytes('\n')
	require.NoError(f.t, err, "%s", line)
	return bytes.TrimSuffix(line, []byte("\n"))
}

// end interrupts the follower, which is nothing out of order.
func (f *follower) end() {
	f.t.Helper()
	f.stop()
	rest, err := io.ReadAll(f.lines)
	require.NoError(f.t, err)
	require.Empty(f.t, rest)
	require.Equal(f.t, exitOK, <-f.ended, f.stderr.String())
}

// B074: decisions are made in a burst while nobody reads what follows them, and then somebody who stays behind. The follower
// gets every entry once and in order, nothing waits for it, and each answer is on record once. One that dies is missed by
// nobody.
func slowFollower(t *testing.T, decisions int) {
	const callers = 20
	l := emptyLab(t, labWith(t), filepath.Join(t.TempDir(), "govern.db"))
	defer func() { require.NoError(t, l.store.Close()) }()
	for c := range callers {
		l.create(fmt.Sprint("burst-", c), l.who.Actor)
	}
	slow, dies, filtered := follow(t, l.file, "--from", "0"), follow(t, l.file, "--from", "0"), follow(t, l.file, "--from", "0", "--kind", "decision")
	dies.next()
	require.NoError(t, dies.out.CloseWithError(syscall.EPIPE))

	var answers sync.Map
	var made atomic.Int64
	behind := make(chan struct{}, decisions)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for range decisions / callers {
				r, err := l.dispatcher.Dispatch(context.Background(), l.who, fmt.Sprint("burst-", c), dispatch.Origin{Door: "test"}, []byte(add("b1")))
				if !assert.NoError(t, err) || !assert.Equal(t, dispatch.StatusOK, r.Status) {
					return
				}
				_, twice := answers.LoadOrStore(fmt.Sprint(r.Task, " ", r.Step), true)
				assert.False(t, twice)
				// For the first half nobody reads; then one line for every fourth decision, of which each is two entries.
				if n := made.Add(1); n > int64(decisions/2) && n%4 == 0 {
					behind <- struct{}{}
				}
			}
		})
	}
	go func() {
		all.Wait()
		close(behind)
	}()
	var got [][]byte
	for range behind {
		got = append(got, slow.next())
	}
	require.Equal(t, exitBroken, <-dies.ended)
	assert.Empty(t, dies.stderr.String(), "whoever reads no more is told nothing")
	require.EqualValues(t, decisions, made.Load(), "every decision was made")

	head, err := l.store.Head(t.Context())
	require.NoError(t, err)
	require.Less(t, len(got), int(head.Size)/2, "the follower was behind")
	for int64(len(got)) < head.Size {
		got = append(got, slow.next())
	}
	require.Equal(t, logged(t, l.file), got)
	records := 0
	for range decisions {
		var d dispatch.DecisionEntry
		require.NoError(t, ijson.Unmarshal(filtered.next(), &d))
		_, answered := answers.LoadAndDelete(fmt.Sprint(d.Task, " ", d.Step))
		require.True(t, answered, "each answer has one decision, and no decision has none")
		records++
	}
	require.Equal(t, decisions, records)
	slow.end()
	assert.Equal(t, fmt.Sprint(head.Size), nextFrom(t, slow.stderr.String()))
	filtered.end()
	treeFits(t, l.file)
}

func TestB074ASlowFollower(t *testing.T) { slowFollower(t, 2_000) }

// A follower begins where it is told to, and goes on with what comes.
func TestFollowBegins(t *testing.T) {
	l := emptyLab(t, labWith(t), filepath.Join(t.TempDir(), "govern.db"))
	defer func() { require.NoError(t, l.store.Close()) }()
	l.propose(add("m1")) // the task, the activation, the decision, the action
	for _, c := range []struct {
		args []string
		skip func(size int) int
	}{
		{[]string{"--from", "0"}, func(int) int { return 0 }},
		{[]string{"--from", "3"}, func(int) int { return 3 }},
		{[]string{"--last", "1"}, func(size int) int { return size - 1 }},
		{[]string{"--last", "100"}, func(int) int { return 0 }},
		{[]string{"--from", "12"}, func(size int) int { return size }},
	} {
		entries := logged(t, l.file)
		f := follow(t, l.file, c.args...)
		for _, want := range entries[c.skip(len(entries)):] {
			require.Equal(t, want, f.next())
		}
		l.propose(add("m1"))
		f.next()
		f.next()
		f.end()
		require.Equal(t, fmt.Sprint(len(entries)+2), nextFrom(t, f.stderr.String()))
	}
	// Without a flag it begins with what is new: once it waits, so that what comes next is.
	f := follow(t, l.file, "--format", "text")
	waits := make(chan string)
	go func() {
		line, _ := f.lines.ReadString('\n')
		waits <- line
	}()
	var line string
	for n := 0; line == ""; n++ {
		l.propose(add(fmt.Sprint("n", n)))
		select {
		case line = <-waits:
		default:
		}
	}
	assert.Regexp(t, `^2026-01-01T12:00:00.000Z (decision|action) +default/labels-1 \d+\.\d n\d+ calculate`, line)
	f.stop()
	_, _ = io.Copy(io.Discard, f.lines)
	require.Equal(t, exitOK, <-f.ended)
}
