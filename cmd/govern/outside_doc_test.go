package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOutsideCommands types what docs/outside.md says, against the service of the example.
func TestOutsideCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/outside.md")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../../examples")))
	listen := startLedger(t, "-lose", "1")
	config := filepath.Join(dir, "examples", "payments", "config.yaml")
	said, err := os.ReadFile(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, []byte(strings.ReplaceAll(string(said), "127.0.0.1:8089", listen)), 0o600))
	t.Setenv("GOVERN_CONFIG", "examples/payments/config.yaml")

	commands := commandsIn(string(text))
	require.Greater(t, len(commands), 8)
	seen, last := tokens{}, 0
	for _, c := range commands {
		if strings.HasPrefix(c.line, "go run ") || strings.HasPrefix(c.line, "export ") {
			continue // done above
		}
		out, code := shell(t, dir, fmt.Sprintf("(exit %d); %s", last, seen.fill(c.line)))
		last = code
		seen.compare(t, c, out)
	}
	require.Zero(t, last)
	noFaults(t, filepath.Join(dir, "payments.db"))
}

// startLedger builds and starts the example's service, and says where it listens.
func startLedger(t *testing.T, flags ...string) (listen string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "ledger")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../examples/payments/ledger").CombinedOutput()
	require.NoError(t, err, string(out))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listen = free.Addr().String()
	require.NoError(t, free.Close())
	cmd := exec.CommandContext(t.Context(), binary, append(flags, "-listen", listen)...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", listen)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, 30*time.Second, 10*time.Millisecond)
	return listen
}
