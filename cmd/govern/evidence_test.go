package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEvidenceCommands types what docs/evidence.md says, in its order, and compares what comes with what it shows.
func TestEvidenceCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/evidence.md")
	require.NoError(t, err)
	dir := t.TempDir()
	proposals, err := os.ReadFile("../../examples/warehouse/proposals.jsonl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "proposals.jsonl"), proposals, 0o600))
	seen := tokens{}
	commands := commandsIn(string(text))
	require.NotEmpty(t, commands)
	last := 0
	for _, c := range commands {
		out, code := shell(t, dir, fmt.Sprintf("(exit %d); %s", last, seen.fill(c.line)))
		seen.compare(t, c, out)
		last = code
	}
	require.Equal(t, exitOK, last)
}
