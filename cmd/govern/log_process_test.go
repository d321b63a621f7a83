//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// The log as real processes write and read it.

// appending has two processes answer proposals of one task, and a third that starts anew for each, until the moment. A
// fourth follows. What they leave is one log, with each answer in it once.
func appending(t *testing.T, until time.Time) {
	h := newHome(t)
	first := h.govern("run", "draft.json")
	require.Equal(t, exitWaiting, first.code, first.stderr)
	follower := h.start("log", "follow", "--from", "0")
	var mu sync.Mutex
	answers := map[int]string{}
	count := func(lines ...line) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range lines {
			assert.NotContains(t, answers, l.Step, "no step is answered twice")
			answers[l.Step] = l.CallID
		}
	}
	count(first.lines(t)...)
	var all sync.WaitGroup
	for _, s := range []*running{h.start("run", "-"), h.start("run", "-")} {
		all.Go(func() {
			for time.Now().Before(until) {
				s.send(add("stream"))
				text, err := s.lines.ReadString('\n')
				if !assert.NoError(t, err) {
					return
				}
				count(answer{stdout: text}.lines(t)...)
			}
			assert.NoError(t, s.stdin.Close())
			assert.NoError(t, s.cmd.Wait(), s.stderr.String())
		})
	}
	h.write("one.jsonl", add("alone")+"\n")
	all.Go(func() {
		for time.Now().Before(until) {
			a := h.govern("run", "one.jsonl")
			if !assert.Zero(t, a.code, a.stderr) {
				return
			}
			count(a.lines(t)...)
		}
	})
	all.Wait()
	require.False(t, t.Failed())

	exported1 := h.govern("log", "export")
	require.Zero(t, exported1.code, exported1.stderr)
	entries := exported(exported1.stdout)
	require.Equal(t, treeOf(t, h.state()), sizeAndRoot(t, entries))
	for _, want := range entries {
		got, err := follower.lines.ReadBytes('\n')
		require.NoError(t, err)
		require.Equal(t, string(want), string(bytes.TrimSuffix(got, []byte("\n"))))
	}
	require.NoError(t, follower.cmd.Process.Signal(syscall.SIGTERM))
	ended := follower.rest()
	require.Zero(t, ended.code, ended.stderr)
	require.Empty(t, ended.stdout)

	a := h.open(t)
	steps := map[int]bool{}
	for _, d := range a.decisions {
		require.False(t, steps[d.Step], "step %d is decided twice", d.Step)
		steps[d.Step] = true
		require.Equal(t, answers[d.Step], *d.CallID, "step %d", d.Step)
	}
	require.Len(t, answers, len(a.decisions), "as many answers as decisions")
	require.Equal(t, len(a.decisions)-1, a.count[dispatch.KindAction], "each sum ran once")
	t.Logf("%d answers, %d entries", len(answers), len(entries))
}

func TestTwoProcessesAppend(t *testing.T) { appending(t, time.Now().Add(2*time.Second)) }

// B074: an output that is full ends an export and a follower with an error, and the log has everything all the same.
func TestB074AFullTarget(t *testing.T) {
	h := approved(t)
	before := h.govern("log", "export").stdout
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	for _, args := range [][]string{{"log", "export"}, {"log", "export", "--format", "opa"}, {"log", "follow", "--from", "0"}} {
		cmd := h.command(t.Context(), "govern", args...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &stderr
		a := ended(t, cmd, cmd.Run(), "", stderr.String())
		assert.Equal(t, exitBroken, a.code, args)
		assert.Contains(t, stderr.String(), "could not be written: write /dev/stdout: no space left on device")
		assert.Contains(t, stderr.String(), "nothing of the log is lost")
		if args[1] == "follow" {
			assert.Contains(t, stderr.String(), "next: --from 0\n", "what was not written comes again")
		}
	}
	if mayMount(t) {
		small := home{t: t, dir: t.TempDir()}
		small.mount("tmpfs", 0, "size=64k", "mode=700")
		small.leave(0)
		a := h.govern("log", "export", "--output", small.dir+"/entries.jsonl")
		assert.Equal(t, exitBroken, a.code, a.stderr)
		left, err := os.ReadDir(small.dir)
		require.NoError(t, err)
		assert.Len(t, left, 1, "what fills the disk, and no part of an export")
	}
	assert.Equal(t, before, h.govern("log", "export").stdout)
	h.works(t)
}

// cutToTwo takes all entries but the first two from a log.
const cutToTwo = "DELETE FROM entries WHERE seq > 2; DELETE FROM tree WHERE leaf > 1; "

// A follower ends well when it is interrupted, and quietly when nobody reads it any more; with an error when the state that
// it follows is not there any more, or is another.
func TestFollowersEnd(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(h home, s *running)
		code    int
		want    string
	}{
		"Ctrl-C":  {func(h home, s *running) { require.NoError(h.t, s.cmd.Process.Signal(os.Interrupt)) }, exitOK, "next: --from 4\n"},
		"SIGTERM": {func(h home, s *running) { require.NoError(h.t, s.cmd.Process.Signal(syscall.SIGTERM)) }, exitOK, "next: --from 4\n"},
		"no reader": {func(h home, s *running) {
			require.NoError(h.t, s.stdout.Close())
			require.Zero(h.t, h.govern("run", "--approved").code)
		}, exitBroken, ""},
		"removed": {func(h home, _ *running) { h.restore(nil) }, exitBroken,
			"or its -wal file, was removed or replaced while it was in use"},
		"replaced": {func(h home, _ *running) {
			other := asked(h.t)
			other.write("one.jsonl", add("m1")+"\n")
			require.Zero(h.t, other.govern("run", "one.jsonl").code)
			h.restore(other.stateFiles())
		}, exitBroken, "was removed or replaced while it was in use"},
		"cut": {func(h home, _ *running) {
			tamper(h.t, h.state(), cutToTwo+"UPDATE meta SET value = CAST(x'0000000000000002' || substr(value, 9) AS BLOB) WHERE name = 'head'")
		}, exitBroken, "the head of the tree was not written by a govern with this state's key"},
		"cut by somebody with the key": {func(h home, _ *running) {
			var edge merkle.Edge
			for _, entry := range exported(h.govern("log", "export").stdout)[:2] {
				edge.Append(merkle.Leaf(entry), nil)
			}
			head := edge.Head()
			row := append(binary.BigEndian.AppendUint64(nil, uint64(head.Size)), head.Root[:]...)
			key, err := os.ReadFile(h.state() + ".key")
			require.NoError(h.t, err)
			tamper(h.t, h.state(), cutToTwo+fmt.Sprintf("UPDATE meta SET value = x'%x' WHERE name = 'head'", append(row, ijson.HMAC(key, "govern log head v1", row)...)))
		}, exitBroken, "next: --from 4\ngovern: the log is not the one that its tree covers: within its first 4 entries it was changed, cut or replaced\n  see what it was with: govern log verify"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := approved(t)
			entries := exported(h.govern("log", "export").stdout)
			require.Len(t, entries, 4)
			s := h.start("log", "follow", "--from", "0")
			for _, want := range entries {
				line, err := s.lines.ReadBytes('\n')
				require.NoError(t, err)
				require.Equal(t, string(want)+"\n", string(line))
			}
			c.happens(h, s)
			a := s.rest()
			assert.Equal(t, c.code, a.code, a.stderr)
			assert.Empty(t, a.stdout)
			assert.Contains(t, a.stderr, c.want)
			if c.want == "" {
				assert.Empty(t, a.stderr)
			}
		})
	}
}
