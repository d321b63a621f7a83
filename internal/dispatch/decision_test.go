package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// answers is a policy that gives one answer, whatever it is asked.
type answers struct {
	raw string
	err error
}

func (a answers) Decide(context.Context, ijson.Raw) (ijson.Raw, error) {
	return ijson.Raw(a.raw), a.err
}

// writeFacts are those of a write that a person has approved, for a call that has not run.
func writeFacts() Facts {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	f := Facts{
		Now: at, Mode: Enforce, Door: "test", Attempt: 1, Step: 3, Definition: "d",
		Call:    decode([]byte(`{"call_id":"c1","tool":"record_draft","arguments":{"draft_id":"n"}}`), 0, ijson.DefaultLimits),
		Profile: &Profile{MaxSteps: 20, MaxPending: 5},
		Tool:    &Definition{Name: "record_draft", Local: "record", Effect: Write, Approval: Always},
	}
	f.Call.Signature, f.Call.Target, f.Call.Key = "s", "n", "k"
	f.Task = Task{TaskKey: TaskKey{"default", "labels-1"}, Actor: "learner", Profile: "warehouse", Steps: 2, Revision: 7, Updated: at}
	f.State.Approval = &Approval{ID: "ap-1", Task: f.Task.TaskKey, Signature: "s", Definition: "d", Mode: Enforce, State: Approved,
		Votes: []Vote{{Reviewer: "maya", Decision: "approved", Lifetime: 3, Time: FormatTime(at)}}, ExpiresAtStep: 5, ExpiresAt: at.Add(time.Hour)}
	return f
}

// with gives the write's facts with changes, as the policy sees them.
func with(t *testing.T, changes ...func(*Facts)) ijson.Raw {
	t.Helper()
	f := writeFacts()
	for _, c := range changes {
		c(&f)
	}
	raw, err := ijson.Marshal(f.Input())
	require.NoError(t, err)
	return raw
}

const (
	version   = "v@sha256:0"
	allowed   = `{"effect":"allow","status":"ok","reasons":[],"policy_version":"v@sha256:0","approval":{"approvers":1}}`
	asking    = `{"effect":"require_approval","status":"approval_required","reasons":[],"policy_version":"v@sha256:0","approval":{}}`
	replayed  = `{"effect":"replay","status":"replayed","reasons":[],"policy_version":"v@sha256:0"}`
	resumed   = `{"effect":"resume","status":"resumed","reasons":[],"policy_version":"v@sha256:0"}`
	simulated = `{"effect":"simulate","status":"dry_run","reasons":[],"policy_version":"v@sha256:0"}`
	denied    = `{"effect":"deny","status":"outside_window","reasons":[{"code":"outside_window","message":"not now"}],"policy_version":"v@sha256:0"}`
)

// B008, B009, B015 and their kind: anything but one well-formed decision denies, and is told apart.
func TestOnlyAWellFormedDecisionCounts(t *testing.T) {
	change := func(from, to string) string { return strings.Replace(allowed, from, to, 1) }
	for name, raw := range map[string]string{
		"a string":                     `"deny"`,
		"a number":                     `1`,
		"true":                         `true`,
		"null":                         `null`,
		"an empty object":              `{}`,
		"a list of two":                `[` + allowed + `,` + denied + `]`,
		"a list of one":                `[` + allowed + `]`,
		"another case of the effect":   change(`"allow"`, `"Allow"`),
		"a space in the effect":        change(`"allow"`, `"allow "`),
		"an unknown effect":            change(`"allow"`, `"permit"`),
		"an effect of a later kind":    change(`"allow","status":"ok"`, `"simulate","status":"dry_run"`),
		"resume":                       change(`"allow","status":"ok"`, `"resume","status":"outcome_unknown"`),
		"a Boolean as effect":          change(`"allow"`, `true`),
		"a Boolean beside":             `{"allow":"true"}`,
		"one member more":              change(`"status"`, `"effect_extra":1,"status"`),
		"another case of a name":       change(`"effect"`, `"Effect"`),
		"no effect":                    change(`"effect":"allow",`, ``),
		"no status":                    change(`"status":"ok",`, ``),
		"no reasons":                   change(`"reasons":[],`, ``),
		"no version":                   change(`"policy_version":"v@sha256:0",`, ``),
		"another version":              change(`v@`, `w@`),
		"null reasons":                 change(`[]`, `null`),
		"a reason that is text":        change(`[]`, `["why"]`),
		"a reason with a member more":  change(`[]`, `[{"code":"a","message":"b","remedy":"c"}]`),
		"null approval":                change(`{"approvers":1}`, `null`),
		"terms of a later kind":        change(`{"approvers":1}`, `{"place":"here"}`),
		"roles of nobody":              change(`{"approvers":1}`, `{"roles":[]}`),
		"a role that is text":          change(`{"approvers":1}`, `{"roles":"lead"}`),
		"an empty role":                change(`{"approvers":1}`, `{"roles":[""]}`),
		"a role twice":                 change(`{"approvers":1}`, `{"roles":["lead","lead"]}`),
		"a role of null":               change(`{"approvers":1}`, `{"roles":[null]}`),
		"no stage":                     change(`{"approvers":1}`, `{"stages":[]}`),
		"a stage without a name":       change(`{"approvers":1}`, `{"stages":[{"approvers":1}]}`),
		"a stage without its name":     change(`{"approvers":1}`, `{"stages":[{"name":""}]}`),
		"a stage twice":                change(`{"approvers":1}`, `{"stages":[{"name":"a"},{"name":"a"}]}`),
		"a stage with a member more":   change(`{"approvers":1}`, `{"stages":[{"name":"a","ttl":"1h"}]}`),
		"a stage of nobody":            change(`{"approvers":1}`, `{"stages":[{"name":"a","approvers":0}]}`),
		"a stage of too many":          change(`{"approvers":1}`, `{"stages":[{"name":"a","approvers":11}]}`),
		"a stage without a role":       change(`{"approvers":1}`, `{"stages":[{"name":"a","roles":[]}]}`),
		"a stage with a role twice":    change(`{"approvers":1}`, `{"stages":[{"name":"a","roles":["b","b"]}]}`),
		"too many stages":              change(`{"approvers":1}`, `{"stages":[{"name":"0"},{"name":"1"},{"name":"2"},{"name":"3"},{"name":"4"},{"name":"5"},{"name":"6"},{"name":"7"},{"name":"8"},{"name":"9"},{"name":"10"}]}`),
		"approvers below zero":         change(`{"approvers":1}`, `{"approvers":-1}`),
		"too many approvers":           change(`{"approvers":1}`, `{"approvers":11}`),
		"half an approver":             change(`{"approvers":1}`, `{"approvers":1.5}`),
		"a lifetime above the limit":   change(`{"approvers":1}`, `{"lifetime":11}`),
		"B046: a ttl of zero":          change(`{"approvers":1}`, `{"ttl":"0s"}`),
		"B046: a ttl below zero":       change(`{"approvers":1}`, `{"ttl":"-1h"}`),
		"B046: a ttl without unit":     change(`{"approvers":1}`, `{"ttl":"60"}`),
		"B046: a ttl as a number":      change(`{"approvers":1}`, `{"ttl":60}`),
		"B046: a ttl of 100 years":     change(`{"approvers":1}`, `{"ttl":"876000h"}`),
		"a status with another effect": change(`"status":"ok"`, `"status":"tool_denied"`),
		"ok that denies":               change(`"effect":"allow"`, `"effect":"deny"`),
		"a resumption that allows":     change(`"status":"ok"`, `"status":"resumed"`),
		"a call under way":             strings.Replace(denied, `"status":"outside_window"`, `"status":"started"`, 1),
		"an allow of one's own":        change(`"status":"ok"`, `"status":"fine"`),
		"a status of execution":        strings.Replace(denied, `"status":"outside_window"`, `"status":"timeout"`, 1),
		"a status of a broken result":  strings.Replace(denied, `"status":"outside_window"`, `"status":"invalid_result"`, 1),
		"a policy error without why":   `{"effect":"deny","status":"policy_error","reasons":[],"policy_version":"v@sha256:0"}`,
		"a policy error to repeat":     strings.Replace(denied, `"status":"outside_window"`, `"status":"policy_error","retryable":true`, 1),
		"a policy error that allows":   change(`"status":"ok"`, `"status":"policy_error"`),
		"a status in capitals":         strings.Replace(denied, `"status":"outside_window"`, `"status":"OUTSIDE"`, 1),
		"an empty status":              strings.Replace(denied, `"status":"outside_window"`, `"status":""`, 1),
		"terms missing":                strings.Replace(asking, `,"approval":{}`, ``, 1),
		"a reason that is null":        change(`[]`, `[null]`),
		"a reason without its message": change(`[]`, `[{"code":"a"}]`),
		"no approvers":                 change(`{"approvers":1}`, `{"approvers":0}`),
		"a lifetime of zero":           change(`{"approvers":1}`, `{"lifetime":0}`),
		"B046: an empty ttl":           change(`{"approvers":1}`, `{"ttl":""}`),
		"B046: a ttl of null":          change(`{"approvers":1}`, `{"ttl":null}`),
		"no JSON":                      `{"effect":`,
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Judge(t.Context(), answers{raw: raw}, version, with(t))
			require.NoError(t, err)
			assert.Equal(t, Deny, d.Effect)
			assert.Equal(t, StatusPolicyError, d.Status)
			assert.Equal(t, "policy_malformed", d.Reasons[0].Code)
			assert.Equal(t, version, d.PolicyVersion)
			assert.NotEmpty(t, d.Detail)

			// Terms are refused for what they say, also where no votes could fall short of them.
			ask := strings.Replace(raw, `"effect":"allow","status":"ok"`, `"effect":"require_approval","status":"approval_required"`, 1)
			d, err = Judge(t.Context(), answers{raw: ask}, version, with(t, func(f *Facts) { f.State.Approval = nil }))
			require.NoError(t, err)
			assert.Equal(t, StatusPolicyError, d.Status)
		})
	}
	for name, raw := range map[string]string{"allow": allowed, "a denial of the site's own": denied} {
		d, err := Judge(t.Context(), answers{raw: raw}, version, with(t))
		require.NoError(t, err)
		assert.NotEqual(t, StatusPolicyError, d.Status, "%s: %s", name, d.Detail)
	}
	for _, code := range []string{"policy_undefined", "policy_conflict", "policy_timeout", "policy_failed"} {
		d, err := Judge(t.Context(), answers{err: &PolicyError{Code: code, Detail: "x"}}, version, with(t))
		require.NoError(t, err)
		assert.Equal(t, Deny, d.Effect)
		assert.Equal(t, code, d.Reasons[0].Code)
	}
	d, err := Judge(t.Context(), answers{err: errors.New("boom")}, version, with(t))
	require.NoError(t, err)
	assert.Equal(t, "policy_failed", d.Reasons[0].Code)
	assert.NotContains(t, d.Reasons[0].Message, "boom", "an agent gets no internals")
}

// A policy may say itself that it is broken, as it does of a layer's malformed member. People are told what it said.
func TestPolicyErrorOfThePolicy(t *testing.T) {
	raw := `{"effect":"deny","status":"policy_error","policy_version":"v@sha256:0","reasons":[{"code":"policy_malformed","message":"data.site.deny, closed: no"},{"code":"policy_malformed","message":"data.org.deny: no"}]}`
	d, err := Judge(t.Context(), answers{raw: raw}, version, with(t))
	require.NoError(t, err)
	assert.Equal(t, Deny, d.Effect)
	assert.Equal(t, StatusPolicyError, d.Status)
	assert.Equal(t, "data.site.deny, closed: no", d.Reasons[0].Message)
	assert.Equal(t, "policy_malformed: data.site.deny, closed: no; policy_malformed: data.org.deny: no", d.Detail)
}

// Roles are sets: however a policy writes them, equal terms are equal.
func TestTermsInOrder(t *testing.T) {
	raw := strings.Replace(asking, `"approval":{}`, `"approval":{"roles":["b","a"],"stages":[{"name":"z","roles":["d","c"]},{"name":"y"}]}`, 1)
	d, err := Judge(t.Context(), answers{raw: raw}, version, with(t, func(f *Facts) { f.State.Approval = nil }))
	require.NoError(t, err)
	assert.Equal(t, &Terms{Roles: []string{"a", "b"}, Stages: []Stage{{Name: "z", Roles: []string{"c", "d"}}, {Name: "y"}}}, d.Approval)
}

// The guards behind the rules: what a wrong policy cannot do.
func TestWhatNoPolicyCanDo(t *testing.T) {
	approval := func(edit func(*Approval)) func(*Facts) { return func(f *Facts) { edit(f.State.Approval) } }
	committed := func(signature string) func(*Facts) {
		return func(f *Facts) {
			f.Operation = &Operation{State: Committed, Signature: signature, Result: ijson.Raw(`1`)}
		}
	}
	byRule := func(f *Facts) { f.Tool.Approval = ByRule }
	none := func(f *Facts) { f.State.Approval = nil }
	for _, row := range []struct {
		name    string
		raw     string
		changes []func(*Facts)
		ok      bool
	}{
		{"allow under its approval", allowed, nil, true},
		{"allow of a tool that needs none", strings.Replace(allowed, `,"approval":{"approvers":1}`, ``, 1), []func(*Facts){none, byRule}, true},
		{"allow without terms, of a tool that always needs one", strings.Replace(allowed, `,"approval":{"approvers":1}`, ``, 1), []func(*Facts){none}, false},
		{"allow with terms, without an approval", allowed, []func(*Facts){none, byRule}, false},
		{"allow while it waits", allowed, []func(*Facts){approval(func(a *Approval) { a.State = Pending })}, false},
		{"allow what was rejected", allowed, []func(*Facts){approval(func(a *Approval) { a.State = Rejected })}, false},
		{"allow what was used", allowed, []func(*Facts){approval(func(a *Approval) { a.State = Consumed })}, false},
		{"allow what was withdrawn", allowed, []func(*Facts){approval(func(a *Approval) { a.State = Withdrawn })}, false},
		{"allow under another definition", allowed, []func(*Facts){approval(func(a *Approval) { a.Definition = "e" })}, false},
		{"allow at the last step", allowed, []func(*Facts){approval(func(a *Approval) { a.ExpiresAtStep = 3 })}, true},
		{"allow after the last step", allowed, []func(*Facts){approval(func(a *Approval) { a.ExpiresAtStep = 2 })}, false},
		{"allow after its time", allowed, []func(*Facts){approval(func(a *Approval) { a.ExpiresAt = a.ExpiresAt.Add(-2 * time.Hour) })}, false},
		{"allow with one vote of two", strings.Replace(allowed, `"approvers":1`, `"approvers":2`, 1), nil, false},
		{"allow with two votes of one person", strings.Replace(allowed, `"approvers":1`, `"approvers":2`, 1), []func(*Facts){approval(func(a *Approval) { a.Votes = append(a.Votes, a.Votes[0]) })}, false},
		{"allow with a rejection among the votes", allowed, []func(*Facts){approval(func(a *Approval) { a.Votes = append(a.Votes, Vote{Reviewer: "sam", Decision: "rejected"}) })}, false},
		{"allow without terms, under an approval", strings.Replace(allowed, `,"approval":{"approvers":1}`, ``, 1), nil, false},
		{"allow under an approval of another mode", allowed, []func(*Facts){approval(func(a *Approval) { a.Mode = "dry_run" })}, false},
		{"allow under a vote that grants more than the terms", strings.Replace(allowed, `"approvers":1`, `"lifetime":2`, 1), nil, false},
		{"allow under a vote without the reason that the terms want", strings.Replace(allowed, `"approvers":1`, `"reason_required":true`, 1), nil, false},
		{"allow under a vote with its reason", strings.Replace(allowed, `"approvers":1`, `"reason_required":true`, 1), []func(*Facts){approval(func(a *Approval) { a.Votes[0].Reason = "read it" })}, true},
		{"allow under a vote without the role that the terms want", strings.Replace(allowed, `"approvers":1`, `"roles":["lead"]`, 1), nil, false},
		{"allow under a vote with the role", strings.Replace(allowed, `"approvers":1`, `"roles":["owner","lead"]`, 1), []func(*Facts){approval(func(a *Approval) { a.Votes[0].Roles = []string{"lead"} })}, true},
		{"allow before a stage is complete", strings.Replace(allowed, `"approvers":1`, `"stages":[{"name":"legal"}]`, 1), nil, false},
		{"allow after every stage", strings.Replace(allowed, `"approvers":1`, `"stages":[{"name":"legal"}]`, 1), []func(*Facts){approval(func(a *Approval) { a.Votes[0].Stage = "legal" })}, true},
		{"allow after a stage whose role nobody held", strings.Replace(allowed, `"approvers":1`, `"stages":[{"name":"legal","roles":["counsel"]}]`, 1), []func(*Facts){approval(func(a *Approval) { a.Votes[0].Stage = "legal" })}, false},
		{"allow after a stage whose role was held", strings.Replace(allowed, `"approvers":1`, `"stages":[{"name":"legal","roles":["counsel"]}]`, 1), []func(*Facts){approval(func(a *Approval) { a.Votes[0].Stage, a.Votes[0].Roles = "legal", []string{"counsel"} })}, true},
		{"allow after a stage of two in which one person voted twice", strings.Replace(allowed, `"approvers":1`, `"stages":[{"name":"legal","approvers":2}]`, 1), []func(*Facts){approval(func(a *Approval) { a.Votes[0].Stage = "legal"; a.Votes = append(a.Votes, a.Votes[0]) })}, false},
		{"allow after stages of which the later spoke first", strings.Replace(allowed, `"approvers":1`, `"stages":[{"name":"team"},{"name":"legal"}]`, 1), []func(*Facts){approval(func(a *Approval) {
			a.Votes = []Vote{{Reviewer: "maya", Decision: "approved", Lifetime: 3, Stage: "legal"}, {Reviewer: "sam", Decision: "approved", Lifetime: 3, Stage: "team"}}
		})}, false},
		{"allow when the time is up", allowed, []func(*Facts){func(f *Facts) { f.Task.Deadline = f.Now }}, false},
		{"allow before the time is up", allowed, []func(*Facts){func(f *Facts) { f.Task.Deadline = f.Now.Add(time.Second) }}, true},
		{"allow without a profile", strings.Replace(allowed, `,"approval":{"approvers":1}`, ``, 1), []func(*Facts){none, byRule, func(f *Facts) { f.Profile = nil }}, false},
		{"allow that can be retried", strings.Replace(allowed, `"status"`, `"retryable":true,"status"`, 1), nil, false},
		{"allow under the actor's own vote", strings.Replace(allowed, `"approvers":1`, `"distinct_from_actor":true`, 1), []func(*Facts){approval(func(a *Approval) { a.Votes[0].Reviewer = "learner" })}, false},
		{"allow again", allowed, []func(*Facts){committed("s")}, false},
		{"allow over what exists", allowed, []func(*Facts){func(f *Facts) { f.TargetExists = true }}, false},
		{"allow when cancelled", allowed, []func(*Facts){func(f *Facts) { f.Task.Cancelled = true }}, false},
		{"allow over the budget", allowed, []func(*Facts){func(f *Facts) { f.Profile.MaxSteps = 2 }}, false},
		{"allow at the budget", allowed, []func(*Facts){func(f *Facts) { f.Profile.MaxSteps = 3 }}, true},
		{"allow what is no proposal", allowed, []func(*Facts){func(f *Facts) { f.Call.Malformed = "is not" }}, false},
		{"allow an unknown tool", allowed, []func(*Facts){func(f *Facts) { f.Tool = nil }}, false},
		{"allow against the schema", allowed, []func(*Facts){func(f *Facts) { f.Call.Violations = []Violation{{"/a", "is required"}} }}, false},
		{"allow in an unknown mode", allowed, []func(*Facts){func(f *Facts) { f.Mode, f.State.Approval.Mode = "dryrun", "dryrun" }}, false},
		{"allow of a write in a dry run", allowed, []func(*Facts){func(f *Facts) { f.Mode, f.State.Approval.Mode = DryRun, DryRun }}, false},
		{"allow of a read in a dry run", strings.Replace(allowed, `,"approval":{"approvers":1}`, ``, 1), []func(*Facts){none, byRule, func(f *Facts) { f.Mode, f.Tool.Effect = DryRun, Read }}, true},
		{"allow of a read outside in a dry run", strings.Replace(allowed, `,"approval":{"approvers":1}`, ``, 1), []func(*Facts){none, byRule, func(f *Facts) { f.Mode, f.Tool.Effect, f.Tool.Local = DryRun, Read, "" }}, false},
		{"allow of what has no effect in a dry run", strings.Replace(allowed, `,"approval":{"approvers":1}`, ``, 1), []func(*Facts){none, byRule, func(f *Facts) { f.Mode, f.Tool.Effect = DryRun, "" }}, false},
		{"simulate in a dry run", simulated, []func(*Facts){func(f *Facts) { f.Mode = DryRun }}, true},
		{"simulate outside a dry run", simulated, nil, false},
		{"simulate when cancelled", simulated, []func(*Facts){func(f *Facts) { f.Mode, f.Task.Cancelled = DryRun, true }}, false},
		{"simulate an unknown tool", simulated, []func(*Facts){func(f *Facts) { f.Mode, f.Tool = DryRun, nil }}, false},
		{"replay", replayed, []func(*Facts){committed("s")}, true},
		{"replay without its result", replayed, []func(*Facts){committed("s"), func(f *Facts) { f.Operation.Result = nil }}, true},
		{"replay of nothing", replayed, nil, false},
		{"replay of another call", replayed, []func(*Facts){committed("other")}, false},
		{"replay when cancelled", replayed, []func(*Facts){committed("s"), func(f *Facts) { f.Task.Cancelled = true }}, false},
		{"replay over the budget", replayed, []func(*Facts){committed("s"), func(f *Facts) { f.Profile.MaxSteps = 2 }}, false},
		{"ask", asking, []func(*Facts){none}, true},
		{"ask again while it waits", asking, []func(*Facts){approval(func(a *Approval) { a.State = Pending })}, true},
		{"ask again for what was rejected", asking, []func(*Facts){approval(func(a *Approval) { a.State = Rejected })}, false},
		{"ask again for what expired", asking, []func(*Facts){approval(func(a *Approval) { a.State = Expired })}, false},
		{"ask again for what was approved and has lapsed by steps", asking, []func(*Facts){approval(func(a *Approval) { a.ExpiresAtStep = 2 })}, false},
		{"ask again for what has lapsed by time", asking, []func(*Facts){approval(func(a *Approval) { a.State, a.ExpiresAt = Pending, a.ExpiresAt.Add(-2*time.Hour) })}, false},
		{"ask at the limit of what may wait", asking, []func(*Facts){none, func(f *Facts) { f.Pending = 5 }}, false},
		{"ask below the limit of what may wait", asking, []func(*Facts){none, func(f *Facts) { f.Pending = 4 }}, true},
		{"ask again at the limit for what waits already", asking, []func(*Facts){approval(func(a *Approval) { a.State = Pending }), func(f *Facts) { f.Pending = 5 }}, true},
		{"deny with terms", strings.Replace(denied, `"status"`, `"approval":{},"status"`, 1), nil, false},
		{"ask when cancelled", asking, []func(*Facts){none, func(f *Facts) { f.Task.Cancelled = true }}, false},
		{"ask for an unknown tool", asking, []func(*Facts){none, func(f *Facts) { f.Tool = nil }}, false},
		{"ask for what has run", asking, []func(*Facts){none, committed("s")}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			d, err := Judge(t.Context(), answers{raw: row.raw}, version, with(t, row.changes...))
			require.NoError(t, err)
			assert.Equal(t, row.ok, d.Status != StatusPolicyError, "%s %s", d.Status, d.Detail)
		})
	}
}

// What no policy can do while an operation is open: that of the call itself, or another of the task.
func TestWhatNoPolicyCanDoToOpenOperations(t *testing.T) {
	own := func(state OperationState, same, repeatable bool) func(*Input) {
		return func(in *Input) {
			in.State.Operation = &InputOperation{State: state, SameSignature: same, Repeatable: repeatable}
		}
	}
	unsettled := func(state OperationState) func(*Input) { return func(in *Input) { in.State.Unsettled = &state } }
	another := func(in *Input) { in.State.WriteStarted = true }
	outside := func(in *Input) { in.Tool.Outside = true }
	reading := func(in *Input) { in.Tool.Effect = Read }
	dry := func(in *Input) { in.Mode, in.State.Approval.Mode = DryRun, DryRun }
	used := func(in *Input) { in.State.Approval.State = Consumed }
	budget := func(limit, spent, reserved int64) func(*Input) {
		return func(in *Input) {
			in.State.Budgets.Attempts = &InputBudget{Limit: limit, Spent: spent, Reserved: reserved}
		}
	}
	lost := own(Unknown, true, true)
	for _, row := range []struct {
		name    string
		raw     string
		changes []func(*Input)
		want    string // of the error; empty for none
	}{
		{"allow of what was started", allowed, []func(*Input){own(Started, true, false)}, "an operation that is started"},
		{"allow of what is unknown", allowed, []func(*Input){lost}, "an operation that is unknown"},
		{"allow of what is committed", allowed, []func(*Input){own(Committed, true, false)}, "an operation that is committed"},
		{"allow of what nobody has a word for", allowed, []func(*Input){own("authorised", true, false)}, "an operation that is authorised"},
		{"allow of what did not take place", allowed, []func(*Input){own(Absent, true, false)}, ""},
		{"allow of what another call did not do", allowed, []func(*Input){own(Absent, false, false)}, ""},
		{"allow beside the same effect", allowed, []func(*Input){unsettled(Started)}, "another operation of the same effect is started"},
		{"allow beside the same effect, not known", allowed, []func(*Input){unsettled(Unknown)}, "another operation of the same effect is unknown"},
		{"allow beside another write", allowed, []func(*Input){another}, "another write of the task"},
		{"allow of no known effect beside another write", allowed, []func(*Input){another, func(in *Input) { in.Tool.Effect = "" }}, "another write of the task"},
		{"allow of a read beside a write", allowed, []func(*Input){another, reading}, ""},
		{"allow over what is reserved", allowed, []func(*Input){budget(3, 2, 1)}, "the budget of attempts"},
		{"allow beside what is reserved", allowed, []func(*Input){budget(4, 2, 1)}, ""},
		{"ask for what was started", asking, []func(*Input){own(Started, true, false)}, "an operation that is started"},
		{"ask for what is unknown", asking, []func(*Input){lost}, "an operation that is unknown"},
		{"ask for what did not take place", asking, []func(*Input){own(Absent, true, false), used}, ""},
		{"ask beside the same effect", asking, []func(*Input){unsettled(Unknown)}, "another operation of the same effect is unknown"},
		{"ask beside another write", asking, []func(*Input){another}, "another write of the task"},
		{"simulate what was started", simulated, []func(*Input){dry, own(Started, true, false)}, "an operation that is started"},
		{"simulate beside the same effect", simulated, []func(*Input){dry, unsettled(Started)}, "another operation of the same effect is started"},
		{"simulate what did not take place", simulated, []func(*Input){dry, own(Absent, true, false)}, ""},
		{"replay of what was started", replayed, []func(*Input){own(Started, true, false)}, "a committed operation"},
		{"replay of what is unknown", replayed, []func(*Input){lost}, "a committed operation"},
		{"replay of what did not take place", replayed, []func(*Input){own(Absent, true, false)}, "a committed operation"},
		{"replay of another call", replayed, []func(*Input){own(Committed, false, false)}, "a committed operation"},
		{"replay beside the same effect", replayed, []func(*Input){own(Committed, true, false), unsettled(Unknown), another}, ""},
		{"resume", resumed, []func(*Input){outside, lost, used}, ""},
		{"resume with terms", strings.Replace(resumed, `"status"`, `"approval":{},"status"`, 1), []func(*Input){outside, lost}, "takes no approval"},
		{"resume to repeat", strings.Replace(resumed, `"status"`, `"retryable":true,"status"`, 1), []func(*Input){outside, lost}, "not retryable"},
		{"resume of nothing", resumed, []func(*Input){outside}, "an unknown operation"},
		{"resume of what was started", resumed, []func(*Input){outside, own(Started, true, true)}, "an unknown operation"},
		{"resume of what is committed", resumed, []func(*Input){outside, own(Committed, true, true)}, "an unknown operation"},
		{"resume of what did not take place", resumed, []func(*Input){outside, own(Absent, true, true)}, "an unknown operation"},
		{"resume of another call", resumed, []func(*Input){outside, own(Unknown, false, true)}, "an unknown operation"},
		{"resume of what cannot be repeated", resumed, []func(*Input){outside, own(Unknown, true, false)}, "an unknown operation"},
		{"resume of a tool inside", resumed, []func(*Input){lost}, "no write outside"},
		{"resume of a read", resumed, []func(*Input){outside, lost, reading}, "no write outside"},
		{"resume beside the same effect", resumed, []func(*Input){outside, lost, unsettled(Started)}, "another operation of the same effect is started"},
		{"resume beside the same effect, not known", resumed, []func(*Input){outside, lost, unsettled(Unknown)}, "another operation of the same effect is unknown"},
		{"resume beside another write", resumed, []func(*Input){outside, lost, another}, "another write of the task"},
		{"resume in a dry run", resumed, []func(*Input){outside, lost, dry}, "resume in the mode dry_run"},
		{"resume in an unknown mode", resumed, []func(*Input){outside, lost, func(in *Input) { in.Mode = "dryrun" }}, "unknown mode"},
		{"resume when cancelled", resumed, []func(*Input){outside, lost, func(in *Input) { in.State.Cancelled = true }}, "cancelled"},
		{"resume after the last step", resumed, []func(*Input){outside, lost, func(in *Input) { in.State.MaxSteps = 2 }}, "the step budget"},
		{"resume of an unknown tool", resumed, []func(*Input){outside, lost, func(in *Input) { in.Tool = nil }}, "no well-formed call"},
		{"resume over a budget", resumed, []func(*Input){outside, lost, budget(3, 3, 0)}, "the budget of attempts"},
		{"resume over what is reserved", resumed, []func(*Input){outside, lost, budget(3, 2, 1)}, "the budget of attempts"},
		{"resume beside what is reserved", resumed, []func(*Input){outside, lost, budget(4, 2, 1)}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := writeFacts()
			in := f.Input()
			for _, change := range row.changes {
				change(&in)
			}
			raw, err := ijson.Marshal(in)
			require.NoError(t, err)
			d, err := Judge(t.Context(), answers{raw: row.raw}, version, raw)
			require.NoError(t, err)
			if row.want == "" {
				assert.NotEqual(t, StatusPolicyError, d.Status, d.Detail)
				return
			}
			assert.Equal(t, StatusPolicyError, d.Status)
			assert.Contains(t, d.Detail, row.want)
		})
	}
}

// What calls under way have reserved is as good as spent, in every budget.
func TestReservedCountsAsSpent(t *testing.T) {
	for name, put := range map[string]func(*InputBudgets, *InputBudget){
		"cost":     func(b *InputBudgets, one *InputBudget) { b.Cost = one },
		"attempts": func(b *InputBudgets, one *InputBudget) { b.Attempts = one },
		"output":   func(b *InputBudgets, one *InputBudget) { b.Output = one },
	} {
		f := writeFacts()
		in := f.Input()
		in.Tool.Cost = 1
		put(&in.State.Budgets, &InputBudget{Limit: 10, Spent: 4, Reserved: 5})
		require.NoError(t, in.affordable(), name)
		put(&in.State.Budgets, &InputBudget{Limit: 10, Spent: 4, Reserved: 6})
		require.ErrorContains(t, in.affordable(), "the budget of "+name)
	}
}

// A caller who gives up gets the context's error, and no decision to record.
func TestJudgeGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Judge(ctx, answers{err: ctx.Err()}, version, with(t))
	require.ErrorIs(t, err, context.Canceled)
}

func TestZeroDecisionDenies(t *testing.T) {
	var d Decision
	assert.NotEqual(t, Allow, d.Effect)
	c, r, err := Next(writeFacts(), d, Outcome{Status: StatusOK, Ran: true, Value: ijson.Raw(`1`), Record: ijson.Raw(`1`)})
	require.NoError(t, err)
	assert.Nil(t, c.Record)
	assert.Nil(t, c.Operation)
	assert.Nil(t, r.Value)
}
