package opa

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//go:generate go test . -run TestEveryGuardIsSeen -update

var update = flag.Bool("update", false, "write the generated part of docs/policy.md anew")

// guard is something that the policy demands: what stands for it in the text, and what becomes possible without it.
type guard struct {
	name   string
	breaks string
	edits  []edit
}

// edit takes a piece of a file out, or puts another in its place.
type edit struct{ file, from, to string }

// row takes a line of the order table out, and its opposite on the allowed path.
func row(line, file, opposite, instead string) []edit {
	edits := []edit{{"decision.rego", line + "\n\n", ""}}
	if opposite != "" {
		edits = append(edits, edit{file, opposite, instead})
	}
	return edits
}

// guards of the policy, in the order of the table.
var guards = []guard{
	{"cancelled (1)", "a cancelled task goes on", row("else := cancelled if input.state.cancelled == true # 1", "decision.rego", "	input.state.cancelled == false\n", "")},
	{"deadline (2)", "a task goes on after its time", row("else := deadline_exceeded if input.now.epoch >= input.state.deadline.epoch # 2", "decision.rego", "	_in_time\n", "")},
	{"budget (3)", "a task never ends", row("else := budget_exhausted if input.state.step > input.state.max_steps # 3", "decision.rego", "	input.state.step <= input.state.max_steps\n", "")},
	{"well-formed proposal (4)", "what is no proposal is asked on", row("else := invalid_proposal if input.call.malformed != null # 4", "decision.rego", "	is_null(input.call.malformed)\n", "")},
	{"tools of the profile (5)", "any registered tool runs", row("else := tool_denied if not _tool_granted # 5", "decision.rego", "	_tool_granted\n", "")},
	{"exact name (5)", "a tool of another name is taken for the permitted one", []edit{{"authority.rego", "	input.tool.name == input.call.tool\n", ""}}},
	{"schema (6)", "arguments that the tool does not take reach it", row("else := invalid_arguments if input.call.violations != [] # 6", "decision.rego", "	input.call.violations == []\n", "")},
	{"scopes (7)", "a tool runs without the scopes that it requires", row("else := scope_denied if not _scopes_granted # 7", "decision.rego", "	_scopes_granted\n", "")},
	{"resources (8)", "every document can be read", row("else := resource_denied if not _target_granted # 8", "decision.rego", "	_target_granted\n", "")},
	{"the class of the target (8)", "what may be read may be written", []edit{{"authority.rego", "data.writable[set][input.call.target] == true", "data.readable[set][input.call.target] == true"}}},
	{"writable targets (8)", "a write reaches targets that are in no set", []edit{{"authority.rego", "	data.writable[set][input.call.target] == true\n", "	is_string(set)\n"}}},
	{"another call under a used key (10)", "the agent is not told that its key is taken", []edit{{"decision.rego", "else := idempotency_conflict if input.state.operation.same_signature == false # 10 and 11\n\n", ""}}},
	{"a committed operation (10)", "what was done is done again", []edit{{"decision.rego", "	_effects_wanted\n	is_null(input.state.operation)\n", "	_effects_wanted\n"}}},
	{"the same call (10)", "another call gets the saved result", []edit{
		{"decision.rego", "else := idempotency_conflict if input.state.operation.same_signature == false # 10 and 11\n\n", ""},
		{"operation.rego", "	input.state.operation.same_signature == true\n", ""}}},
	{"an operation that has not ended (11)", "the agent is not told to wait", []edit{{"decision.rego", "else := in_progress if input.state.operation.state == \"started\" # 11\n\n", ""}}},
	{"budgets (13)", "a task spends more than its budgets", row("else := budget_spent if count(_overspent) > 0 # 13", "decision.rego", "	_affordable\n	_approved\n	_room_for_target\n}\n\nelse", "	_approved\n	_room_for_target\n}\n\nelse")},
	{"the budget of cost (13)", "the cost of tools counts for nothing", []edit{{"budget.rego", "budget.spent + input.tool.cost <= budget.limit", "budget.spent <= budget.limit"}}},
	{"the budget of attempts (13)", "one run too many", []edit{{"budget.rego", "budget.spent + 1 <= budget.limit", "budget.spent <= budget.limit"}}},
	{"the budget of output (13)", "a run after the last byte is spent", []edit{{"budget.rego", "budget.spent < budget.limit", "budget.spent <= budget.limit"}}},
	{"what is spent (13)", "a run for which nobody can say what is left", []edit{{"budget.rego", "	is_object(input.state.budgets)\n", ""}}},
	{"what is spent, before a person is asked (13)", "people review what perhaps nothing can pay for", []edit{{"approval.rego", "	_affordable\n", ""}}},
	{"what is spent, in a dry run (13)", "a dry run promises what perhaps nothing can pay for", []edit{
		{"decision.rego", "	not _effects_wanted\n	is_null(input.state.operation)\n	_affordable\n", "	not _effects_wanted\n	is_null(input.state.operation)\n"}}},
	{"approval (14)", "a write runs without a person", []edit{{"decision.rego", "	_affordable\n	_approved\n	_room_for_target\n}\n\nelse", "	_affordable\n	_room_for_target\n}\n\nelse"}}},
	{"the state of the approval (14)", "a call runs that is only pending", []edit{{"approval.rego", "_approval_given if {\n	input.state.approval.state == \"approved\"\n", "_approval_given if {\n"}}},
	{"a rejection (14)", "a rejected call is asked for again", []edit{{"approval.rego", "else := \"rejected\" if input.state.approval.state == \"rejected\"\n\n", ""}}},
	{"lifetime in steps (14)", "an approval lives on after its last step", []edit{
		{"approval.rego", "	input.state.step <= input.state.approval.expires_at_step\n", ""},
		{"approval.rego", "	input.state.step > input.state.approval.expires_at_step\n", "	false\n"}}},
	{"lifetime in time (14)", "an approval lives on after its time", []edit{
		{"approval.rego", "	input.now.epoch <= input.state.approval.expires_at.epoch\n", ""},
		{"approval.rego", "	input.now.epoch > input.state.approval.expires_at.epoch\n", "	false\n"}}},
	{"number of approvers (14)", "one vote is enough where two are wanted", []edit{{"approval.rego", "max({1, object.get(_terms, \"approvers\", 1)})", "1"}}},
	{"at least one approver (14)", "no vote is enough", []edit{{"approval.rego", "max({1, object.get(_terms, \"approvers\", 1)})", "object.get(_terms, \"approvers\", 0)"}}},
	{"distinct people (14)", "one person votes twice", []edit{{"approval.rego", "reviewers := {vote.reviewer | some vote in input.state.approval.votes; _counts(vote)}", "reviewers := [vote.reviewer | some vote in input.state.approval.votes; _counts(vote)]"}}},
	{"no vote against (14)", "a rejection among the votes is outvoted", []edit{{"approval.rego", "	every vote in input.state.approval.votes { vote.decision == \"approved\" }\n", ""}}},
	{"somebody other than the actor (14)", "people approve their own calls", []edit{{"approval.rego", "	_independent(vote)\n", ""}}},
	{"a reason (14)", "votes without the reason that is wanted count", []edit{{"approval.rego", "	_reasoned(vote)\n", ""}}},
	{"the granted lifetime (14)", "a vote grants more than the terms allow", []edit{{"approval.rego", "	object.get(vote, \"lifetime\", 0) <= object.get(_terms, \"lifetime\", 10)\n", ""}}},
	{"calls that wait (14)", "a task fills the queue of the people who review", []edit{{"approval.rego", "	input.state.pending.count < input.state.pending.limit\n", ""}}},
	{"a used approval without its operation (14)", "a damaged state asks again as if nothing were wrong", []edit{{"decision.rego", "else := invalid_state if _approval == \"spent\" # 14\n\n", ""}}},
	{"room for the target (15)", "a write overwrites", row("else := target_exists if not _room_for_target # 15", "decision.rego", "	_approved\n	_room_for_target\n}\n\nelse", "	_approved\n}\n\nelse")},
	{"the mode (16)", "a dry run changes something", []edit{{"decision.rego", "	_permitted\n	_effects_wanted\n", "	_permitted\n"}}},
	{"an unknown mode (16)", "a mode that nobody knows is taken for the real one", []edit{{"mode.rego", "_effects_wanted if input.mode == \"enforce\"", "_effects_wanted if input.mode != \"dry_run\""}}},
	{"the gate's list", "the gate lets every name through", []edit{{"gate.rego", "	input.gate.name in input.gate.allowed\n", ""}}},
	{"the gate's confirmation", "the gate lets writes through that nobody confirmed", []edit{{"gate.rego", "	not input.gate.name in input.gate.writes\n", ""}}},
}

// takeOut removes a guard from the policy.
func takeOut(t *testing.T, g guard) Source {
	t.Helper()
	s := shippedSource(t)
	for _, e := range g.edits {
		done := false
		for i, f := range s.modules {
			if path.Base(f.name) == e.file && strings.Contains(f.text, e.from) {
				s.modules[i].text = strings.Replace(f.text, e.from, e.to, 1)
				done = true
			}
		}
		require.True(t, done, "%s: %s has no %q any more; say what stands for the guard now", g.name, e.file, e.from)
	}
	return s
}

var errUnseen = errors.New("no Rego test fails without it")

// seenBy names the first Rego test that notices that a guard is gone.
func seenBy(t *testing.T, s Source) (string, error) {
	t.Helper()
	results, err := Test(t.Context(), s)
	require.NoError(t, err)
	for _, r := range results {
		if !r.Passed && !r.Skipped {
			return r.Name, nil
		}
	}
	return "", errUnseen
}

// Each guard is taken out once, and some Rego test must fail without it. docs/policy.md says which.
func TestEveryGuardIsSeen(t *testing.T) {
	seen := make([]string, len(guards))
	t.Run("taken out", func(t *testing.T) {
		for i, g := range guards {
			t.Run(g.name, func(t *testing.T) {
				var err error
				seen[i], err = seenBy(t, takeOut(t, g))
				assert.NoError(t, err)
			})
		}
	})
	var b strings.Builder
	b.WriteString("| guard (row) | without it | seen by |\n|---|---|---|\n")
	for i, g := range guards {
		fmt.Fprintf(&b, "| %s | %s | `%s` |\n", g.name, g.breaks, seen[i])
	}
	document, err := os.ReadFile(policyDocument)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(document), tableBegins)
	require.True(t, ok)
	have, after, ok := strings.Cut(rest, tableEnds)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(policyDocument, []byte(before+tableBegins+b.String()+tableEnds+after), 0o644))
		return
	}
	assert.Equal(t, b.String(), have, "stale; run make generate")
}

const (
	policyDocument = "../../docs/policy.md"
	tableBegins    = "<!-- generated: guards -->\n"
	tableEnds      = "<!-- end -->\n"
)

// The test above can fail: what no test sees is reported.
func TestGuardThatNobodySees(t *testing.T) {
	_, err := seenBy(t, shippedSource(t))
	require.ErrorIs(t, err, errUnseen)
	_, err = seenBy(t, takeOut(t, guard{"a comment", "nothing", []edit{{"decision.rego", "# Everything but the mode says that the call may run.\n", ""}}}))
	require.ErrorIs(t, err, errUnseen)
}
