package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Root may write everywhere, so a test that root runs has govern go on as another user.
const nobody = 65534

func init() {
	if os.Getenv("TEST_AS_NOBODY") != "" {
		if err := syscall.Setuid(nobody); err != nil { // only now: who is not root may not be able to reach the test's program
			panic(err)
		}
	}
}

// A state in a folder that cannot be written is read all the same, and nothing is left beside it.
func TestVerifyWhereNothingCanBeWritten(t *testing.T) {
	file := copyState(t, eventfulFile(t))
	folder := filepath.Dir(file)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := home{t: t, dir: folder}.command(ctx, "govern", "log", "verify", "--state", file)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(roomy), 0o644))
	if os.Geteuid() == 0 {
		cmd.Env = append(cmd.Env, "TEST_AS_NOBODY=1")
		require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755))
		for _, f := range []string{file, file + ".key", folder} {
			require.NoError(t, os.Chown(f, nobody, nobody))
		}
	}
	require.NoError(t, os.Chmod(file, 0o400))
	require.NoError(t, os.Chmod(folder, 0o500))
	t.Cleanup(func() { require.NoError(t, os.Chmod(folder, 0o700)) })
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "verified: nothing is wrong")
	require.NotContains(t, string(out), "not checked: signatures")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 3, "the state, its key and the configuration")
}

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
