package opa

import (
	"context"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// shippedSource is the bundle that govern ships, with its data.
func shippedSource(tb testing.TB) Source {
	tb.Helper()
	s, err := ReadFS(os.DirFS("../../policy"), "../../policy")
	require.NoError(tb, err)
	readable, err := os.ReadFile("../../data/readable.json")
	require.NoError(tb, err)
	s, err = s.WithData("../../data/readable.json", readable)
	require.NoError(tb, err)
	return s
}

var labProfiles = map[string]Profile{
	"lab": {Tools: []string{"read_document", "calculate", "record_draft"}, Readable: []string{"warehouse"}},
}

func shipped(tb testing.TB) *Policy {
	tb.Helper()
	p, err := New(tb.Context(), Options{Source: shippedSource(tb), Profiles: labProfiles})
	require.NoError(tb, err)
	return p
}

// files are a bundle by name and text.
type files map[string]string

func (f files) with(name, text string) files {
	c := maps.Clone(f)
	c[name] = text
	return c
}

func (f files) fs() fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range f {
		m[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o600}
	}
	return m
}

// write puts the bundle into a new folder.
func (f files) write(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	require.NoError(tb, os.CopyFS(dir, f.fs()))
	return dir
}

func load(tb testing.TB, f files, change ...func(*Options)) (*Policy, error) {
	tb.Helper()
	s, err := ReadFS(f.fs(), "bundle")
	if err != nil {
		return nil, err
	}
	o := Options{Source: s}
	for _, c := range change {
		c(&o)
	}
	return New(tb.Context(), o)
}

// regoPolicy is a policy of one file.
func regoPolicy(tb testing.TB, rules string, change ...func(*Options)) *Policy {
	tb.Helper()
	p, err := load(tb, files{"decision.rego": "package policy\n\n" + rules}, change...)
	require.NoError(tb, err)
	return p
}

func policyError(tb testing.TB, p *Policy, input string) *dispatch.PolicyError {
	tb.Helper()
	raw, err := p.Decide(tb.Context(), ijson.Raw(input))
	require.Nil(tb, raw)
	var e *dispatch.PolicyError
	require.ErrorAs(tb, err, &e)
	return e
}

// withArguments is an input that has a call's arguments alone: a policy may read of them what it likes.
func withArguments(arguments string) string { return `{"call": {"arguments": ` + arguments + `}}` }

// sample is a complete input that the shipped policy knows.
func sample(tb testing.TB, name string) ijson.Raw {
	tb.Helper()
	moment := map[string]any{"rfc3339": "2026-01-01T00:00:00.000Z", "epoch": 1767225600}
	call := map[string]any{"id": "a1", "tool": "read_document", "arguments": map[string]any{"path": "/warehouse/labels.txt"},
		"target": "/warehouse/labels.txt", "keyed": false, "signature": "00", "malformed": nil, "violations": []any{}}
	tool := map[string]any{"name": "read_document", "version": "1", "effect": "read", "outside": false, "approval": "by_rule",
		"scopes": []any{"read:document"}, "resource": "readable"}
	state := map[string]any{"step": 1, "max_steps": 20, "cancelled": false, "deadline": nil, "budgets": map[string]any{}, "approval": nil, "operation": nil,
		"unsettled": nil, "write_started": false, "pending": map[string]any{"count": 0, "limit": 10}, "target_exists": false}
	if name == "allow_draft" || name == "approval_required" {
		call["tool"], call["keyed"], call["target"] = "record_draft", true, "labels-note"
		call["arguments"] = map[string]any{"draft_id": "labels-note", "purpose": "inventory-summary",
			"body": "There are 84 labels.", "idempotency_key": "draft-1"}
		tool = map[string]any{"name": "record_draft", "version": "1", "effect": "write", "outside": false, "approval": "always",
			"scopes": []any{"write:draft"}, "resource": ""}
	}
	switch name {
	case "allow_draft":
		state["approval"] = map[string]any{"state": "approved", "expires_at_step": 4, "policy_version": "x", "mode": "enforce",
			"expires_at": map[string]any{"rfc3339": "2026-01-02T00:00:00.000Z", "epoch": 1767312000},
			"votes":      []any{map[string]any{"reviewer": "ann", "decision": "approved", "lifetime": 3, "time": "2026-01-01T00:00:00Z"}}}
	case "cancelled":
		state["cancelled"] = true
	case "resource_denied":
		call["target"] = "/restricted/planning.txt"
	}
	raw, err := ijson.Marshal(map[string]any{"now": moment, "mode": "enforce", "call": call, "tool": tool, "state": state,
		"task": map[string]any{"tenant": "default", "id": "labels-1", "actor": "learner", "profile": "lab",
			"scopes": map[string]any{"read:document": true, "write:draft": true}}})
	require.NoError(tb, err)
	return raw
}

func TestShippedPolicyDecides(t *testing.T) {
	p := shipped(t)
	for name, want := range map[string]dispatch.Decision{
		"allow_read":        {Effect: dispatch.Allow, Status: "ok"},
		"allow_draft":       {Effect: dispatch.Allow, Status: "ok", Approval: &dispatch.Terms{Approvers: 1, Lifetime: 10, TTL: "24h"}},
		"approval_required": {Effect: dispatch.RequireApproval, Status: "approval_required", Approval: &dispatch.Terms{Approvers: 1, Lifetime: 10, TTL: "24h"}},
		"cancelled":         {Effect: dispatch.Deny, Status: "cancelled"},
		"resource_denied":   {Effect: dispatch.Deny, Status: "resource_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := dispatch.Judge(context.Background(), p, p.Version(), sample(t, name))
			require.NoError(t, err)
			assert.Equal(t, want.Effect, d.Effect, d.Reasons)
			assert.Equal(t, want.Status, d.Status)
			assert.Equal(t, want.Approval, d.Approval)
			assert.Equal(t, p.Version(), d.PolicyVersion)
			assert.True(t, slices.ContainsFunc(d.Reasons, func(r dispatch.Reason) bool { return r.Message != "" }))
		})
	}
}
