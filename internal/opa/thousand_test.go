package opa

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// A site with a thousand rules is answered in the time that any policy has: what applies, all of it and nothing else, under
// the strictest of the terms.
func TestThousandSiteRules(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("package site\n\n")
	for n := range 400 {
		fmt.Fprintf(&rules, "%sdeny contains {\"code\": \"denied_%[2]d\", \"message\": \"m\", \"status\": \"closed_%[2]d\"} if input.call.arguments.draft_id == \"closed-%[2]d\"\n\n",
			told(fmt.Sprintf("denied_%d", n)), n)
		fmt.Fprintf(&rules, "%srequire_approval contains {\"code\": \"asked_%[2]d\", \"message\": \"m\", \"approval\": {\"approvers\": %d, \"lifetime\": %d, \"ttl\": \"%dm\"}} if input.call.tool == \"record_draft\"\n\n",
			told(fmt.Sprintf("asked_%d", n)), n, 1+n%4, 3+n%7, 500+n)
	}
	for n := range 200 {
		fmt.Fprintf(&rules, "%sforbid contains {\"code\": \"never_%[2]d\", \"message\": \"m\", \"status\": \"closed\"} if input.now.epoch < %[2]d\n\n", told(fmt.Sprintf("never_%d", n)), n)
	}
	site, err := layer(t, Site, files{"site.rego": rules.String()})
	require.NoError(t, err)
	p, err := New(t.Context(), Options{Source: shippedSource(t).With(site), Profiles: labProfiles})
	require.NoError(t, err)

	judge := func(input ijson.Raw) dispatch.Decision {
		d, err := dispatch.Judge(t.Context(), p, p.Version(), input)
		require.NoError(t, err)
		return d
	}
	asked := judge(sample(t, "approval_required"))
	require.Equal(t, dispatch.RequireApproval, asked.Effect, asked.Detail)
	assert.Len(t, asked.Reasons, 401, "the tool's own, and each rule's")
	assert.Equal(t, &dispatch.Terms{Approvers: 4, Lifetime: 3, TTL: "500m"}, asked.Approval)

	closed := ijson.Raw(strings.Replace(string(sample(t, "approval_required")), `"draft_id":"labels-note"`, `"draft_id":"closed-399"`, 1))
	denied := judge(closed)
	assert.Equal(t, dispatch.Status("closed_399"), denied.Status)
	assert.Equal(t, []dispatch.Reason{{Code: "denied_399", Message: "m"}}, denied.Reasons)

	assert.Equal(t, dispatch.Allow, judge(sample(t, "allow_read")).Effect, "no rule is about it")
}
