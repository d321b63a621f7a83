package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// askedFor is what review list says of the one approval that there is.
type askedFor struct {
	ID        string                 `json:"id"`
	Signature string                 `json:"signature"`
	State     dispatch.ApprovalState `json:"state"`
	Votes     []dispatch.Vote        `json:"votes"`
}

func (h home) askedFor() askedFor {
	h.t.Helper()
	a := h.govern("review", "list", "--all", "--format", "json")
	require.Zero(h.t, a.code, a.stderr)
	var out askedFor
	require.NoError(h.t, json.Unmarshal([]byte(a.stdout), &out))
	return out
}

// B047: whoever a call is proposed for cannot approve it, on whatever path of the command line; and can say no to it.
func TestB047OwnCallOnTheCommandLine(t *testing.T) {
	h := newHome(t)
	h.terms(`"distinct_from_actor": true`, "")
	h.write("config.yaml", strings.ReplaceAll(roomy, "actor: learner", fmt.Sprintf("actor: %q", operator()))+"policy: [policy]\n")
	waits := func() askedFor {
		t.Helper()
		require.Equal(t, exitWaiting, h.govern("run", "draft.json").code)
		a := h.askedFor()
		require.Equal(t, dispatch.Pending, a.State)
		return a
	}
	refused := func(args ...string) {
		t.Helper()
		a := h.govern(args...)
		require.Equal(t, exitDenied, a.code, a.stdout+a.stderr)
		require.Contains(t, a.stderr, "needs somebody other than the actor")
		require.Empty(t, h.askedFor().Votes)
	}
	a := waits()
	byID := []string{"review", "approve", a.ID, "--signature", a.Signature}
	byCall := []string{"review", "approve", "--proposal", "draft.json"}
	refused(byID...)
	refused(byCall...)

	no := h.govern("review", "reject", a.ID, "--signature", a.Signature, "--reason", "not mine to ask")
	require.Zero(t, no.code, no.stderr)
	require.Equal(t, exitDenied, h.govern("run", "draft.json").code)
	rejected := h.askedFor()
	require.Equal(t, dispatch.Rejected, rejected.State)
	require.Len(t, rejected.Votes, 1)
	require.Equal(t, operator(), rejected.Votes[0].Reviewer)

	reopened := h.govern("review", "reopen", a.ID, "--signature", a.Signature)
	require.Zero(t, reopened.code, reopened.stderr)
	waits()
	refused(byID...)
	refused(byCall...)
	require.Equal(t, exitWaiting, h.govern("run", "draft.json").code)
	state := h.open(t)
	require.Equal(t, 1, state.count[dispatch.KindReview], "only the rejection is on record")
	require.Equal(t, 1, state.count[dispatch.KindReopen])
	require.Zero(t, state.count[dispatch.KindAction])
}

// The roles of a reviewer come from the configuration, by the name that votes record. show says who is wanted.
func TestRolesOnTheCommandLine(t *testing.T) {
	h := newHome(t)
	h.terms(`"roles": ["lead", "owner"], "stages": [{"name": "team", "roles": ["member"]}, {"name": "legal"}]`, "")
	with := func(roles string) {
		h.write("config.yaml", roomy+"policy: [policy]\nreviewers:\n  "+ijsonString(t, operator())+": {roles: "+roles+"}\n")
	}
	with("[]")
	require.Equal(t, exitWaiting, h.govern("run", "draft.json").code)
	a := h.askedFor()
	approve := []string{"review", "approve", a.ID, "--signature", a.Signature}
	for _, row := range []struct{ roles, want string }{
		{"[]", "this approval needs a reviewer with the role lead or owner"},
		{"[Lead]", "the role lead or owner"},
		{"[lead]", `the stage "team" of this approval needs a reviewer with the role member`},
	} {
		with(row.roles)
		got := h.govern(approve...)
		require.Equal(t, exitDenied, got.code, got.stderr)
		require.Contains(t, got.stderr, row.want)
		require.Empty(t, h.askedFor().Votes)
	}
	show := h.govern("review", "show", a.ID)
	for _, line := range []string{"needs       2 approvers, each with the role lead or owner\n", "stage       team: 0 of 1, with the role member (waits now)\n",
		"stage       legal: 0 of 1\n", "may vote    who has the role lead or owner, and also member; any reviewer may reject\n"} {
		assert.Contains(t, show.stdout, line)
	}
	assert.Contains(t, h.govern("review", "list").stdout, "  team 0 of 1  ")

	with("[member, lead]")
	got := h.govern(approve...)
	require.Zero(t, got.code, got.stderr)
	vote := h.askedFor().Votes[0]
	assert.Equal(t, []string{"lead", "member"}, vote.Roles)
	assert.Equal(t, "team", vote.Stage)
	show = h.govern("review", "show", a.ID)
	assert.Contains(t, show.stdout, fmt.Sprintf("vote        approved by %s (lead, member), stage team, at ", operator()))
	assert.Contains(t, show.stdout, fmt.Sprintf("may vote    who has the role lead or owner; not %s; any reviewer may reject\n", operator()))
	result := h.govern("run", "draft.json")
	assert.Contains(t, result.stdout, `"votes":1,"needed":2,"roles":["lead","owner"],"stages":[{"name":"team","votes":1,"needed":1,"roles":["member"]},{"name":"legal","votes":0,"needed":1}],"stage":"legal"}`)
}

// In a scenario a reviewer has the configured roles, or those that the step says.
func TestRolesInAScenario(t *testing.T) {
	h := newHome(t)
	h.terms(`"approvers": 2, "roles": ["lead"]`, "")
	h.write("config.yaml", roomy+"policy: [policy]\nreviewers: {maya: {roles: [lead]}, sam: {}}\n")
	h.write("roles.yaml", `
name: who holds the role approves
task: {id: labels-1}
steps:
  - propose: `+draft("d1")+`
    expect: {status: approval_required, approval: {votes: 0, needed: 2, roles: [lead]}}
  - review: {proposal: `+draft("d1")+`, decision: approved, reviewer: sam}
    expect: {reviewed: false}
  - review: {proposal: `+draft("d1")+`, decision: approved, reviewer: maya, roles: []}
    expect: {reviewed: false}
  - review: {proposal: `+draft("d1")+`, decision: approved, reviewer: maya}
    expect: {reviewed: true}
  - review: {proposal: `+draft("d1")+`, decision: approved, reviewer: sam, roles: [lead, owner]}
    expect: {reviewed: true}
  - propose: `+draft("d1")+`
    expect: {status: ok}
`)
	a := h.govern("scenario", "run", "roles.yaml")
	require.Zero(t, a.code, a.stdout+a.stderr)
}

func ijsonString(t *testing.T, s string) string {
	t.Helper()
	b, err := ijson.Marshal(s)
	require.NoError(t, err)
	return string(b)
}

// layeredLab is a lab whose site adds members to one of its sets.
func layeredLab(t *testing.T, set, members string) *lab {
	t.Helper()
	dir := t.TempDir()
	rules := fmt.Sprintf(`package site

# METADATA
# title: What the data says
# custom:
#   code: by_the_data
#   message: the data says so
#   remedy: Change the data.
%s contains member if some member in data.site.members
`, set)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "site.rego"), []byte(rules), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data.json"), []byte(`{"site": {"members": `+members+`}}`), 0o600))
	return newLab(t, func(c *config.Config) { c.Site = []string{dir} })
}

// A tool that goes by rule waits where a layer asks for people, and its run uses the approval up.
func TestALayersApprovalIsUsedOnce(t *testing.T) {
	l := layeredLab(t, "require_approval", `[{"code": "counted", "message": "somebody counts along",
		"approval": {"approvers": 2, "stages": [{"name": "count", "roles": ["counter"]}, {"name": "audit"}]}}]`)
	vote := func(reviewer string, roles ...string) error {
		_, err := l.dispatcher.ReviewCall(context.Background(), l.who, l.task, dispatch.Enforce, []byte(add("m1")),
			dispatch.Review{Reviewer: reviewer, Roles: roles, Decision: "approved"})
		return err
	}
	r := l.propose(add("m1"))
	require.Equal(t, dispatch.StatusApprovalRequired, r.Status)
	assert.Equal(t, []dispatch.Reason{{Code: "counted", Message: "somebody counts along"}}, r.Reasons)
	assert.Equal(t, 2, r.Approval.Needed)
	require.ErrorIs(t, vote("maya"), dispatch.ErrReviewRole)
	require.NoError(t, vote("maya", "counter"))
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(add("m1")).Status)
	require.NoError(t, vote("sam"))
	require.Equal(t, dispatch.StatusOK, l.propose(add("m1")).Status)
	require.Equal(t, dispatch.StatusApprovalRequired, l.propose(add("m1")).Status, "a second run asks anew")
	approvals, err := l.store.Approvals(t.Context(), l.who.Tenant, "", dispatch.Consumed)
	require.NoError(t, err)
	require.Len(t, approvals, 1)
	assert.Equal(t, "count", approvals[0].Votes[0].Stage)
	want, got := fromStore(t, l.store, l.who.Tenant), fromEntries(t, l.entries())
	assert.Equal(t, want, got, "roles and stages are in the entries too")
}

// A layer that says what nobody understands stops everything that it is asked about, and the record says why.
func TestAMalformedLayerIsOnRecord(t *testing.T) {
	l := layeredLab(t, "deny", `[{"code": "closed", "message": "closed at night"}]`)
	r := l.propose(add("m1"))
	require.Equal(t, dispatch.StatusPolicyError, r.Status)
	assert.Equal(t, exitBroken, statusCode(r))
	assert.NotEmpty(t, l.remedy(r))
	var e dispatch.DecisionEntry
	entries := l.entries()
	require.NoError(t, ijson.Unmarshal(entries[len(entries)-1].Body, &e))
	assert.Contains(t, e.Detail, "data.site.deny, closed: ")
}

// Easing the terms completes nothing by itself. People are told that the votes suffice, and a voter's next word completes.
func TestEasedTermsSayWhoCompletes(t *testing.T) {
	a := dispatch.Approval{Actor: "learner", State: dispatch.Pending,
		Terms: dispatch.Terms{Approvers: 2, Stages: []dispatch.Stage{{Name: "legal", Roles: []string{"counsel"}}}},
		Votes: []dispatch.Vote{{Reviewer: "maya", Roles: []string{"counsel"}, Decision: "approved", Lifetime: 3, Stage: "legal"}}}
	assert.Equal(t, "who has the role counsel; not maya; any reviewer may reject", mayVote(a))
	a.Terms.Approvers = 1
	assert.Equal(t, "the votes meet the terms as they are now: whoever voted approves once more, and that completes it", mayVote(a))
	a.Votes[0].Stage = "another"
	assert.Equal(t, "who has the role counsel; any reviewer may reject", mayVote(a))
}
