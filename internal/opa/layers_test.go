package opa

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// under adds what the organisation and the site say, given as data: {"site": {"deny": […]}}.
func under(s Source, layers map[string]any) Source {
	s.data = s.data.clone()
	for name, sets := range layers {
		s.data.root[name] = sets
	}
	return s
}

// layered is the shipped policy under layers.
func layered(tb testing.TB, layers map[string]any) *Policy {
	tb.Helper()
	p, err := New(tb.Context(), Options{Source: under(shippedSource(tb), layers), Profiles: labProfiles})
	require.NoError(tb, err)
	return p
}

func site(set string, members ...any) map[string]any {
	return map[string]any{"site": map[string]any{set: members}}
}

func judged(tb testing.TB, p *Policy, input ijson.Raw) dispatch.Decision {
	tb.Helper()
	d, err := dispatch.Judge(tb.Context(), p, p.Version(), input)
	require.NoError(tb, err)
	return d
}

// What layers say stands up to the guards in Go.
func TestLayersDecide(t *testing.T) {
	closed := map[string]any{"code": "closed", "message": "closed at night", "status": "outside_window"}
	for name, c := range map[string]struct {
		layers map[string]any
		input  string
		want   dispatch.Decision
	}{
		"forbid": {site("forbid", closed), "allow_read", dispatch.Decision{Effect: dispatch.Deny, Status: "outside_window",
			Reasons: []dispatch.Reason{{Code: "closed", Message: "closed at night"}}}},
		"deny": {site("deny", closed), "allow_draft", dispatch.Decision{Effect: dispatch.Deny, Status: "outside_window",
			Reasons: []dispatch.Reason{{Code: "closed", Message: "closed at night"}}}},
		"the core's denial stands": {site("deny", closed), "cancelled", dispatch.Decision{Effect: dispatch.Deny, Status: "cancelled",
			Reasons: []dispatch.Reason{{Code: "cancelled", Message: "the task was cancelled"}}}},
		"a person, with terms": {site("require_approval", map[string]any{"code": "eyes", "message": "look", "approval": map[string]any{"approvers": 2, "ttl": "1h",
			"roles": []any{"owner", "lead"}, "stages": []any{map[string]any{"name": "legal", "roles": []any{"counsel"}}}}}), "allow_read",
			dispatch.Decision{Effect: dispatch.RequireApproval, Status: "approval_required", Reasons: []dispatch.Reason{{Code: "eyes", Message: "look"}},
				Approval: &dispatch.Terms{Approvers: 2, Lifetime: 10, TTL: "1h", Roles: []string{"lead", "owner"},
					Stages: []dispatch.Stage{{Name: "legal", Approvers: 1, Roles: []string{"counsel"}}}}}},
		"malformed": {site("deny", map[string]any{"code": "closed", "message": "closed at night"}), "allow_read",
			dispatch.Decision{Effect: dispatch.Deny, Status: dispatch.StatusPolicyError,
				Reasons: []dispatch.Reason{{Code: "policy_malformed", Message: "data.site.deny, closed: it must be exactly code, message and status, with a status that denies"}},
				Detail:  "policy_malformed: data.site.deny, closed: it must be exactly code, message and status, with a status that denies"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := layered(t, c.layers)
			c.want.PolicyVersion = p.Version()
			assert.Equal(t, c.want, judged(t, p, sample(t, c.input)))
		})
	}
}

// The policy refuses exactly those statuses of a layer that Go would refuse of a denial: neither list can grow alone.
func TestStatusesThatALayerCannotGive(t *testing.T) {
	text, err := os.ReadFile("../dispatch/decision.go")
	require.NoError(t, err)
	statuses := regexp.MustCompile(`(?m)^\tStatus\w+ +Status = "(\w+)"`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(statuses), 20)
	for _, m := range statuses {
		status := m[1]
		p := layered(t, site("deny", map[string]any{"code": "closed", "message": "m", "status": status}))
		d := judged(t, p, sample(t, "allow_read"))
		denial := `{"effect":"deny","status":"` + status + `","reasons":[],"policy_version":"v"}`
		inGo, err := dispatch.Judge(t.Context(), fixed(denial), "v", sample(t, "allow_read"))
		require.NoError(t, err)
		assert.Equal(t, inGo.Status, d.Status, status)
		if dispatch.CheckDenial(dispatch.Status(status)) != nil {
			assert.Contains(t, d.Detail, "data.site.deny, closed", "it is the policy that says so of %s", status)
		}
	}
}

// fixed is a policy that gives one answer.
type fixed string

func (f fixed) Decide(ctx context.Context, _ ijson.Raw) (ijson.Raw, error) {
	return ijson.Raw(f), ctx.Err()
}

// Whatever votes and terms there are: the policy finds an approval given exactly where Go does.
func TestVotesCountAlikeInGo(t *testing.T) {
	s := shippedSource(t)
	core := regexp.MustCompile(`(?s)\n_terms := \{\n.*?\n\}\n`)
	for i, f := range s.modules {
		if f.name == "approval.rego" {
			require.Regexp(t, core, f.text)
			s.modules[i].text = core.ReplaceAllLiteralString(f.text, "\n_terms := input.call.arguments.terms\n")
		}
	}
	p, err := New(t.Context(), Options{Source: s, Profiles: labProfiles})
	require.NoError(t, err)
	var draft map[string]any
	require.NoError(t, ijson.Unmarshal(sample(t, "allow_draft"), &draft))

	seen := map[dispatch.Status]int{}
	rapid.Check(t, func(t *rapid.T) {
		terms := anyTerms(t)
		draft["call"].(map[string]any)["arguments"] = map[string]any{"terms": terms}
		draft["state"].(map[string]any)["approval"].(map[string]any)["votes"] = anyVotes(t, terms)
		input, err := ijson.Marshal(draft)
		require.NoError(t, err)

		answer, err := ijson.Marshal(map[string]any{"effect": "allow", "status": "ok", "reasons": []any{}, "policy_version": "v", "approval": terms})
		require.NoError(t, err)
		inGo, err := dispatch.Judge(t.Context(), fixed(answer), "v", input)
		require.NoError(t, err)
		inRego, err := dispatch.Judge(t.Context(), p, p.Version(), input)
		require.NoError(t, err)
		require.Contains(t, []dispatch.Status{dispatch.StatusOK, dispatch.StatusApprovalRequired}, inRego.Status, "%s", inRego.Detail)
		require.Equal(t, inGo.Status == dispatch.StatusOK, inRego.Status == dispatch.StatusOK, "Go says %s %s: %s", inGo.Status, inGo.Detail, input)
		seen[inRego.Status]++
	})
	assert.Len(t, seen, 2, "some are given and some are not: %v", seen)
}

// The largest terms that there can be are judged well within the time that a decision has.
func TestManyStagesInTime(t *testing.T) {
	var stages, votes []any
	for s := range 10 {
		name := string(rune('a' + s))
		stages = append(stages, map[string]any{"name": name, "approvers": 10, "roles": []any{"lead"}})
		for v := range 10 {
			votes = append(votes, map[string]any{"reviewer": fmt.Sprint(name, v), "decision": "approved", "lifetime": 3, "time": "", "stage": name, "roles": []any{"lead"}})
		}
	}
	p := layered(t, site("require_approval", map[string]any{"code": "all", "message": "everybody", "approval": map[string]any{"stages": stages}}))
	var draft map[string]any
	require.NoError(t, ijson.Unmarshal(sample(t, "allow_draft"), &draft))
	draft["state"].(map[string]any)["approval"].(map[string]any)["votes"] = votes
	input, err := ijson.Marshal(draft)
	require.NoError(t, err)
	assert.Equal(t, dispatch.StatusOK, judged(t, p, input).Status)
}

// rarely is true in one of so many cases.
func rarely(t *rapid.T, n int, label string) bool { return rapid.IntRange(1, n).Draw(t, label) == n }

func anyTerms(t *rapid.T) dispatch.Terms {
	roles := func(label string) []string {
		return rapid.SampledFrom([][]string{nil, nil, nil, {"lead"}, {"lead", "owner"}}).Draw(t, label)
	}
	terms := dispatch.Terms{Approvers: rapid.IntRange(0, 3).Draw(t, "approvers"), Roles: roles("roles"),
		DistinctFromActor: rarely(t, 4, "distinct"), ReasonRequired: rarely(t, 8, "reasons")}
	if rarely(t, 4, "lifetimes") {
		terms.Lifetime = 2
	}
	for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "stages")] {
		terms.Stages = append(terms.Stages, dispatch.Stage{Name: name, Approvers: rapid.IntRange(0, 2).Draw(t, "of stage"), Roles: roles("roles of stage")})
	}
	return terms
}

// anyVotes are mostly those that a person would be let give, so that some of them are enough.
func anyVotes(t *rapid.T, terms dispatch.Terms) []dispatch.Vote {
	votes := []dispatch.Vote{}
	var stages []string
	for _, s := range terms.Stages {
		stages = append(stages, s.Name, s.Name)
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "votes") {
		v := dispatch.Vote{Reviewer: string(rune('p' + i)), Roles: []string{"lead", "owner"}, Decision: "approved", Lifetime: 2, Reason: "read it", Time: "2026-01-01T00:00:00Z"}
		if i < len(stages) {
			v.Stage = stages[i]
		}
		if rarely(t, 3, "another stage") {
			v.Stage = rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "stage")
		}
		if rarely(t, 5, "another reviewer") {
			v.Reviewer = rapid.SampledFrom([]string{"p", "q", "learner"}).Draw(t, "reviewer")
		}
		if rarely(t, 5, "other roles") {
			v.Roles = rapid.SampledFrom([][]string{nil, {"lead"}, {"owner"}, {"audit"}}).Draw(t, "held")
		}
		if rarely(t, 8, "another lifetime") {
			v.Lifetime = 3
		}
		if rarely(t, 8, "no reason") {
			v.Reason = ""
		}
		if rarely(t, 30, "against") {
			v.Decision = "rejected"
		}
		votes = append(votes, v)
	}
	return votes
}
