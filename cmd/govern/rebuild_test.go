package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// tables is what the state tables hold, in the plainest form, but for the exact bytes of what is sensitive. A test compares what the store says with what the
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
	began := map[string]string{} // the operation of each step that called an outside tool
	news := map[string]bool{}    // operations that were just found to have taken place
	for _, entry := range entries {
		var e map[string]any
		require.NoError(t, json.Unmarshal(entry.Body, &e))
		id := e["task"].(string)
		task := out.Tasks[id]
		if task == nil {
			task = map[string]any{"cancelled": false, "revision": 0.0, "spent": [3]float64{}, "in_flight": map[string]any{}}
			out.Tasks[id] = task
		}
		if e["kind"] != "action" { // an action is part of its decision's commit, or of that of an outcome or a settlement
			task["revision"] = task["revision"].(float64) + 1
		}
		task["steps"], task["entries"], task["updated"] = e["step"], e["n"].(float64)+1, e["time"]
		// An allowed run costs what the tool's definition said then, one attempt, and the length of what it gave. A run that
		// resumes one is a run as well.
		spent := task["spent"].([3]float64)
		switch e["kind"] {
		case "decision":
			if effect := e["decision"].(map[string]any)["effect"]; effect == "allow" || effect == "resume" {
				spent[0] += e["input"].(map[string]any)["tool"].(map[string]any)["cost"].(float64)
				spent[1]++
			}
		case "action":
			value, known := ijson.Lookup(entry.Body, "/value")
			require.True(t, known || e["dispatch"] != nil, "only an outside tool gives what cannot be kept")
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
		case "decision":
			start, ok := e["started"].(map[string]any)
			if !ok {
				break
			}
			task["in_flight"].(map[string]any)[place(id, e["step"])] = map[string]any{"step": e["step"], "lease": start["lease"], "output": start["output"]}
			if name, write := start["operation"].(string); write {
				began[place(id, e["step"])] = name
				out.Operations[name] = called(out.Operations[name], id, e, start)
			}
		case "outcome":
			delete(task["in_flight"].(map[string]any), place(id, e["dispatch"]))
			if name, write := e["operation"].(string); write {
				news[name] = found(out.Operations[name], e["state"])
			}
		case "settlement":
			name := e["operation"].(string)
			news[name] = found(out.Operations[name], e["state"])
			if e["state"] == "unknown" {
				out.Operations[name]["lookups"] = out.Operations[name]["lookups"].(float64) + 1
			}
		case "action":
			if record, ok := e["record"]; ok {
				out.Records[id+"/"+e["tool"].(string)+"/"+e["target"].(string)] = record
				name := dispatch.OperationID(entry.Task, e["actor"].(string), e["operation"].(string), 0)
				run := 1.0
				if old := out.Operations[name]; old != nil {
					run += old["run"].(float64)
				}
				out.Operations[name] = map[string]any{"task": id, "actor": e["actor"], "key": e["operation"], "dispatch": 0.0,
					"signature": e["signature"], "tool": e["tool"], "state": "committed", "step": e["step"], "run": run, "lookups": 0.0, "result": e["value"]}
			}
			if name := began[place(id, e["dispatch"])]; news[name] {
				if value, ok := e["value"]; ok {
					out.Operations[name]["result"] = value
				}
				delete(news, name)
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

func place(task string, step any) string { return fmt.Sprint(task, "/", step) }

// called is an operation as the decision that began a call of it leaves it. What a call resumes is the call that was first.
func called(old map[string]any, task string, e, start map[string]any) map[string]any {
	call := e["input"].(map[string]any)["call"].(map[string]any)
	o := map[string]any{"task": task, "actor": e["actor"], "key": "", "dispatch": 0.0,
		"signature": call["signature"], "tool": call["tool"], "target": call["target"],
		"effect": start["effect"], "definition": start["definition"], "outward": start["outward"], "since": e["time"],
		"proposal": map[string]any{"call_id": call["id"], "tool": call["tool"], "arguments": call["arguments"]}}
	if approval, ok := e["approval"]; ok {
		o["approval"] = approval
	}
	if e["decision"].(map[string]any)["effect"] == "resume" {
		o = old
	} else if key, ok := e["operation"]; ok {
		o["key"] = key
	} else {
		o["dispatch"] = e["step"]
	}
	o["state"], o["step"], o["run"], o["lease"], o["lookups"] = "started", e["step"], start["run"], start["lease"], 0.0
	o["policy_version"] = e["decision"].(map[string]any)["policy_version"]
	return o
}

// found moves an operation to the state that is known of it now, and says whether it was not known before that it took place.
func found(o map[string]any, state any) bool {
	was := o["state"]
	o["state"] = state
	return was != "committed" && state == "committed"
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
		inFlight := map[string]any{}
		for _, f := range k.InFlight {
			inFlight[place(k.ID, f.Step)] = map[string]any{"step": float64(f.Step), "lease": f.Lease, "output": float64(f.Output)}
		}
		out.Tasks[k.ID]["in_flight"] = inFlight
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
		row := map[string]any{"task": o.Task.ID, "actor": o.Actor, "key": o.Key, "dispatch": float64(o.Dispatch), "signature": o.Signature, "tool": o.Tool,
			"state": string(o.State), "step": float64(o.Step), "run": float64(o.Run), "lookups": float64(o.Lookups)}
		for name, text := range map[string]string{"target": o.Target, "effect": o.Effect, "definition": o.Definition, "outward": o.Outward,
			"approval": o.Approval, "policy_version": o.PolicyVersion} {
			if text != "" {
				row[name] = text
			}
		}
		for name, at := range map[string]time.Time{"since": o.Since, "lease": o.Lease} {
			if !at.IsZero() {
				row[name] = stamp(at)
			}
		}
		for name, value := range map[string]ijson.Raw{"proposal": o.Proposal, "result": o.Result} {
			if value != nil {
				row[name] = plain(t, value)
			}
		}
		out.Operations[o.ID] = row
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

// eventfulOutside runs through everything that can become of calls of outside tools.
func eventfulOutside(l *lab) {
	t, inside := l.t, l.snapshot
	reads := l.outside("read_document")
	reads.does(answer7)
	l.propose(read("r1", "/warehouse/labels.txt"))
	reads.does(dispatch.Outcome{Status: dispatch.StatusTimeout, Sent: true, Retryable: true})
	l.propose(read("r2", "/warehouse/labels.txt"))
	l.begin(reads, read("r3", "/warehouse/labels.txt")) // whose process dies

	o := l.outside("record_draft", remembers, findable, func(d *dispatch.Definition) { d.Recovery.Retention = 3_600_000 })
	named := func(key string) string { return draft(key, "idempotency_key", key, "draft_id", key) }
	approved := func(key string) {
		l.propose(named(key))
		require.NoError(t, l.review(named(key), "approved", 5))
	}
	approved("landed")
	o.does(landed)
	l.propose(named("landed"))
	l.propose(named("landed"))

	approved("unsent") // and the approval comes back, and serves
	o.does(unsent)
	l.propose(named("unsent"))
	o.does(denied)
	l.propose(named("unsent"))
	approved("unsent")
	o.does(landed)
	l.propose(named("unsent"))

	approved("resumed")
	o.does(lost)
	l.propose(named("resumed"))
	o.does(unsent)
	l.propose(named("resumed"))
	o.does(landed)
	l.propose(named("resumed"))

	approved("lapsed")
	l.begin(o, named("lapsed")) // whose process dies
	l.pass(time.Minute)
	o.does(lost)
	l.propose(named("lapsed"))
	asked := func(state dispatch.OperationState) {
		o.find = func(dispatch.Call) dispatch.Finding { return dispatch.Finding{State: state, Value: landed.Value} }
		open := l.operations(dispatch.Started, dispatch.Unknown)
		require.Len(t, open, 1)
		_, err := l.dispatcher.LookUp(t.Context(), l.who.Tenant, open[0].ID)
		require.NoError(t, err)
	}
	asked(dispatch.Unknown)
	asked(dispatch.Unknown)
	asked(dispatch.Committed)

	approved("late")
	end := l.begin(o, named("late"))
	l.pass(time.Minute)
	asked(dispatch.Absent)
	end(landed)

	approved("too-late") // others have called anew
	end = l.begin(o, named("too-late"))
	l.pass(time.Minute)
	asked(dispatch.Unknown)
	o.does(landed)
	l.propose(named("too-late"))
	end(landed)

	unnamed := l.outside("record_draft", keyless, byRule)
	l.begin(unnamed, named("unnamed"))
	l.pass(time.Minute)
	open := l.operations(dispatch.Started)
	require.Len(t, open, 1)
	_, err := l.dispatcher.Resolve(t.Context(), l.who.Tenant, open[0].ID, dispatch.Resolution{State: dispatch.Committed, Reason: "ledger", By: "olga"})
	require.NoError(t, err)

	l.snapshot = inside
	o = l.outside("record_draft")
	approved("local") // once the tool is in this process again
	o.does(denied)
	l.propose(named("local"))
	l.snapshot = inside
	l.dispatcher.Use(inside)
	approved("local")
	l.propose(named("local"))

	o = l.outside("record_draft")
	approved("left-absent")
	o.does(denied)
	l.propose(named("left-absent"))
	approved("left-unknown")
	o.does(lost)
	l.propose(named("left-unknown"))
	l.create("labels-2", l.who.Actor) // where nothing is open yet
	l.task = "labels-2"
	approved("left-started")
	l.begin(o, named("left-started"))
}

func TestEntriesRebuildTheStateOfOutsideCalls(t *testing.T) {
	l := newLab(t, budget(100))
	eventfulOutside(l)
	want, got := fromStore(t, l.store, l.who.Tenant), fromEntries(t, l.entries())
	assert.Equal(t, want.Tasks, got.Tasks)
	assert.Equal(t, want.Approvals, got.Approvals)
	assert.Equal(t, want.Operations, got.Operations)
	runs := map[any]int{}
	for _, o := range got.Operations {
		runs[fmt.Sprint(o["state"], " ", o["run"])]++
	}
	assert.Equal(t, map[any]int{"committed 1": 3, "committed 2": 3, "committed 3": 2, "absent 1": 1, "unknown 1": 1, "started 1": 1}, runs, "the run is eventful enough")
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
