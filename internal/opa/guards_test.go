package opa

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
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
	{"a layer's malformed rule (before 9)", "a rule that somebody wrote says nothing", row("else := policy_malformed if not _layers_sound", "decision.rego", "	_layers_sound\n", "")},
	{"what a layer forbids (9)", "the organisation and the site cannot forbid", row("else := forbidden if not _unforbidden # 9", "decision.rego", "	_unforbidden\n", "")},
	{"members that forbid and deny (9, 12)", "a refusal without its status or its code is taken", []edit{{"layers.rego", "	object.keys(member) == {\"code\", \"message\", \"status\"}\n", ""}}},
	{"statuses of a refusal (9, 12)", "a refusal is taken that says ok", []edit{{"layers.rego", "	not member.status in _not_of_denials\n", ""}}},
	{"members that ask (14)", "a demand is taken whose terms nobody knows", []edit{{"layers.rego", "	every name, value in terms { _term(name, value) }\n", "	count(terms) >= 0\n"}}},
	{"sets (9, 12, 14)", "a rule of the wrong shape says nothing", []edit{{"layers.rego", "	not _collection(members)\n", "	false\n	not _collection(members)\n"}}},
	{"another call under a used key (10, 11)", "the agent is not told that its key is taken", []edit{{"decision.rego", "else := idempotency_conflict if _taken # 10 and 11\n\n", ""}}},
	{"a key that is used (10, 11)", "a key of which nothing took place stays taken", []edit{{"operation.rego", "	input.state.operation.state in {\"committed\", \"started\", \"unknown\"}\n	input.state.operation.same_signature == false\n", "	input.state.operation.same_signature == false\n"}}},
	{"a committed operation (10)", "what was done is done again", []edit{{"operation.rego", "_fresh if {\n	_untried\n", "_fresh if {\n"}}},
	{"the same call (10)", "another call gets the saved result", []edit{
		{"decision.rego", "else := idempotency_conflict if _taken # 10 and 11\n\n", ""},
		{"operation.rego", "	input.state.operation.state == \"committed\"\n	input.state.operation.same_signature == true\n", "	input.state.operation.state == \"committed\"\n"}}},
	{"a committed operation, of a replay (10)", "what is not known to be done is answered as if it were", []edit{
		{"operation.rego", "	_permitted\n	input.state.operation.state == \"committed\"\n", "	_permitted\n"}}},
	{"authority, of a replay (10)", "a saved result is told of which a fact about its authority is missing", []edit{
		{"operation.rego", "	_permitted\n	input.state.operation.state == \"committed\"\n", "	input.state.operation.state == \"committed\"\n"}}},
	{"an operation that has not ended (11)", "the agent is not told to wait", []edit{{"operation.rego", "_under_way if input.state.operation.state == \"started\"\n\n", ""}}},
	{"the same effect, under way (11)", "the agent is not told to wait", []edit{{"operation.rego", "_under_way if input.state.unsettled == \"started\"\n\n", ""}}},
	{"another write, under way (11)", "the agent is not told to wait", []edit{{"operation.rego", "_under_way if {\n	input.state.write_started == true\n", "_under_way if {\n	false\n"}}},
	{"an effect that nobody knows (11)", "what may change something does not wait for a write", []edit{
		{"operation.rego", "	not input.tool.effect in {\"pure\", \"read\"}\n", "	input.tool.effect == \"write\"\n"}}},
	{"an operation whose outcome is not known (11)", "the agent is not told that its call may have taken place", []edit{{"operation.rego", "_unclear if {\n	input.state.operation != null\n", "_unclear if {\n	false\n"}}},
	{"the same effect, not known (11)", "the agent is not told that its effect may have taken place", []edit{{"operation.rego", "_unclear if input.state.unsettled != null\n\n", ""}}},
	{"no other operation of the effect (11)", "an effect is done again under another key", []edit{{"operation.rego", "	_untried\n	is_null(input.state.unsettled)\n", "	_untried\n"}}},
	{"one write at a time (11)", "a write begins while another is under way", []edit{{"operation.rego", "	is_null(input.state.unsettled)\n	_alone\n", "	is_null(input.state.unsettled)\n"}}},
	{"an absent operation alone (11)", "a word that nobody knows is taken for absent", []edit{{"operation.rego", "_absent if input.state.operation.state == \"absent\"", "_absent if not input.state.operation.state in {\"started\", \"unknown\", \"committed\"}"}}},
	{"open operations, before a person is asked (11)", "people review what must wait for another call", []edit{{"approval.rego", "	_permitted\n	_fresh\n", "	_permitted\n"}}},
	{"open operations, in a dry run (11)", "a dry run promises what must wait for another call", []edit{{"decision.rego", "	not _effects_wanted\n	_fresh\n", "	not _effects_wanted\n"}}},
	{"authority, of a repetition (11)", "a call is repeated of which a fact about its authority is missing", []edit{{"operation.rego", "	_permitted\n	input.mode == \"enforce\"\n", "	input.mode == \"enforce\"\n"}}},
	{"the mode, of a repetition (11)", "a dry run calls a tool outside", []edit{{"operation.rego", "	input.mode == \"enforce\"\n	input.tool.effect == \"write\"\n", "	input.tool.effect == \"write\"\n"}}},
	{"a write, of a repetition (11)", "a read is repeated as if it were a write", []edit{{"operation.rego", "	input.tool.effect == \"write\"\n	input.tool.outside == true\n", "	input.tool.outside == true\n"}}},
	{"a tool outside, of a repetition (11)", "a tool in this process is called again", []edit{{"operation.rego", "	input.tool.outside == true\n", ""}}},
	{"an operation that is not known, of a repetition (11)", "what is under way is called again", []edit{{"operation.rego", "	input.state.operation.state == \"unknown\"\n", ""}}},
	{"the same call, of a repetition (11)", "another call runs under the key", []edit{{"operation.rego", "	input.state.operation.same_signature == true\n	input.state.operation.repeatable == true\n", "	input.state.operation.repeatable == true\n"}}},
	{"a tool that remembers, of a repetition (11)", "a tool does twice what it has forgotten", []edit{{"operation.rego", "	input.state.operation.repeatable == true\n", ""}}},
	{"no other operation of the effect, of a repetition (11)", "an effect is repeated that another key may have brought about", []edit{{"operation.rego", "	is_null(input.state.unsettled)\n	input.state.write_started == false\n", "	input.state.write_started == false\n"}}},
	{"one write at a time, of a repetition (11)", "a write is repeated while another is under way", []edit{{"operation.rego", "	is_null(input.state.unsettled)\n	input.state.write_started == false\n", "	is_null(input.state.unsettled)\n"}}},
	{"what is spent, of a repetition (11, 13)", "a call is repeated that the budgets do not pay for", []edit{
		{"decision.rego", "	_resumable\n	_affordable\n", "	_resumable\n"}}},
	{"budgets, of a repetition (11, 13)", "the agent is not told that its budget is spent", []edit{
		{"decision.rego", "else := budget_spent if { # 11, of a call to resume\n	_resumable\n	count(_overspent) > 0\n}\n\n", ""}}},
	{"what a layer denies (12)", "the organisation and the site cannot set a condition", append(row("else := denied if not _undenied # 12", "decision.rego", "	_undenied\n	_affordable\n	_approved\n	_room_for_target\n}\n\nelse", "	_affordable\n	_approved\n	_room_for_target\n}\n\nelse"),
		edit{"approval.rego", "	_undenied\n", ""})},
	{"budgets (13)", "a task spends more than its budgets", row("else := budget_spent if count(_overspent) > 0 # 13", "decision.rego", "	_affordable\n	_approved\n	_room_for_target\n}\n\nelse", "	_approved\n	_room_for_target\n}\n\nelse")},
	{"the budget of cost (13)", "the cost of tools counts for nothing", []edit{{"budget.rego", "(budget.spent + budget.reserved) + input.tool.cost <= budget.limit", "budget.spent + budget.reserved <= budget.limit"}}},
	{"the budget of attempts (13)", "one run too many", []edit{{"budget.rego", "(budget.spent + budget.reserved) + 1 <= budget.limit", "budget.spent + budget.reserved <= budget.limit"}}},
	{"the budget of output (13)", "a run after the last byte is spent", []edit{{"budget.rego", "budget.spent + budget.reserved < budget.limit", "budget.spent + budget.reserved <= budget.limit"}}},
	{"what is reserved, of cost (13)", "calls under way spend the same cost twice", []edit{{"budget.rego", "(budget.spent + budget.reserved) + input.tool.cost", "budget.spent + input.tool.cost"}}},
	{"what is reserved, of attempts (13)", "calls under way spend the same attempt twice", []edit{{"budget.rego", "(budget.spent + budget.reserved) + 1", "budget.spent + 1"}}},
	{"what is reserved, of output (13)", "calls under way give more than the budget", []edit{{"budget.rego", "budget.spent + budget.reserved < budget.limit", "budget.spent < budget.limit"}}},
	{"what is spent (13)", "a run for which nobody can say what is left", []edit{{"budget.rego", "	is_object(input.state.budgets)\n", ""}}},
	{"what is spent, before a person is asked (13)", "people review what perhaps nothing can pay for", []edit{{"approval.rego", "	_affordable\n", ""}}},
	{"what is spent, in a dry run (13)", "a dry run promises what perhaps nothing can pay for", []edit{
		{"decision.rego", "	not _effects_wanted\n	_fresh\n	_undenied\n	_affordable\n", "	not _effects_wanted\n	_fresh\n	_undenied\n"}}},
	{"approval (14)", "a write runs without a person", []edit{{"decision.rego", "	_affordable\n	_approved\n	_room_for_target\n}\n\nelse", "	_affordable\n	_room_for_target\n}\n\nelse"}}},
	{"a rejection that nobody asked for (14)", "a rejected call runs as soon as no rule asks for a person", []edit{{"approval.rego", "	_unasked\n	_unrejected\n", "	_unasked\n"}}},
	{"a layer that asks (14)", "a tool that goes by rule runs without the person that a layer asks for", []edit{{"approval.rego", "	input.tool.approval == \"by_rule\"\n	_unasked\n", "	input.tool.approval == \"by_rule\"\n"}}},
	{"the state of the approval (14)", "a call runs that is only pending", []edit{{"approval.rego", "_approval_given if {\n	input.state.approval.state == \"approved\"\n", "_approval_given if {\n"}}},
	{"a rejection (14)", "a rejected call is asked for again", []edit{{"approval.rego", "else := \"rejected\" if input.state.approval.state == \"rejected\"\n\n", ""}}},
	{"lifetime in steps (14)", "an approval lives on after its last step", []edit{
		{"approval.rego", "	input.state.step <= input.state.approval.expires_at_step\n", ""},
		{"approval.rego", "	input.state.step > input.state.approval.expires_at_step\n", "	false\n"}}},
	{"lifetime in time (14)", "an approval lives on after its time", []edit{
		{"approval.rego", "	input.now.epoch <= input.state.approval.expires_at.epoch\n", ""},
		{"approval.rego", "	input.now.epoch > input.state.approval.expires_at.epoch\n", "	false\n"}}},
	{"number of approvers (14)", "one vote is enough where two are wanted", []edit{{"approval.rego", "max({1, object.get(_demanded, \"approvers\", 1)})", "1"}}},
	{"at least one approver (14)", "no vote is enough", []edit{{"approval.rego", "max({1, object.get(_demanded, \"approvers\", 1)})", "object.get(_demanded, \"approvers\", 0)"}}},
	{"distinct people (14)", "one person votes twice", []edit{{"votes.rego", "_approving := {vote.reviewer | some vote in input.state.approval.votes; _counts(vote)} if", "_approving := [vote.reviewer | some vote in input.state.approval.votes; _counts(vote)] if"}}},
	{"no vote against (14)", "a rejection among the votes is outvoted", []edit{{"approval.rego", "	every vote in input.state.approval.votes { vote.decision == \"approved\" }\n", ""}}},
	{"somebody other than the actor (14)", "people approve their own calls", []edit{{"votes.rego", "	_independent(vote)\n", ""}}},
	{"a reason (14)", "votes without the reason that is wanted count", []edit{{"votes.rego", "	_reasoned(vote)\n", ""}}},
	{"the granted lifetime (14)", "a vote grants more than the terms allow", []edit{{"votes.rego", "	object.get(vote, \"lifetime\", 0) <= object.get(_demanded, \"lifetime\", 10)\n", ""}}},
	{"roles (14)", "anybody approves what only some may", []edit{{"votes.rego", "	_entitled(vote, _demanded)\n", ""}}},
	{"roles of a stage (14)", "anybody speaks in a stage of others", []edit{{"votes.rego", "	_entitled(vote, stage)\n", ""}}},
	{"every stage (14)", "a stage is left out", []edit{{"approval.rego", "	_stages_complete\n", ""}}},
	{"the order of stages (14)", "the last stage speaks before the first", []edit{
		{"votes.rego", "; i >= from}", "; i + from >= 0}"}, {"votes.rego", "j >= from; ", "j + from >= 0; "}}},
	{"people of a stage (14)", "one vote is enough for a stage of two", []edit{{"votes.rego", "max({1, object.get(_demanded.stages[stage], \"approvers\", 1)})", "1"}}},
	{"distinct people of a stage (14)", "one person votes twice in a stage", []edit{{"votes.rego", "people := {input.state.approval.votes[j].reviewer | some j in _fitting[stage]; j >= from; j <= i}", "people := [input.state.approval.votes[j].reviewer | some j in _fitting[stage]; j >= from; j <= i]"}}},
	{"the terms of the layers (14)", "a layer's terms are passed over", []edit{{"terms.rego", "some member in _asking; member.approval", "some member in array.slice(_asking, 0, 0); member.approval"}}},
	{"the core's terms (14)", "a layer lowers the terms", []edit{{"terms.rego", "array.concat([_terms], [", "array.concat([], ["}}},
	{"the form of the core's terms (14)", "a layer takes away a term of the core that is misspelt", []edit{{"layers.rego", "	some name, value in _terms\n	not _term(name, value)\n", "	some name, value in _terms\n	not name\n	not _term(name, value)\n"}}},
	{"most approvers (14)", "the fewest approvers are enough", []edit{{"terms.rego", "_strictest[\"approvers\"] := max({1} | {n", "_strictest[\"approvers\"] := min({10} | {n"}}},
	{"shortest lifetime (14)", "the longest lifetime holds", []edit{{"terms.rego", "_strictest[\"lifetime\"] := min({10} | {n", "_strictest[\"lifetime\"] := max({1} | {n"}}},
	{"shortest time limit (14)", "the longest time limit holds", []edit{{"terms.rego", "	least := min({time", "	least := max({time"}}},
	{"flags of any layer (14)", "what one layer wants is not asked for", []edit{{"terms.rego", "	some terms in _stated\n	terms[name] == true\n", "	object.get(_terms, name, false) == true\n"}}},
	{"roles in common (14)", "a role of one layer is enough", []edit{{"terms.rego", "_common(demands) := sort(intersection(", "_common(demands) := sort(union("}}},
	{"a role that is left (14)", "people are asked who cannot approve", []edit{{"approval.rego", "else := \"impossible\" if _out_of_reach\n\n", ""}}},
	{"stages of every layer (14)", "a layer's stage is left out", []edit{{"terms.rego", "_stage_parts := [stage | some terms in _stated; ", "_stage_parts := [stage | some terms in array.slice(_stated, 0, 1); "}}},
	{"one stage, stated twice (14)", "the easier statement of a stage holds", []edit{{"terms.rego", "	parts := [part | some part in _stage_parts; part.name == name]\n", "	parts := array.slice([part | some part in array.reverse(_stage_parts); part.name == name], 0, 1)\n"}}},
	{"calls that wait (14)", "a task fills the queue of the people who review", []edit{{"approval.rego", "	input.state.pending.count < input.state.pending.limit\n", ""}}},
	{"a used approval without its operation (14)", "a damaged state asks again as if nothing were wrong", []edit{{"decision.rego", "else := invalid_state if _approval == \"spent\" # 14\n\n", ""}}},
	{"a used approval whose operation is absent (14)", "a call whose effect did not take place can never be asked for again", []edit{{"approval.rego", "	input.call.keyed == true\n	input.state.operation.state == \"absent\"\n", "	input.call.keyed == true\n	false\n"}}},
	{"a used approval with a key (14)", "a call with a key is asked for again as if it had none", []edit{{"approval.rego", "	input.state.approval.state == \"consumed\"\n	input.call.keyed == false\n", "	input.state.approval.state == \"consumed\"\n"}}},
	{"room for the target (15)", "a write overwrites", row("else := target_exists if not _room_for_target # 15", "decision.rego", "	_approved\n	_room_for_target\n}\n\nelse", "	_approved\n}\n\nelse")},
	{"the mode (16)", "a dry run changes something", []edit{{"decision.rego", "	_permitted\n	_effects_wanted\n", "	_permitted\n"}}},
	{"what reaches outside (16)", "a dry run calls a tool outside", []edit{{"mode.rego", "	input.tool.outside == false\n", ""}}},
	{"what does not say that it stays inside (16)", "a dry run calls a tool that may be outside", []edit{{"mode.rego", "input.tool.outside == false", "input.tool.outside != true"}}},
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

// passed holds what the Rego tests of a source give: of each test, in order, its value, which for one with cases has a
// member for each case that passes. The runner of tests would take ten times as long for the same.
type passed struct {
	names  []string
	values map[string]ast.Value
}

func testsPassed(t *testing.T, s Source) passed {
	t.Helper()
	modules, err := parse(append(slices.Clone(s.modules), s.tests...))
	require.NoError(t, err)
	c := newCompiler()
	c.Compile(modules)
	require.False(t, c.Failed(), c.Errors)
	store, err := newStore(s.data.clone().root)
	require.NoError(t, err)
	out := passed{values: map[string]ast.Value{}}
	for _, rule := range rulesInOrder(slices.Collect(maps.Values(c.Modules))) {
		name := rule.Head.Ref()[0].Value.String()
		if !strings.HasPrefix(name, "test_") || slices.Contains(out.names, name) {
			continue
		}
		out.names = append(out.names, name)
		query, err := newQuestion(t.Context(), c, store, "data.policy_test."+name)
		require.NoError(t, err)
		value, err := query.answer(t.Context(), ast.NewObject(), topdown.NewCancel())
		if err != nil {
			continue // it passes nothing
		}
		out.values[name] = value
	}
	return out
}

// seenBy names the first Rego test that passes less than it does with the guard.
func seenBy(whole, without passed) (string, error) {
	for _, name := range whole.names {
		if less(whole.values[name], without.values[name]) {
			return name, nil
		}
	}
	return "", errUnseen
}

func less(whole, without ast.Value) bool {
	cases, ok := whole.(ast.Object)
	if !ok {
		return without == nil || whole.Compare(without) != 0
	}
	left, ok := without.(ast.Object)
	if !ok {
		return true
	}
	return cases.Until(func(name, _ *ast.Term) bool { return left.Get(name) == nil })
}

// Each guard is taken out once, and some Rego test must fail without it. docs/policy.md says which.
func TestEveryGuardIsSeen(t *testing.T) {
	whole := testsPassed(t, shippedSource(t))
	seen := make([]string, len(guards))
	t.Run("taken out", func(t *testing.T) {
		for i, g := range guards {
			t.Run(g.name, func(t *testing.T) {
				var err error
				seen[i], err = seenBy(whole, testsPassed(t, takeOut(t, g)))
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
	whole := testsPassed(t, shippedSource(t))
	require.Equal(t, len(whole.names), len(whole.values), "every test passes something")
	comment := guard{"a comment", "nothing", []edit{{"decision.rego", "# Everything but the mode says that the call may run.\n", ""}}}
	_, err := seenBy(whole, testsPassed(t, takeOut(t, comment)))
	require.ErrorIs(t, err, errUnseen)
}
