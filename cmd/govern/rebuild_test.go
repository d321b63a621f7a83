package main

import (
	"context"
	"encoding/json"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// tables is what the state tables hold, in the plainest form. A test compares what the store says with what the
// entries alone say; the reading below shares no code with the writer.
type tables struct {
	Tasks      map[string]map[string]any
	Approvals  map[string]map[string]any
	Operations map[string]map[string]any
	Records    map[string]any
}

func newTables() tables {
	return tables{map[string]map[string]any{}, map[string]map[string]any{}, map[string]map[string]any{}, map[string]any{}}
}

// fromEntries rebuilds the tables from the bytes of the entries and nothing else.
func fromEntries(t require.TestingT, entries []dispatch.Entry) tables {
	out := newTables()
	for _, entry := range entries {
		var e map[string]any
		require.NoError(t, json.Unmarshal(entry.Body, &e))
		id := e["task"].(string)
		task := out.Tasks[id]
		if task == nil {
			task = map[string]any{"cancelled": false, "revision": 0.0, "spent": [3]float64{}}
			out.Tasks[id] = task
		}
		if e["kind"] != "action" { // an action is part of its decision's commit
			task["revision"] = task["revision"].(float64) + 1
		}
		task["steps"], task["entries"], task["updated"] = e["step"], e["n"].(float64)+1, e["time"]
		// An allowed run costs what the tool's definition said then, one attempt, and the length of what it gave.
		spent := task["spent"].([3]float64)
		switch e["kind"] {
		case "decision":
			if e["decision"].(map[string]any)["effect"] == "allow" {
				spent[0] += e["input"].(map[string]any)["tool"].(map[string]any)["cost"].(float64)
				spent[1]++
			}
		case "action":
			value, ok := ijson.Lookup(entry.Body, "/value")
			require.True(t, ok)
			if bytes, sealed := e["value_bytes"].(float64); sealed {
				spent[2] += bytes
			} else {
				spent[2] += float64(len(value))
			}
		}
		task["spent"] = spent
		switch e["kind"] {
		case "task":
			task["profile"], task["actor"] = e["profile"], e["actor"]
			task["deadline"], _ = e["deadline"].(string)
		case "cancel":
			task["cancelled"] = true
		case "action":
			if record, ok := e["record"]; ok {
				out.Records[id+"/"+e["tool"].(string)+"/"+e["target"].(string)] = record
				out.Operations[id+"/"+e["actor"].(string)+"/"+e["operation"].(string)] = map[string]any{
					"signature": e["signature"], "tool": e["tool"], "step": e["step"], "result": e["value"]}
			}
		}
		var stands []any
		if list, ok := e["approvals"].([]any); ok {
			stands = list
		}
		if one, ok := e["approval"].(map[string]any); ok {
			stands = []any{one}
		}
		for _, s := range stands {
			stand := s.(map[string]any)
			old := out.Approvals[stand["id"].(string)]
			if old != nil {
				stand["proposal"] = old["proposal"]
			} else {
				call := e["input"].(map[string]any)["call"].(map[string]any)
				stand["proposal"] = map[string]any{"call_id": call["id"], "tool": call["tool"], "arguments": call["arguments"]}
			}
			stand["task"] = id
			out.Approvals[stand["id"].(string)] = stand
		}
	}
	return out
}

func fromStore(t require.TestingT, s dispatch.Store, tenant string) tables {
	ctx := context.Background()
	out := newTables()
	tasks, err := s.Tasks(ctx, tenant)
	require.NoError(t, err)
	for _, k := range tasks {
		deadline := ""
		if !k.Deadline.IsZero() {
			deadline = stamp(k.Deadline)
		}
		out.Tasks[k.ID] = map[string]any{"cancelled": k.Cancelled, "revision": float64(k.Revision), "steps": float64(k.Steps),
			"spent":   [3]float64{float64(k.Spent.Cost), float64(k.Spent.Attempts), float64(k.Spent.Output)},
			"entries": float64(k.Entries), "updated": stamp(k.Updated), "profile": k.Profile, "actor": k.Actor, "deadline": deadline}
	}
	approvals, err := s.Approvals(ctx, tenant, "")
	require.NoError(t, err)
	for _, a := range approvals {
		row := map[string]any{"id": a.ID, "task": a.Task.ID, "signature": a.Signature, "actor": a.Actor, "definition": a.Definition,
			"mode": string(a.Mode), "step": float64(a.Step), "state": string(a.State), "terms": plain(t, a.Terms), "votes": plain(t, append([]dispatch.Vote{}, a.Votes...)),
			"expires_at": stamp(a.ExpiresAt), "policy_version": a.PolicyVersion, "proposal": plain(t, a.Proposal)}
		if a.ExpiresAtStep != 0 {
			row["expires_at_step"] = float64(a.ExpiresAtStep)
		}
		out.Approvals[a.ID] = row
	}
	operations, err := s.Operations(ctx, tenant, "")
	require.NoError(t, err)
	for _, o := range operations {
		out.Operations[o.Task.ID+"/"+o.Actor+"/"+o.Key] = map[string]any{"signature": o.Signature, "tool": o.Tool, "step": float64(o.Step), "result": plain(t, o.Result)}
	}
	records, err := s.Records(ctx, tenant, "")
	require.NoError(t, err)
	for _, r := range records {
		out.Records[r.Task.ID+"/"+r.Tool+"/"+r.Target] = plain(t, r.Value)
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func plain(t require.TestingT, v any) any {
	b, err := ijson.Marshal(v)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

// eventful runs through everything that this version can do to a state.
func eventful(l *lab) {
	ctx, t := context.Background(), l.t
	l.redefine("read_document", costing(3))
	l.redefine("record_draft", costing(5))
	l.propose(read("r1", "/warehouse/labels.txt"))
	l.propose(read("r2", "/restricted/planning.txt"))
	l.propose(`{"call_id":"x","tool":`)
	l.propose(`{"call_id":7,"tool":"calculate","arguments":{}}`)
	l.propose(call("s1", "send_message", map[string]any{"text": "hello"}))
	l.propose(draft("d1"))
	require.NoError(t, l.review(draft("d1"), "approved", 5))
	l.propose(draft("d1"))
	l.propose(draft("d1"))
	l.propose(draft("d2", "body", "There are 840 labels."))
	l.propose(draft("d3", "idempotency_key", "draft-3", "draft_id", "rejected-note"))
	require.NoError(t, l.review(draft("d3", "idempotency_key", "draft-3", "draft_id", "rejected-note"), "rejected"))
	_, err := l.dispatcher.ReopenCall(ctx, l.who, l.task, dispatch.Enforce, []byte(draft("d3", "idempotency_key", "draft-3", "draft_id", "rejected-note")), "maya", "again")
	require.NoError(t, err)
	l.propose(draft("d4", "idempotency_key", "draft-4", "draft_id", "late-note"))
	l.now = l.now.Add(25 * time.Hour)
	l.propose(draft("d4", "idempotency_key", "draft-4", "draft_id", "late-note"))
	require.NoError(t, l.dispatcher.Expire(ctx, l.who.Tenant))
	l.propose(draft("d5", "idempotency_key", "draft-5", "draft_id", "left-note"))
	require.NoError(t, l.dispatcher.AssignTask(ctx, l.key(), "maya", "operator"))
	l.who.Actor = "maya"
	l.propose(draft("d5", "idempotency_key", "draft-5", "draft_id", "left-note"))
	l.create("labels-2", "maya")
	l.task = "labels-2"
	l.propose(draft("e1"))
	require.NoError(t, l.dispatcher.Cancel(ctx, l.key(), "operator"))
	l.propose(add("e2"))
}

func TestEntriesRebuildTheState(t *testing.T) {
	l := newLab(t)
	eventful(l)
	entries := l.entries()
	want, got := fromStore(t, l.store, l.who.Tenant), fromEntries(t, entries)
	assert.Equal(t, want.Tasks, got.Tasks)
	assert.Equal(t, want.Approvals, got.Approvals)
	assert.Equal(t, want.Operations, got.Operations)
	assert.Equal(t, want.Records, got.Records)
	assert.Len(t, got.Records, 1)
	assert.Equal(t, 8.0, want.Tasks[l.config.Task]["spent"].([3]float64)[0], "a read and a draft")
	states := map[any]int{}
	for _, a := range got.Approvals {
		states[a["state"]]++
	}
	assert.Equal(t, map[any]int{"consumed": 1, "expired": 2, "withdrawn": 2, "pending": 1}, states, "the run is eventful enough")
}

func TestEntriesAreNumberedWithoutGaps(t *testing.T) {
	l := newLab(t)
	eventful(l)
	next := map[string][2]int{}
	decided := map[string][]int{}
	for _, e := range l.entries() {
		at, seen := next[e.Task.ID]
		if !seen {
			require.Equal(t, dispatch.KindTask, e.Kind, "a task begins with its creation")
		}
		if e.Step == at[0]+1 {
			require.Equal(t, dispatch.KindDecision, e.Kind, "only a dispatch begins a step")
			at = [2]int{e.Step, 0}
		}
		require.Equal(t, at, [2]int{e.Step, e.N}, "%s", e.Body)
		next[e.Task.ID] = [2]int{e.Step, e.N + 1}
		if e.Kind == dispatch.KindDecision {
			decided[e.Task.ID] = append(decided[e.Task.ID], e.Step)
		}
	}
	for task, steps := range decided {
		require.True(t, sort.IntsAreSorted(steps))
		for i, s := range steps {
			require.Equal(t, i+1, s, "task %s: a step each dispatch, none twice, none skipped", task)
		}
	}
}

// Every recorded input, judged again by the same policy, gives the recorded decision.
func TestRecordedInputsReplay(t *testing.T) {
	l := newLab(t)
	eventful(l)
	n := 0
	for _, e := range l.entries() {
		if e.Kind != dispatch.KindDecision {
			continue
		}
		var recorded dispatch.DecisionEntry
		require.NoError(t, ijson.Unmarshal(e.Body, &recorded))
		again, err := dispatch.Judge(t.Context(), l.policy, l.policy.Version(), recorded.Input)
		require.NoError(t, err)
		assert.Equal(t, recorded.Decision, again, "step %d", e.Step)
		n++
	}
	assert.Equal(t, 16, n)
}
