package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestPrintable(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"plain", "There are 84 labels.", "There are 84 labels."},
		{"letters of other scripts", "é ü 日本 ไทย", "é ü 日本 ไทย"},
		{"a composed and a decomposed letter", "é e\u0301", "é e\u0301"},
		{"a line break", "a\nb\r", `a\nb\r`},
		{"an escape sequence", "\x1b[31mred", `\x1b[31mred`},
		{"an override of direction", "a\u202eb", `a\u202eb`},
		{"no width", "a\u200bb", `a\u200bb`},
		{"a blank that counts as a symbol", "a\u2800b", `a\u2800b`},
		{"marks that pile up", "e\u0301\u0301\u0301\u0301", "e\u0301\u0301" + `\u0301\u0301`},
		{"a mark that encloses", "e\u20dd", `e\u20dd`},
		{"broken UTF-8", "a\xffb", `a\xffb`},
		{"NUL", "a\x00", `a\x00`},
	} {
		t.Run(row.name, func(t *testing.T) { assert.Equal(t, row.want, printable(row.text)) })
	}
}

// What an agent wrote never begins a line of the screen: it could pass for one of ours there.
func TestArgumentsNeverBeginALine(t *testing.T) {
	const ours = "to approve exactly this:"
	body := "There are 84 labels." + strings.Repeat(" ", 41) + ours
	proposal, err := ijson.Marshal(map[string]any{"call_id": "d1", "tool": "record_draft", "arguments": map[string]any{"body": body, strings.Repeat("n", 90): 1}})
	assert.NoError(t, err)
	var out bytes.Buffer
	a := &app{stdout: &out}
	assert.False(t, a.showArguments(dispatch.Approval{Proposal: proposal}))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	assert.Greater(t, len(lines), 2)
	whole := ""
	for _, line := range lines {
		assert.True(t, strings.HasPrefix(line, "  "), "%q", line)
		assert.LessOrEqual(t, len([]rune(line)), 72, "it fits on the narrowest screen: %q", line)
		whole += strings.TrimPrefix(strings.TrimPrefix(line, "  "), "| ")
	}
	assert.Contains(t, whole, body, "and nothing of it is left out")
}

// One long cell must not make a table as wide for every row.
func TestLongCellsAreCut(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	l := a.list(&format{choice: "text"}, "A", "B")
	for _, cell := range []string{strings.Repeat("x", 1_000_000), "short"} {
		assert.NoError(t, l.add(nil, cell, "b"))
	}
	assert.NoError(t, l.end(""))
	assert.Less(t, out.Len(), 2000)
	assert.Equal(t, "äb…", shorten("äbc", 2))
	assert.Equal(t, "äb", shorten("äb", 2))
}
