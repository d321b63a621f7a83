package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// A dispatch is judged by the value of its input, and a replay by the bytes that are on record. The two are one.
func TestInputIsWhatItsBytesSay(t *testing.T) {
	text := rapid.StringMatching(`[a-zé"\\ ]{0,6}`)
	whole := rapid.IntRange(0, 1<<40)
	at := rapid.Map(rapid.Int64Range(0, 1<<33), func(s int64) time.Time { return time.UnixMilli(s * 977).UTC() })
	texts := rapid.SliceOfN(text, 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string) bool { return rapid.Bool().Draw(t, name) }
		f := Facts{Now: at.Draw(t, "now"), Mode: rapid.SampledFrom([]Mode{Enforce, DryRun}).Draw(t, "mode"), Step: whole.Draw(t, "step"),
			Call: Call{ID: text.Draw(t, "id"), Tool: text.Draw(t, "tool"), Target: text.Draw(t, "target"), Key: text.Draw(t, "key"),
				Signature: text.Draw(t, "signature"), Malformed: text.Draw(t, "malformed")},
			Definition: "d"}
		f.Task = Task{TaskKey: TaskKey{Tenant: text.Draw(t, "tenant"), ID: text.Draw(t, "task")}, Actor: text.Draw(t, "actor"),
			Profile: text.Draw(t, "profile"), Cancelled: some("cancelled"), Spent: Spent{Cost: rapid.Int64Range(0, 99).Draw(t, "cost"), Attempts: rapid.Int64Range(0, 99).Draw(t, "attempts")}}
		f.TargetExists, f.Pending = some("exists"), whole.Draw(t, "pending")
		if some("arguments") {
			f.Call.Arguments = ijson.Raw(`{"a":[1,"x",null,{"b":0.5}]}`)
		}
		if some("violations") {
			f.Call.Violations = []Violation{{Path: text.Draw(t, "path"), Message: text.Draw(t, "message")}}
		}
		if some("deadline") {
			f.Task.Deadline = at.Draw(t, "deadline")
		}
		if some("profile") {
			f.Profile = &Profile{MaxSteps: whole.Draw(t, "steps"), MaxPending: whole.Draw(t, "most"), Scopes: texts.Draw(t, "scopes")}
		}
		if some("definition") {
			f.Tool = &Definition{Name: text.Draw(t, "name"), Version: text.Draw(t, "version"), Effect: Write, Approval: ByRule,
				Scopes: texts.Draw(t, "required"), Labels: texts.Draw(t, "labels"), Resource: text.Draw(t, "resource"), Cost: rapid.Int64Range(0, 99).Draw(t, "price")}
		}
		if some("approval") {
			f.State.Approval = &Approval{State: Approved, Definition: "d", ExpiresAtStep: whole.Draw(t, "granted"), ExpiresAt: at.Draw(t, "expires"),
				PolicyVersion: text.Draw(t, "policy"), Mode: Enforce}
			if some("votes") {
				f.State.Approval.Votes = []Vote{{Reviewer: text.Draw(t, "reviewer"), Decision: "approved", Lifetime: 3, Roles: texts.Draw(t, "roles")}}
			}
		}
		if some("operation") {
			f.Operation = &Operation{Signature: text.Draw(t, "of"), Result: ijson.Raw(`1`)}
		}
		require.NoError(t, f.fix("test", 1))
		var said Input
		require.NoError(t, ijson.Unmarshal(f.Asked, &said))
		again, err := ijson.Marshal(said)
		require.NoError(t, err)
		require.Equal(t, string(f.Asked), string(again))
		// What is left out as nothing comes back as nothing or as an empty list; no check tells the two apart.
		said.State.Approval, f.input.State.Approval = withoutEmpty(said.State.Approval), withoutEmpty(f.input.State.Approval)
		require.Equal(t, f.input, said)
	})
}

func withoutEmpty(a *InputApproval) *InputApproval {
	if a == nil {
		return nil
	}
	next := *a
	next.Votes = append([]Vote{}, a.Votes...)
	for i, v := range next.Votes {
		if len(v.Roles) == 0 {
			next.Votes[i].Roles = nil
		}
	}
	return &next
}
