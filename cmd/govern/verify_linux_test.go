package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// SQLite makes files beside a state also to read it. Where the disk has no room for them, people are told what to do.
func TestVerifyOnAFullDisk(t *testing.T) {
	h := newHome(t)
	h.write("one.jsonl", add("c1")+"\n")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, h.command(ctx, "govern", "run", "one.jsonl").Run())
	// A limit on the length of files fails the same writes as a full disk does.
	cmd := h.command(ctx, "sh", "-c", "trap '' XFSZ; ulimit -f 0; govern log verify")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	a := ended(t, cmd, cmd.Run(), stdout.String(), stderr.String())
	require.Equal(t, exitBroken, a.code)
	require.Contains(t, a.stderr, "govern.db cannot be verified: ")
	require.Contains(t, a.stderr, "see that its disk and that of temporary files work and have room, or verify a copy elsewhere (of a state, with the -wal and .key beside it)")
}
