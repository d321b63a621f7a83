package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Exact names only, on every layer (B122): what looks like a tool and is none is denied, counted and recorded.
func TestB122ToolNamesAreExact(t *testing.T) {
	l := newLab(t, budget(100), func(c *config.Config) {
		p := c.Profiles["warehouse"]
		p.Tools = []string{"calculate"}
		c.Profiles["warehouse"] = p
	})
	arguments := map[string]any{"op": "add", "a": 1, "b": 1}
	require.Equal(t, dispatch.StatusOK, l.propose(call("c0", "calculate", arguments)).Status)
	names := []string{"CALCULATE", "Calculate", "calculate ", " calculate", "calculate\x00", "./calculate", "/calculate", "%63alculate", "calculate/", "calculate\n",
		"c\u0430lculate", "ｃalculate", "calculate\u200b", "calculate@v1", "", "record_draft", "RECORD_DRAFT"}
	for _, name := range names {
		r := l.propose(call("c1", name, arguments))
		assert.Equal(t, dispatch.StatusToolDenied, r.Status, "%q", name)
	}
	assert.Equal(t, 1+len(names), l.count(dispatch.KindDecision))
	assert.Equal(t, 1, l.count(dispatch.KindAction))
}

// Two tools whose names differ in case alone are two tools (B024): neither has the other's approval rule, and a profile
// that lists one does not permit the other.
func TestB024ToolsThatDifferInCase(t *testing.T) {
	edit := func(c *config.Config) {
		strict := c.Tools["record_draft"]
		loose := strict
		loose.Approval = "by_rule"
		c.Tools = map[string]config.Tool{"GitHub_CreateIssue": strict, "github_createissue": loose}
		p := c.Profiles["warehouse"]
		p.Tools = []string{"GitHub_CreateIssue", "github_createissue"}
		c.Profiles["warehouse"] = p
		p.Tools = []string{"github_createissue"}
		c.Profiles["Warehouse"] = p
	}
	l := newLab(t, edit)
	issue := func(id, tool, draft string) string {
		return call(id, tool, map[string]any{"draft_id": draft, "purpose": "inventory-summary", "body": "x", "idempotency_key": draft})
	}
	assert.Equal(t, dispatch.StatusApprovalRequired, l.propose(issue("c1", "GitHub_CreateIssue", "one")).Status)
	assert.Equal(t, dispatch.StatusOK, l.propose(issue("c2", "github_createissue", "two")).Status)

	require.NoError(t, l.dispatcher.CreateTask(t.Context(), dispatch.Task{
		TaskKey: dispatch.TaskKey{Tenant: l.who.Tenant, ID: "t-2"}, Profile: "Warehouse", Actor: l.who.Actor}, "operator"))
	l.task = "t-2"
	assert.Equal(t, dispatch.StatusToolDenied, l.propose(issue("c3", "GitHub_CreateIssue", "three")).Status)
	assert.Equal(t, dispatch.StatusOK, l.propose(issue("c4", "github_createissue", "four")).Status)
}
