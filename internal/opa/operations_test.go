package opa

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// situation is what rows 10 to 16 look at, of a call that has all authority.
type situation struct {
	tool         string // "inside" and "outside" are writes, "read" is one outside
	mode         dispatch.Mode
	keyed        bool
	operation    *dispatch.InputOperation
	unsettled    dispatch.OperationState // empty for none
	writeStarted bool
	approval     dispatch.ApprovalState // empty for none
	spent        bool
}

// eachSituation gives every one there is.
func eachSituation(f func(situation)) {
	no, yes := false, true
	operations := []*dispatch.InputOperation{nil}
	for _, state := range []dispatch.OperationState{dispatch.Started, dispatch.Unknown, dispatch.Committed, dispatch.Absent} {
		for _, same := range []bool{no, yes} {
			for _, result := range []bool{no, yes} {
				for _, repeatable := range []bool{no, yes} {
					operations = append(operations, &dispatch.InputOperation{State: state, SameSignature: same, HasResult: result, Repeatable: repeatable})
				}
			}
		}
	}
	var s situation
	for _, s.tool = range []string{"inside", "outside", "read"} {
		for _, s.mode = range []dispatch.Mode{dispatch.Enforce, dispatch.DryRun} {
			for _, s.keyed = range []bool{no, yes} {
				for _, s.operation = range operations {
					for _, s.unsettled = range []dispatch.OperationState{"", dispatch.Started, dispatch.Unknown} {
						for _, s.writeStarted = range []bool{no, yes} {
							for _, s.approval = range []dispatch.ApprovalState{"", dispatch.Pending, dispatch.Approved, dispatch.Rejected,
								dispatch.Consumed, dispatch.Expired, dispatch.Withdrawn} {
								for _, s.spent = range []bool{no, yes} {
									f(s)
								}
							}
						}
					}
				}
			}
		}
	}
}

// is says whether the call's own operation is in one of these states.
func (s situation) is(states ...dispatch.OperationState) bool {
	for _, state := range states {
		if s.operation != nil && s.operation.State == state {
			return true
		}
	}
	return false
}

func (s situation) write() bool { return s.tool != "read" }

func (s situation) resumable() bool {
	return s.tool == "outside" && s.mode == dispatch.Enforce && s.is(dispatch.Unknown) && s.operation.SameSignature && s.operation.Repeatable &&
		s.unsettled == "" && !s.writeStarted
}

// table is that of docs/policy.md from row 10 on, first match wins.
var table = []struct {
	status dispatch.Status
	when   func(s situation) bool
}{
	{"idempotency_conflict", func(s situation) bool {
		return s.is(dispatch.Committed, dispatch.Started, dispatch.Unknown) && !s.operation.SameSignature
	}},
	{"replayed", func(s situation) bool { return s.is(dispatch.Committed) }},
	{"in_progress", func(s situation) bool { return s.is(dispatch.Started) }},
	{"in_progress", func(s situation) bool { return s.unsettled == dispatch.Started }},
	{"in_progress", func(s situation) bool { return s.write() && s.writeStarted }},
	{"outcome_unknown", func(s situation) bool { return s.unsettled == dispatch.Unknown }},
	{"outcome_unknown", func(s situation) bool { return s.is(dispatch.Unknown) && !s.resumable() }},
	{"budget_exhausted", func(s situation) bool { return s.spent }},
	{"resumed", func(s situation) bool { return s.is(dispatch.Unknown) }},
	{"approval_rejected", func(s situation) bool { return s.approval == dispatch.Rejected }},
	{"approval_expired", func(s situation) bool { return s.write() && s.approval == dispatch.Expired }},
	{"invalid_state", func(s situation) bool {
		return s.write() && s.approval == dispatch.Consumed && s.keyed && !s.is(dispatch.Absent)
	}},
	{"approval_required", func(s situation) bool { return s.write() && s.approval != dispatch.Approved }},
	{"dry_run", func(s situation) bool { return s.mode == dispatch.DryRun }},
	{"ok", func(situation) bool { return true }},
}

func (s situation) want() dispatch.Status {
	for _, row := range table {
		if row.when(s) {
			return row.status
		}
	}
	return ""
}

// input is the situation as Go would put it in.
func (s situation) input(t *testing.T) ijson.Raw {
	t.Helper()
	at := dispatch.Moment{RFC3339: "2026-01-01T00:00:00.000Z", Epoch: 1767225600}
	target, signature := "/warehouse/labels.txt", "00"
	in := dispatch.Input{Now: at, Mode: s.mode,
		Task: dispatch.InputTask{Tenant: "default", ID: "labels-1", Actor: "learner", Profile: "lab", Scopes: map[string]bool{}},
		Call: dispatch.InputCall{ID: "a1", Tool: "record_draft", Arguments: ijson.Raw(`{}`), Target: &target, Keyed: s.keyed, Signature: &signature,
			Violations: []dispatch.Violation{}},
		Tool: &dispatch.InputTool{Name: "record_draft", Version: "1", Effect: dispatch.Write, Outside: s.tool != "inside",
			Approval: dispatch.Always, Scopes: []string{}, Labels: []string{}},
		State: dispatch.InputState{Step: 1, MaxSteps: 20, Operation: s.operation, WriteStarted: s.writeStarted, Pending: dispatch.InputPending{Limit: 10}},
	}
	if s.tool == "read" {
		in.Call.Tool, in.Tool.Name, in.Tool.Effect, in.Tool.Approval = "read_document", "read_document", dispatch.Read, dispatch.ByRule
	}
	if s.unsettled != "" {
		in.State.Unsettled = &s.unsettled
	}
	if s.approval != "" {
		in.State.Approval = &dispatch.InputApproval{State: s.approval, ExpiresAtStep: 4, ExpiresAt: at, Mode: s.mode,
			Votes: []dispatch.Vote{{Reviewer: "ann", Decision: "approved", Lifetime: 3}}}
	}
	in.State.Budgets.Attempts = &dispatch.InputBudget{Limit: 3, Spent: 1, Reserved: 1}
	if s.spent {
		in.State.Budgets.Attempts.Reserved = 2
	}
	raw, err := ijson.Marshal(in)
	require.NoError(t, err)
	return raw
}

// In every situation there is, Rego gives the table's answer, and Go finds nothing wrong with it. And of the answers by
// which something runs, or a result is told, Go lets through none that Rego does not give.
func TestOpenOperationsInRegoAndGo(t *testing.T) {
	p := shipped(t)
	seen := map[dispatch.Status]int{}
	eachSituation(func(s situation) {
		input := s.input(t)
		describe := func() string { return fmt.Sprintf("%+v, operation %+v", s, s.operation) }
		d := judged(t, p, input)
		if want := s.want(); d.Status != want {
			require.Equal(t, want, d.Status, "%s: %s", describe(), d.Detail)
		}
		if d.Retryable != (d.Status == dispatch.StatusInProgress) {
			require.Fail(t, "only what is under way can be sent again", describe())
		}
		seen[d.Status]++

		terms := `,"approval":{"approvers":1}`
		if !s.write() {
			terms = ""
		}
		for status, answer := range map[dispatch.Status]string{
			dispatch.StatusOK:       `{"effect":"allow","status":"ok","reasons":[],"policy_version":"v"` + terms + `}`,
			dispatch.StatusReplayed: `{"effect":"replay","status":"replayed","reasons":[],"policy_version":"v"}`,
			dispatch.StatusResumed:  `{"effect":"resume","status":"resumed","reasons":[],"policy_version":"v"}`,
		} {
			inGo, err := dispatch.Judge(t.Context(), fixed(answer), "v", input)
			require.NoError(t, err)
			if (inGo.Status == status) != (d.Status == status) {
				require.Fail(t, "Go and Rego differ", "%s of %s: Go says %s %s, Rego %s", status, describe(), inGo.Status, inGo.Detail, d.Status)
			}
		}
	})
	for _, row := range table {
		assert.NotZero(t, seen[row.status], row.status)
	}
}
