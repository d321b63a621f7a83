package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// object is a JSON object of an entry under construction.
type object = map[string]any

// log is a log that is made up for a test, entry by entry.
type log []object

const policyVersion = "lab-1@sha256:00"

// operatorActs begins a log.
func operatorActs() log {
	return log{{"kind": "activation", "tenant": "", "task": "", "step": 0, "n": 0, "time": "2026-01-01T12:00:00.000Z", "policy_version": policyVersion, "by": "root"}}
}

// story is a task in which the usual happens, as nine entries: it is created, reads (step 1), is denied (2), asks (3.0), is
// approved (3.1), writes (4) and is replayed (5).
func story(task string) log {
	approval := "ap-" + task
	sign := func(what string) string {
		sum := sha256.Sum256([]byte(task + what))
		return hex.EncodeToString(sum[:])
	}
	arguments := object{"body": "There are 84 labels.", "draft_id": "note", "idempotency_key": "k1"}
	tools := map[string]object{
		"read_document": {"name": "read_document", "effect": "read", "approval": "by_rule", "cost": 0},
		"record_draft":  {"name": "record_draft", "effect": "write", "approval": "always", "cost": 5},
	}
	decision := func(step int, tool, effect, status string, arguments, more object) object {
		target := arguments["path"]
		if tool == "record_draft" {
			target = arguments["draft_id"]
		}
		input := object{"mode": "enforce", "state": object{"step": step}, "task": object{"tenant": "default", "id": task, "actor": "learner"},
			"call": object{"id": fmt.Sprint("c", step), "tool": tool, "arguments": arguments, "target": target, "signature": sign(tool)}, "tool": tools[tool]}
		e := object{"kind": "decision", "step": step, "n": 0, "actor": "learner", "call_id": fmt.Sprint("c", step), "status": status, "input": input,
			"decision": object{"effect": effect, "status": status, "policy_version": policyVersion, "reasons": []any{}}}
		if more["terms"] != nil {
			e["decision"].(object)["approval"] = more["terms"]
			delete(more, "terms")
		}
		maps.Copy(e, more)
		return e
	}
	action := func(step int, tool string, more object) object {
		e := object{"kind": "action", "step": step, "n": 1, "actor": "learner", "call_id": fmt.Sprint("c", step), "tool": tool, "signature": sign(tool), "policy_version": policyVersion}
		maps.Copy(e, more)
		return e
	}
	terms := object{"approvers": 1}
	stand := func(state string, votes ...any) object {
		s := object{"id": approval, "actor": "learner", "definition": "d", "mode": "enforce", "signature": sign("record_draft"), "state": state, "step": 3, "terms": terms,
			"votes": append([]any{}, votes...), "expires_at": "2026-01-02T12:00:00.000Z", "policy_version": policyVersion}
		if state == "approved" || state == "consumed" {
			s["expires_at_step"] = 6
		}
		return s
	}
	vote := object{"reviewer": "maya", "decision": "approved", "lifetime": 3, "time": "2026-01-01T12:00:00.000Z"}
	l := log{
		{"kind": "task", "step": 0, "n": 0, "profile": "warehouse", "actor": "learner", "by": "operator"},
		decision(1, "read_document", "allow", "ok", object{"path": "/a"}, nil),
		action(1, "read_document", object{"target": "/a", "value": object{"text": "7 packs"}}),
		decision(2, "read_document", "deny", "resource_denied", object{"path": "/b"}, nil),
		decision(3, "record_draft", "require_approval", "approval_required", arguments, object{"terms": terms, "approvals": []any{stand("pending")}, "approval": approval, "operation": "k1"}),
		{"kind": "review", "step": 3, "n": 1, "reviewer": "maya", "decision": "approved", "call_id": "c3", "actor": "learner", "approval": stand("approved", vote)},
		decision(4, "record_draft", "allow", "ok", arguments, object{"terms": terms, "approvals": []any{stand("consumed", vote)}, "approval": approval, "reviewers": []any{"maya"}, "operation": "k1"}),
		action(4, "record_draft", object{"target": "note", "operation": "k1", "value": object{"draft_id": "note"}, "record": object{"body": "There are 84 labels."}, "approval": approval, "reviewers": []any{"maya"}}),
		decision(5, "record_draft", "replay", "replayed", arguments, object{"operation": "k1"}),
	}
	for _, e := range l {
		e["tenant"], e["task"], e["time"] = "default", task, "2026-01-01T12:00:00.000Z"
	}
	return l
}

// lines writes a log as an export has it. The digests of inputs are right, unless an entry says otherwise.
func (l log) lines(t testing.TB) [][]byte {
	t.Helper()
	var out [][]byte
	for _, e := range l {
		if in, ok := e["input"]; ok && e["input_digest"] == nil {
			raw, err := ijson.Marshal(in)
			require.NoError(t, err)
			e["input_digest"] = ijson.Digest("govern input v1", raw)
		}
		line, err := ijson.Marshal(e)
		require.NoError(t, err)
		out = append(out, line)
	}
	return out
}

// file joins lines to a file.
func file(lines [][]byte) []byte {
	var b bytes.Buffer
	for _, line := range lines {
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// checkpointAt keeps the head of lines at a size.
func checkpointAt(lines [][]byte, size int) Checkpoint {
	var e merkle.Edge
	for _, line := range lines[:size] {
		e.Append(merkle.Leaf(line), nil)
	}
	return Checkpoint{Name: fmt.Sprintf("kept-%d", size), Size: int64(size), Root: e.Head().Root}
}

// found gives findings as their places and codes.
func found(r Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		at := "-"
		if f.Leaf != nil {
			at = fmt.Sprint(*f.Leaf)
		}
		out = append(out, at+" "+string(f.Code))
	}
	return out
}
