//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// stream runs govern on what is read from a pipe, and gives how much memory it had at most.
func (h home) stream(in io.Reader) (a answer, kibibytes int64) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	cmd := h.command(ctx, "govern", "run", "-")
	cmd.Stdin = in
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	require.NoError(h.t, ctx.Err(), "it hangs")
	return ended(h.t, cmd, err, stdout.String(), stderr.String()), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
}

// zeroes are so many bytes that are no line.
func zeroes(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// longLine sends a line of so many bytes through a pipe, between two proposals. It is never held: the process needs as much
// memory as for a line at the limit.
func longLine(t *testing.T, length int64) {
	t.Helper()
	h := newHome(t)
	a, least := h.stream(io.MultiReader(strings.NewReader(add("m1")+"\n"), zeroes(mebibyte), strings.NewReader("\n"+add("m2"))))
	require.Equal(t, exitDenied, a.code, a.stderr)
	a, most := h.stream(io.MultiReader(strings.NewReader(add("m3")+"\n"), zeroes(length), strings.NewReader("\n"+add("m4"))))
	require.Equal(t, exitDenied, a.code, a.stderr)
	t.Logf("%d bytes: %d KiB at most; %d bytes: %d KiB", mebibyte, least, length, most)
	assert.Less(t, most, least+32<<10)

	lines := a.lines(t)
	require.Len(t, lines, 3)
	assert.Equal(t, []dispatch.Status{dispatch.StatusOK, dispatch.StatusInvalidProposal, dispatch.StatusOK}, []dispatch.Status{lines[0].Status, lines[1].Status, lines[2].Status})
	assert.Contains(t, a.stdout, fmt.Sprintf("it is %d bytes long; the limit is 1048576", length))
	decisions := h.open(t).decisions
	require.Len(t, decisions, 6)
	assert.Equal(t, length, decisions[4].Length)
}

func TestALineIsNeverHeld(t *testing.T) { longLine(t, 100_000_000) }

// A pipe that closes in the middle of a line has given its last line: that is judged as it is.
func TestPipeThatCloses(t *testing.T) {
	whole := add("m2")
	for name, row := range map[string]struct {
		last string
		want dispatch.Status
	}{
		"in a string":        {whole[:15], dispatch.StatusInvalidProposal},
		"before the bracket": {whole[:len(whole)-1], dispatch.StatusInvalidProposal},
		"in a character":     {`{"call_id":"` + "\xe2\x82", dispatch.StatusInvalidProposal},
		"before the newline": {whole, dispatch.StatusOK},
		"over the limit":     {strings.Repeat("x", 2*mebibyte), dispatch.StatusInvalidProposal},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			s := h.start("run", "-")
			s.send(add("m1"))
			require.Equal(t, dispatch.StatusOK, s.next().Status)
			_, err := io.WriteString(s.stdin, row.last)
			require.NoError(t, err)
			a := s.finish()
			lines := a.lines(t)
			require.Len(t, lines, 1, a.stderr)
			assert.Equal(t, []any{2, row.want}, []any{lines[0].Step, lines[0].Status})
			assert.Equal(t, map[bool]int{true: exitOK, false: exitDenied}[row.want == dispatch.StatusOK], a.code)
			decisions := h.open(t).decisions
			require.Len(t, decisions, 2)
			assert.Equal(t, row.want, decisions[1].Status)
		})
	}
}
