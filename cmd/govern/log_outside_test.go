package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Every reading of the log says of calls outside what their callers got, and who found out what nobody had heard.
func TestListingsOfOutsideCalls(t *testing.T) {
	file := abroadFile(t)
	rows := func(args ...string) (out []map[string]any) {
		stdout, _ := says(t, file, args...)
		for line := range strings.Lines(stdout) {
			out = append(out, decoded(t, line))
		}
		return out
	}
	column := func(rows []map[string]any, members ...string) (out []any) {
		for _, r := range rows {
			for _, m := range members {
				out = append(out, r[m])
			}
		}
		return out
	}
	told := []any{"ok", "outcome_unknown", "ok", "ok", "ok", "approval_required", "unavailable", "ok", "outcome_unknown", "started", "started"}
	assert.Equal(t, told, column(rows("log", "decisions", "--format", "json"), "status"))
	assert.Equal(t, told[2:5], column(rows("log", "decisions", "--last", "9", "--format", "json")[:3], "status"))
	assert.Equal(t, []any{1., nil, 3., nil, 4., "olga", 5., nil, 8., nil}, column(rows("log", "actions", "--format", "json"), "step", "settled_by"))
	text, _ := says(t, file, "log", "actions")
	assert.Contains(t, text, "committed (olga)")

	for status, want := range map[string][]any{
		"ok":          {"decision", 1., "outcome", 1., "outcome", 3., "decision", 3., "decision", 4., "outcome", 4., "decision", 5., "outcome", 5., "decision", 8., "outcome", 8.},
		"unavailable": {"decision", 7., "outcome", 7.},
		"started":     {"decision", 10., "decision", 11.},
	} {
		assert.ElementsMatch(t, pairs(want), pairs(column(rows("log", "export", "--status", status), "kind", "step")), status)
	}
	var opa []any
	for _, r := range rows("log", "export", "--format", "opa") {
		opa = append(opa, r["custom"].(map[string]any)["status"])
	}
	assert.Equal(t, told, opa)

	var late []string
	for _, e := range rows("log", "trace", "--task", "labels-1", "--format", "json") {
		if e["kind"] == "settlement" || e["kind"] == "action" || e["status"] == string(dispatch.StatusStarted) {
			late = append(late, strings.TrimSpace(e["kind"].(string)+" "+e["status"].(string)))
		}
	}
	assert.Equal(t, []string{"action committed", "settlement unknown", "settlement committed", "action committed",
		"settlement absent", "action committed", "action committed", "result started", "result started"}, late)
}

func pairs(flat []any) (out [][2]any) {
	for i := 0; i+1 < len(flat); i += 2 {
		out = append(out, [2]any{flat[i], flat[i+1]})
	}
	return out
}
