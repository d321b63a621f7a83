package audit

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// moment is a time of a story: every step begins with a minute.
func moment(minute, second int) string {
	return fmt.Sprintf("2026-01-01T12:%02d:%02d.000Z", minute, second)
}

func operationID(t testing.TB, task, key string, dispatch int) string {
	identity, err := ijson.Marshal([]any{"default", task, "learner", key, dispatch})
	require.NoError(t, err)
	return "op-" + ijson.Digest("govern operation v1", identity)[:16]
}

// abroad is a task that calls outside tools, as 27 entries: leaf 0 of a log is the activation, and what follows is
//
//	 1 the creation
//	 2 to  4 a read: start, outcome, action
//	 5 and 6 a payment asks, and is approved
//	 7 and 8 it is begun, and nothing was sent: the approval is back
//	 9 to 12 it is begun anew, a denial stands between, and it took place
//	13 and 14 a parcel, of which nobody knows the outcome
//	15 and 16 it is resumed, and nobody knows again
//	17 to 19 a look-up finds nothing out, and an operator says that it took place
//	20 to 23 a parcel without a key, which a look-up takes for absent; a late outcome says that it took place
//	24 and 25 a read and a parcel whose process died
//	26 and 27 the task is cancelled, and a look-up finds that the parcel is absent
func abroad(t testing.TB, task string) log {
	tools := map[string]object{
		"fetch_price": {"name": "fetch_price", "effect": "read", "approval": "by_rule", "cost": 1, "outside": true},
		"pay":         {"name": "pay", "effect": "write", "approval": "always", "cost": 5, "outside": true},
		"send":        {"name": "send", "effect": "write", "approval": "by_rule", "cost": 2, "outside": true},
	}
	sign := func(tool, key string) string { return ijson.Digest("signature", []byte(task+tool+key)) }
	decision := func(step int, tool, key, effect, status string, more object) object {
		answer := object{"effect": effect, "status": status, "policy_version": policyVersion, "reasons": []any{}}
		call := fmt.Sprint("c", step)
		e := object{"kind": "decision", "step": step, "n": 0, "time": moment(step, 0), "actor": "learner", "call_id": call, "status": status, "decision": answer,
			"input": object{"mode": "enforce", "task": object{"tenant": "default", "id": task, "actor": "learner"}, "tool": tools[tool],
				"state": object{"step": step, "budgets": object{"cost": object{"limit": 100}, "attempts": object{"limit": 9}, "output": object{"limit": 1100}}},
				"call":  object{"id": call, "tool": tool, "arguments": object{"to": "x"}, "target": "shop", "signature": sign(tool, key)}}}
		if key != "" {
			e["operation"] = key
		}
		if effect == "allow" || effect == "resume" {
			e["status"] = "started"
			e["started"] = object{"definition": "def-" + tool, "deadline": moment(step, 10), "lease": moment(step, 15), "output": 100}
		}
		if terms := more["terms"]; terms != nil {
			answer["approval"] = terms
			delete(more, "terms")
		}
		maps.Copy(e, more)
		return e
	}
	begins := func(e object, id string, run int, effect string) object {
		maps.Copy(e["started"].(object), object{"operation": id, "run": run, "effect": effect, "outward": "out-" + id})
		return e
	}
	call := func(kind string, step, n, second, dispatch int, tool string, more object) object {
		e := object{"kind": kind, "step": step, "n": n, "time": moment(step, second), "dispatch": dispatch, "actor": "learner", "call_id": fmt.Sprint("c", dispatch), "tool": tool, "target": "shop"}
		maps.Copy(e, more)
		return e
	}
	action := func(step, n, second, dispatch int, tool, key string, more object) object {
		e := call("action", step, n, second, dispatch, tool, object{"signature": sign(tool, key), "policy_version": policyVersion})
		if key != "" {
			e["operation"] = key
		}
		maps.Copy(e, more)
		return e
	}
	terms := object{"approvers": 1}
	vote := object{"reviewer": "maya", "decision": "approved", "lifetime": 4, "time": moment(2, 1)}
	stand := func(state string, votes ...any) object {
		s := object{"id": "ap-" + task, "actor": "learner", "definition": "def-pay", "mode": "enforce", "signature": sign("pay", "k1"), "state": state, "step": 2, "terms": terms,
			"votes": append([]any{}, votes...), "expires_at": "2026-01-02T12:00:00.000Z", "policy_version": policyVersion}
		if state != "pending" {
			s["expires_at_step"] = 6
		}
		return s
	}
	under := func() object {
		return object{"terms": terms, "approvals": []any{stand("consumed", vote)}, "approval": "ap-" + task, "reviewers": []any{"maya"}}
	}
	pay, parcel, loose, last := operationID(t, task, "k1", 0), operationID(t, task, "k2", 0), operationID(t, task, "", 8), operationID(t, task, "k4", 0)
	resumed := begins(decision(7, "send", "k2", "resume", "resumed", nil), parcel, 2, "e2")
	resumed["input"].(object)["state"].(object)["operation"] = object{"state": "unknown", "same_signature": true, "has_result": false, "repeatable": true}
	l := log{
		{"kind": "task", "step": 0, "n": 0, "time": moment(0, 0), "profile": "warehouse", "actor": "learner", "by": "operator"},
		decision(1, "fetch_price", "", "allow", "ok", nil),
		call("outcome", 1, 1, 1, 1, "fetch_price", object{"status": "ok"}),
		action(1, 2, 1, 1, "fetch_price", "", object{"value": object{"price": 7}}),
		decision(2, "pay", "k1", "require_approval", "approval_required", object{"terms": terms, "approvals": []any{stand("pending")}, "approval": "ap-" + task}),
		{"kind": "review", "step": 2, "n": 1, "time": moment(2, 1), "reviewer": "maya", "decision": "approved", "call_id": "c2", "actor": "learner", "approval": stand("approved", vote)},
		begins(decision(3, "pay", "k1", "allow", "ok", under()), pay, 1, "e1"),
		call("outcome", 3, 1, 1, 3, "pay", object{"operation": pay, "run": 1, "state": "absent", "status": "unavailable", "approvals": []any{stand("approved", vote)}}),
		begins(decision(4, "pay", "k1", "allow", "ok", under()), pay, 2, "e1"),
		decision(5, "fetch_price", "", "deny", "resource_denied", nil),
		call("outcome", 5, 1, 1, 4, "pay", object{"operation": pay, "run": 2, "state": "committed", "status": "ok"}),
		action(5, 2, 1, 4, "pay", "k1", object{"value": object{"paid": 3}, "approval": "ap-" + task, "reviewers": []any{"maya"}}),
		begins(decision(6, "send", "k2", "allow", "ok", nil), parcel, 1, "e2"),
		call("outcome", 6, 1, 10, 6, "send", object{"operation": parcel, "run": 1, "state": "unknown", "status": "outcome_unknown", "retryable": true}),
		resumed,
		call("outcome", 7, 1, 10, 7, "send", object{"operation": parcel, "run": 2, "state": "unknown", "status": "unavailable", "retryable": true}),
		call("settlement", 7, 2, 20, 7, "send", object{"operation": parcel, "run": 2, "call_id": "c6", "state": "unknown", "detail": "nobody knows"}),
		call("settlement", 7, 3, 30, 7, "send", object{"operation": parcel, "run": 2, "call_id": "c6", "state": "committed", "by": "root", "reason": "it is there"}),
		action(7, 4, 30, 7, "send", "k2", object{"call_id": "c6"}),
		begins(decision(8, "send", "", "allow", "ok", nil), loose, 1, "e3"),
		call("settlement", 8, 1, 20, 8, "send", object{"operation": loose, "run": 1, "state": "absent"}),
		call("outcome", 8, 2, 30, 8, "send", object{"operation": loose, "run": 1, "state": "committed", "status": "ok", "late": true}),
		action(8, 3, 30, 8, "send", "", object{"value": object{"sent": true}}),
		decision(9, "fetch_price", "", "allow", "ok", nil),
		begins(decision(10, "send", "k4", "allow", "ok", nil), last, 1, "e4"),
		{"kind": "cancel", "step": 10, "n": 1, "time": moment(10, 20), "by": "root"},
		call("settlement", 10, 2, 30, 10, "send", object{"operation": last, "run": 1, "state": "absent"}),
	}
	for _, e := range l {
		e["tenant"], e["task"] = "default", task
	}
	return l
}

func TestASoundLogOfOutsideCallsIsVerified(t *testing.T) {
	for n := range len(abroad(t, "a")) + 1 { // it ends anywhere: nobody knows what became of a call
		l := slices.Concat(operatorActs(), abroad(t, "a")[:n])
		r := audited(t, file(l.lines(t)), Options{})
		if n > 0 && owes(l[n]) {
			assert.Equal(t, []string{fmt.Sprint(n+1) + " dropped"}, found(r), "%+v", r.Findings)
		} else {
			assert.Empty(t, r.Findings, "%d entries", n)
		}
	}
}

// owes says whether an action must follow an entry.
func owes(e object) bool {
	return e["kind"] == "outcome" && e["status"] == "ok" || e["kind"] == "settlement" && e["state"] == "committed"
}

// renumbered gives the entries of a step their numbers again, after some were added or taken out.
func renumbered(l log) log {
	step, n := any(nil), 0
	for _, e := range l[1:] {
		if e["step"] != step {
			step, n = e["step"], 0
		}
		e["n"] = n
		n++
	}
	return l
}

// Every promise about outside calls that the entries of a log can break is named, at the entry that breaks it.
func TestBrokenPromisesOutside(t *testing.T) {
	set := func(leaf int, path []any, member string, value any) func(log) log {
		return func(l log) log {
			of := l.at(leaf, path...)
			if of[member] = value; value == nil {
				delete(of, member)
			}
			return l
		}
	}
	member := func(leaf int, name string, value any) func(log) log { return set(leaf, nil, name, value) }
	begun := func(leaf int, name string, value any) func(log) log {
		return set(leaf, []any{"started"}, name, value)
	}
	without := func(leaves ...int) func(log) log {
		return func(l log) log {
			for _, leaf := range slices.Backward(leaves) {
				l = slices.Delete(l, leaf, leaf+1)
			}
			return renumbered(l)
		}
	}
	// again has an entry once more, behind another.
	again := func(leaf, behind int, change object) func(log) log {
		return func(l log) log {
			e := maps.Clone(l[leaf])
			e["step"], e["time"] = l[behind]["step"], l[behind]["time"]
			maps.Copy(e, change)
			return renumbered(slices.Insert(l, behind+1, e))
		}
	}
	all := func(changes ...func(log) log) func(log) log {
		return func(l log) log {
			for _, change := range changes {
				l = change(l)
			}
			return l
		}
	}
	for name, c := range map[string]struct {
		broken func(l log) log
		want   []string
	}{
		// What is begun.
		"a start without its status":          {member(2, "status", "ok"), []string{"2 start_differs"}},
		"the status of a start alone":         {all(member(2, "started", nil), without(3, 4)), []string{"2 start_differs"}},
		"a start that is not on record":       {all(member(24, "started", nil), member(24, "status", "timeout")), []string{"24 start_differs"}},
		"a start of a tool inside":            {set(2, []any{"input", "tool"}, "outside", false), []string{"2 start_differs", "24 start_differs"}},
		"a start that is denied":              {all(set(24, []any{"decision"}, "effect", "deny"), set(24, []any{"decision"}, "status", "started")), []string{"24 start_differs"}},
		"a resume that begins nothing":        {all(member(15, "started", nil), member(15, "status", "resumed"), without(16, 17, 18, 19)), []string{"15 start_differs"}},
		"a read in a dry run":                 {set(24, []any{"input"}, "mode", "dry_run"), []string{"24 write_in_dry_run"}},
		"a write in a dry run":                {set(25, []any{"input"}, "mode", "dry_run"), []string{"25 write_in_dry_run"}},
		"a lease that ends with the deadline": {begun(25, "lease", moment(10, 10)), []string{"25 start_differs"}},
		"a lease without an end":              {begun(24, "lease", nil), []string{"24 start_differs"}},
		"a deadline that is over":             {begun(24, "deadline", moment(8, 0)), []string{"24 start_differs"}},
		"a read with an operation":            {begun(24, "operation", "op-1"), []string{"24 start_differs"}},
		"an operation of another call":        {begun(25, "operation", "op-1"), []string{"25 start_differs", "27 settlement_differs"}},
		"a run too many":                      {begun(25, "run", 2), []string{"25 run_differs", "27 settlement_differs"}},
		"a run that is skipped":               {all(begun(15, "run", 3), member(16, "run", 3), member(17, "run", 3), member(18, "run", 3)), []string{"15 run_differs"}},
		"a run that is counted twice":         {all(begun(9, "run", 1), member(11, "run", 1)), []string{"9 run_differs"}},
		"a start after the cancel":            {again(24, 27, object{"step": 11, "time": moment(11, 0), "input": nil}), []string{"28 start_differs", "28 wrong_subject", "28 after_cancel", "28 write_in_dry_run"}},
		"too much of a budget of cost":        {set(25, []any{"input", "state", "budgets", "cost"}, "limit", 19), []string{"25 budget_exceeded"}},
		"a whole budget of cost":              {set(25, []any{"input", "state", "budgets", "cost"}, "limit", 20), []string{}},
		"too much of a budget of attempts":    {set(25, []any{"input", "state", "budgets", "attempts"}, "limit", 7), []string{"25 budget_exceeded"}},
		"a whole budget of attempts":          {set(25, []any{"input", "state", "budgets", "attempts"}, "limit", 8), []string{}},
		"too much of a budget of output":      {set(24, []any{"input", "state", "budgets", "output"}, "limit", 34), []string{"24 budget_exceeded"}},
		"what is reserved of output":          {all(set(25, []any{"input", "state", "budgets", "output"}, "limit", 134), begun(24, "lease", moment(10, 0))), []string{"25 budget_exceeded"}},
		"what is reserved no more":            {set(25, []any{"input", "state", "budgets", "output"}, "limit", 134), []string{}},

		// Approvals.
		"a payment without its approval":                 {all(member(7, "approvals", nil), member(8, "approvals", nil)), []string{"7 effect_without_approval"}},
		"a payment under the policy's terms alone":       {all(set(7, []any{"decision"}, "approval", nil), member(7, "approvals", nil), member(8, "approvals", nil)), []string{"7 effect_without_approval"}},
		"an approval of another call":                    {set(7, []any{"input", "call"}, "signature", "s"), []string{"7 approval_of_another_call"}},
		"an approval past its step":                      {func(l log) log { return pastStep(l) }, []string{"9 approval_past_limits"}},
		"votes that do not meet the terms":               {set(7, []any{"decision"}, "approval", object{"approvers": 2}), []string{"7 terms_not_met"}},
		"reviewers that did not vote":                    {member(7, "reviewers", []any{"eve"}), []string{"7 vote_not_given"}},
		"an approval that does not come back":            {member(8, "approvals", nil), []string{"9 approval_used_twice"}},
		"an approval that comes back of a call that ran": {func(l log) log { l[11]["approvals"] = l[8]["approvals"]; return l }, []string{"11 approval_move", "26 after_cancel"}},
		"one that comes back of what is not known": {all(member(8, "status", "outcome_unknown"), member(8, "state", "unknown"), without(9, 10, 11, 12)),
			[]string{"8 approval_move", "9 missing_step", "22 after_cancel"}},
		"one that comes back of another call":    {func(l log) log { l[14]["approvals"] = l[8]["approvals"]; return l }, []string{"14 approval_move", "26 after_cancel"}},
		"one that comes back withdrawn":          {set(8, []any{"approvals", 0}, "state", "withdrawn"), []string{"8 approval_move", "9 approval_move"}},
		"one that comes back to live longer":     {set(8, []any{"approvals", 0}, "expires_at_step", 9), []string{"8 approval_changed", "9 approval_changed"}},
		"one that comes back in a dead task":     {func(l log) log { return cancelled(l, 7, false) }, []string{"9 approval_move", "9 after_cancel"}},
		"one that comes back there as withdrawn": {func(l log) log { return cancelled(l, 7, true) }, []string{}},
		"an action under no approval":            {member(12, "approval", nil), []string{"12 action_differs"}},
		"an action under others' word":           {member(12, "reviewers", []any{"eve"}), []string{"12 action_differs"}},
		"a read under an approval of nobody":     {member(4, "approval", "ap-a"), []string{"4 action_differs"}},

		// Operations.
		"an operation begun twice":           {without(8), []string{"8 approval_used_twice", "8 operation_move"}},
		"one begun anew that is not known":   {all(member(15, "started", nil), func(l log) log { return allowedAnew(t, l) }), []string{"15 operation_move"}},
		"one begun after it took place":      {func(l log) log { return paidAgain(l) }, []string{"13 operation_move"}},
		"one resumed that is absent":         {all(member(14, "state", "absent"), member(14, "status", "unavailable")), []string{"15 operation_move"}},
		"one resumed during its lease":       {all(without(14), func(l log) log { l.at(13, "started")["lease"] = moment(7, 0); return l }), []string{"14 operation_move"}},
		"one resumed after its lease":        {without(14), []string{}},
		"one resumed that never began":       {func(l log) log { return resumedFirst(l) }, []string{"13 operation_move", "13 run_differs", "13 resume_differs"}},
		"one resumed by another call":        {set(15, []any{"input", "call"}, "signature", "s"), []string{"15 resume_differs", "19 action_differs"}},
		"one resumed as another tool":        {begun(15, "definition", "d"), []string{"15 resume_differs"}},
		"one resumed under another key":      {begun(15, "outward", "o"), []string{"15 resume_differs"}},
		"one resumed that is not repeatable": {set(15, []any{"input", "state", "operation"}, "repeatable", false), []string{"15 resume_differs"}},
		"one resumed that is not unknown":    {set(15, []any{"input", "state", "operation"}, "state", "started"), []string{"15 resume_differs"}},
		"the same effect under another key":  {begun(25, "effect", "e2x"), []string{}},
		"an effect that is not settled": {all(begun(20, "effect", "e2"), without(18, 19)),
			[]string{"18 effect_unsettled"}},
		"an effect that is settled": {begun(20, "effect", "e2"), []string{}},
		"an effect that may be on its way": {func(l log) log {
			l.at(13, "started")["effect"] = "e1"
			l.at(15, "started")["effect"] = "e1"
			return without(11, 12)(l)
		}, []string{"11 effect_unsettled"}},

		"a write while another is under way": {all(begun(9, "lease", moment(6, 0)), without(11, 12)), []string{"11 writes_overlap"}},
		"a write after the lease of another": {all(begun(9, "lease", moment(5, 59)), without(11, 12)), []string{}},
		"a write during a read":              {begun(24, "lease", moment(10, 15)), []string{}},
		"a local write beside one":           {func(l log) log { return besideLocal(l[:26]) }, []string{"26 writes_overlap"}},
		"a local write of what is under way": {func(l log) log { return writtenHere(l[:26]) }, []string{"27 operation_move"}},
		"a local write of what is absent":    {func(l log) log { l[27]["n"] = 1; return writtenHere(slices.Delete(l, 26, 27)) }, []string{}},

		// Outcomes.
		"an outcome of nothing":              {member(3, "dispatch", 2), []string{"3 outcome_without_start", "4 action_without_decision"}},
		"an outcome of a step to come":       {member(3, "dispatch", 9), []string{"3 outcome_without_start", "4 action_without_decision"}},
		"an outcome of another attempt":      {member(11, "call_id", "c3"), []string{"11 outcome_differs"}},
		"an outcome of another tool":         {member(11, "tool", "send"), []string{"11 outcome_differs"}},
		"an outcome of another target":       {member(11, "target", "x"), []string{"11 outcome_differs"}},
		"an outcome for another actor":       {member(11, "actor", "eve"), []string{"11 outcome_differs"}},
		"an outcome of another operation":    {member(11, "operation", "op-1"), []string{"11 outcome_differs"}},
		"an outcome of another run":          {member(11, "run", 1), []string{"11 outcome_differs"}},
		"a second outcome":                   {again(14, 14, nil), []string{"15 outcome_twice"}},
		"a second outcome of a read":         {again(3, 4, nil), []string{"5 outcome_twice"}},
		"a state that the status is not of":  {member(8, "state", "unknown"), []string{"8 outcome_differs", "8 approval_move", "9 operation_move"}},
		"a status that the state is not of":  {member(14, "status", "unavailable"), []string{"14 outcome_differs"}},
		"a repetition that says absent":      {member(16, "state", "absent"), []string{"16 outcome_differs", "17 operation_move"}},
		"a committed one that was not sent":  {member(11, "status", "timeout"), []string{"11 outcome_differs", "12 status_differs"}},
		"a read with a state":                {member(3, "state", "committed"), []string{"3 outcome_differs"}},
		"a read of which nobody knows":       {all(member(3, "status", "outcome_unknown"), without(4)), []string{"3 outcome_differs"}},
		"a late outcome that is not":         {member(14, "late", true), []string{"14 outcome_differs"}},
		"an outcome in time that is late":    {member(22, "late", nil), []string{"22 outcome_differs"}},
		"a late one that settles the absent": {member(22, "state", "absent"), []string{"22 outcome_differs"}},
		"an outcome after the cancel":        {func(l log) log { return answered(l) }, []string{}},

		// Actions.
		"an action without an outcome":           {without(11), []string{"11 action_without_decision"}},
		"an action without a settlement":         {without(18), []string{"18 status_differs", "18 action_differs"}},
		"an action without a start":              {member(4, "dispatch", 7), []string{"4 action_without_decision"}},
		"an action of another start":             {member(12, "dispatch", 3), []string{"12 status_differs", "12 action_differs"}},
		"an action that its outcome denies":      {all(member(11, "state", "absent"), member(11, "status", "unavailable")), []string{"12 status_differs"}},
		"an action of a read that did not run":   {member(3, "status", "timeout"), []string{"4 status_differs"}},
		"an action that is gone":                 {without(12), []string{"12 dropped"}},
		"an action of a read that is gone":       {without(4), []string{"4 dropped"}},
		"an action of a settlement that is gone": {without(19), []string{"19 dropped"}},
		"an answer of a read that breaks rules":  {member(3, "status", "invalid_result"), []string{}},
		"one of which nothing can be kept":       {all(member(3, "status", "invalid_result"), without(4)), []string{}},
		"an answer of a write that breaks rules": {all(member(11, "status", "invalid_result"), member(12, "value", nil)), []string{}},
		"a second action":                        {again(12, 12, nil), []string{"13 action_twice"}},
		"a second action of a read":              {again(4, 4, nil), []string{"5 action_twice"}},
		"an action of another call":              {member(12, "call_id", "c9"), []string{"12 action_differs"}},
		"an action of another signature":         {member(12, "signature", "s"), []string{"12 action_differs"}},
		"an action of another version":           {member(12, "policy_version", "v"), []string{"12 action_differs"}},
		"an action of another key":               {member(12, "operation", "k2"), []string{"12 action_differs"}},

		// Settlements.
		"a settlement of nothing":           {member(17, "operation", "op-1"), []string{"17 settlement_differs"}},
		"a settlement of another operation": {func(l log) log { l[17]["operation"] = l[20]["started"].(object)["operation"]; return l }, []string{"17 settlement_differs"}},
		"a settlement of another step":      {member(17, "dispatch", 6), []string{"17 settlement_differs"}},
		"a settlement of another run":       {member(17, "run", 1), []string{"17 settlement_differs"}},
		"a settlement of another call":      {member(17, "call_id", "c7"), []string{"17 settlement_differs"}},
		"a settlement of another tool":      {member(17, "tool", "pay"), []string{"17 settlement_differs"}},
		"a settlement of what took place":   {again(18, 19, object{"state": "absent"}), []string{"20 operation_move"}},
		"a second settlement":               {again(18, 19, nil), []string{"20 operation_move", "21 dropped"}},
		"a settlement during the lease":     {func(l log) log { l[21]["time"] = moment(8, 15); return l }, []string{"21 operation_move"}},
		"an absence during the lease":       {func(l log) log { return absentEarly(l) }, []string{"15 operation_move"}},
		"a settlement without a reason":     {member(18, "reason", nil), []string{"18 settlement_differs"}},
		"a settlement by nobody":            {member(18, "by", nil), []string{"18 settlement_differs"}},
		"an operator who does not know":     {all(member(17, "by", "root"), member(17, "reason", "who knows")), []string{"17 operation_move"}},
		"a look-up that finds the absent":   {func(l log) log { l = wrongBefore(l); delete(l[22], "by"); delete(l[22], "reason"); return l }, []string{"22 operation_move"}},
		"an operator who was wrong before":  {func(l log) log { return wrongBefore(l) }, []string{}},
		"a tool that is asked too often":    {func(l log) log { return asked(l, mostLookups+1) }, []string{"117 settlement_differs"}},
		"a tool that is asked often":        {func(l log) log { return asked(l, mostLookups) }, []string{}},
		"a settlement of another task's":    {func(l log) log { return ofNoTask(l) }, []string{"28 wrong_subject"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := c.broken(slices.Concat(operatorActs(), abroad(t, "a")))
			r := audited(t, file(l.lines(t)), Options{})
			assert.Equal(t, c.want, found(r), "%+v", r.Findings)
			for _, f := range r.Findings {
				assert.NotEmpty(t, f.Message)
			}
		})
	}
}

// What could not be read, or is gone, is one finding, and nothing is held against what followed it.
func TestOutsideCallsAroundAGap(t *testing.T) {
	for name, c := range map[string]struct {
		gone   int
		unread bool
		want   []string
	}{
		"an unread start":                 {20, true, []string{"20 changed"}},
		"an unread start, others between": {2, true, []string{"2 changed"}},
		"an unread outcome":               {11, true, []string{"11 changed"}},
		"an unread settlement":            {21, true, []string{"21 changed", "22 outcome_differs"}},
		"an unread action":                {12, true, []string{"12 changed"}},
		"a start that is gone, its step":  {9, true, []string{"9 changed", "26 after_cancel"}},
		"an outcome that is gone":         {11, false, []string{"11 dropped"}},
		"an action that is gone":          {19, false, []string{"19 dropped"}},
		"a step that is gone":             {9, false, []string{"9 missing_step", "25 after_cancel"}},
	} {
		t.Run(name, func(t *testing.T) {
			lines := slices.Concat(operatorActs(), abroad(t, "a")).lines(t)
			if c.unread {
				lines[c.gone][0] = '['
			} else {
				lines = slices.Delete(lines, c.gone, c.gone+1)
			}
			r := audited(t, file(lines), Options{})
			assert.Equal(t, c.want, found(r), "%+v", r.Findings)
		})
	}
}

func pastStep(l log) log {
	for _, s := range []object{l.at(6, "approval"), l.at(7, "approvals", 0), l.at(8, "approvals", 0), l.at(9, "approvals", 0)} {
		s["expires_at_step"] = 3
	}
	return l
}

// cancelled ends the task behind a leaf and its outcome.
func cancelled(l log, leaf int, withdrawn bool) log {
	cancel := maps.Clone(l[26])
	cancel["step"], cancel["time"] = l[leaf]["step"], l[leaf]["time"]
	l = renumbered(slices.Insert(l[:leaf+2], leaf+1, cancel))
	if withdrawn {
		l.at(leaf+2, "approvals", 0)["state"] = "withdrawn"
	}
	return l
}

// allowedAnew has the repetition of the parcel judged as if nothing had taken place.
func allowedAnew(t testing.TB, l log) log {
	l.at(15, "decision")["effect"], l.at(15, "decision")["status"] = "allow", "ok"
	l[15]["started"] = object{"definition": "def-send", "deadline": moment(7, 10), "lease": moment(7, 15), "output": 100,
		"operation": operationID(t, "a", "k2", 0), "run": 2, "effect": "e2", "outward": "out-" + operationID(t, "a", "k2", 0)}
	l[16]["status"] = "outcome_unknown"
	for _, leaf := range []int{17, 18, 19} {
		l[leaf]["call_id"] = "c7"
	}
	return l
}

// resumedFirst takes out the first call of the parcel.
func resumedFirst(l log) log {
	l = slices.Delete(l, 13, 15)
	l[13]["step"] = 6
	l.at(13, "input", "state")["step"] = 6
	return l[:14]
}

// answered has the outcome of the read come in that nobody heard of, and its action.
func answered(l log) log {
	outcome, action := maps.Clone(l[3]), maps.Clone(l[4])
	for _, e := range []object{outcome, action} {
		e["dispatch"], e["call_id"], e["step"], e["time"] = 9, "c9", 10, moment(10, 40)
	}
	return renumbered(append(l, outcome, action))
}

// absentEarly has a look-up say during the lease that there is nothing of the parcel.
func absentEarly(l log) log {
	early := maps.Clone(l[21])
	early["dispatch"], early["call_id"], early["operation"] = 6, "c6", l[14]["operation"]
	early["step"], early["n"], early["time"] = 6, 1, moment(6, 12)
	l[14]["n"], l[14]["time"], early["n"] = 1, moment(6, 11), 2
	return append(l[:15], early)[:16]
}

// paidAgain has the next call pay once more under the same key.
func paidAgain(l log) log {
	l[13]["operation"] = "k1"
	maps.Copy(l.at(13, "started"), object{"operation": l[11]["operation"], "run": 3, "effect": "e1"})
	return l[:14]
}

// writtenHere has a local tool write under the key of the last call.
func writtenHere(l log) log {
	decision := maps.Clone(l[25])
	in := maps.Clone(decision["input"].(object))
	in["state"], in["tool"] = object{"step": 11}, object{"effect": "write", "approval": "by_rule"}
	maps.Copy(decision, object{"step": 11, "time": moment(11, 0), "status": "ok", "input": in})
	delete(decision, "started")
	action := maps.Clone(l[12])
	maps.Copy(action, object{"step": 11, "n": 1, "time": moment(11, 0), "call_id": "c10", "tool": "send", "operation": "k4", "signature": in["call"].(object)["signature"]})
	for _, member := range []string{"dispatch", "approval", "reviewers"} {
		delete(action, member)
	}
	return append(l, decision, action)
}

// besideLocal has a local tool write under a key of its own while the last call is under way.
func besideLocal(l log) log {
	l = writtenHere(l)
	l.at(25, "started")["lease"] = moment(11, 0)
	l[26]["operation"], l[27]["operation"] = "k5", "k5"
	return l
}

func wrongBefore(l log) log {
	found, action := maps.Clone(l[18]), maps.Clone(l[23])
	for member, value := range map[string]any{"dispatch": 8, "call_id": "c8", "operation": l[21]["operation"], "run": 1, "step": 8, "time": moment(8, 40)} {
		found[member] = value
	}
	delete(action, "value")
	action["time"] = moment(8, 40)
	return renumbered(slices.Replace(l, 22, 24, found, action))
}

// asked has the tool asked so often about the parcel.
func asked(l log, n int) log {
	for range n - 1 {
		l = slices.Insert(l, 18, maps.Clone(l[17]))
	}
	return renumbered(l)
}

func ofNoTask(l log) log {
	e := maps.Clone(l[27])
	e["tenant"], e["task"], e["step"], e["n"] = "", "", 0, 1
	return append(l, e)
}
