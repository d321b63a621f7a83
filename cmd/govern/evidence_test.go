package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEvidenceCommands types what docs/evidence.md says, in its order, beside the example's proposals. Where output is
// shown, it is what comes. The auditor's commands run where there is no state.
func TestEvidenceCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/evidence.md")
	require.NoError(t, err)
	dir := t.TempDir()
	proposals, err := os.ReadFile("../../examples/warehouse/proposals.jsonl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "proposals.jsonl"), proposals, 0o600))
	commands := commandsIn(string(text))
	require.Greater(t, len(commands), 10)
	seen := tokens{}
	last := 0
	for _, c := range commands {
		at := dir
		if strings.Contains(c.line, "verify-proof") {
			at = elsewhereThan(t, dir)
		}
		out, code := shell(t, at, fmt.Sprintf("(exit %d); %s", last, c.line))
		last = code
		if c.shown != "" {
			seen.compare(t, c, out)
		}
	}
	require.Zero(t, last)
}

// elsewhereThan is a folder with all of the files but those of the state.
func elsewhereThan(t *testing.T, dir string) string {
	auditor := t.TempDir()
	require.NoError(t, os.CopyFS(auditor, os.DirFS(dir)))
	state, err := filepath.Glob(filepath.Join(auditor, "govern.db*"))
	require.NoError(t, err)
	require.NotEmpty(t, state)
	for _, file := range state {
		require.NoError(t, os.Remove(file))
	}
	return auditor
}
