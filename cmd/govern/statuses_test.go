package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

//go:generate go test . -run TestStatusesDocument -update

var update = flag.Bool("update", false, "write the generated documents anew")

const statusesFile = "../../docs/statuses.md"

// docs/statuses.md says what the policy's METADATA and the program's tables say.
func TestStatusesDocument(t *testing.T) {
	l := newLab(t)
	var b strings.Builder
	b.WriteString(`# Statuses

Generated from the METADATA of the policy and the tables of the command; ` + "`make generate`" + ` writes it anew.

Every dispatch answers with one status. The message is for the agent, the remedy for people.

## Given by the policy

In the order of the rules' files. The order in which they are asked stands in [policy.md](policy.md). What the organisation
or the site forbids or denies has the status, the code and the message of their rule.

| status | effect | retryable | exit code | message | remedy |
|---|---|---|---|---|---|
`)
	for _, o := range l.policy.Outcomes() {
		name := "`" + string(o.Status) + "`"
		if o.Code == "forbidden" || o.Code == "denied" {
			name = "the rule's own (`" + o.Code + "`)"
		}
		if string(o.Status) != o.Code {
			name += " (reason `" + o.Code + "`)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s |\n", name, o.Effect, yesNo(o.Retryable), statusCode(dispatch.Result{Status: o.Status}), o.Message, o.Remedy)
	}
	b.WriteString("\n`ok` and `resumed` are decisions to run the call: the caller gets what came of it. `started` stands in the record alone, of\n" +
		"a call to an outside tool whose outcome is not there yet, and no caller gets it.\n")
	b.WriteString(`
## Given by execution

What only running the call can know, or failing to decide. No policy may answer with one of these, but for
` + "`outcome_unknown` and `policy_error`" + `, which are also rules above.

| status | retryable | exit code | remedy |
|---|---|---|---|
`)
	for _, s := range []dispatch.Status{dispatch.StatusNotFound, dispatch.StatusTimeout, dispatch.StatusOutcomeUnknown, dispatch.StatusInvalidResult, dispatch.StatusInternalError, dispatch.StatusPolicyError} {
		require.NotEmpty(t, executionRemedies[s], s)
		retryable := s == dispatch.StatusTimeout || s == dispatch.StatusOutcomeUnknown
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s |\n", s, yesNo(retryable), statusCode(dispatch.Result{Status: s}), executionRemedies[s])
	}
	fmt.Fprintf(&b, "| `%s` | no | that of the last attempt | %s |\n", dispatch.StatusRetryExhausted, executionRemedies[dispatch.StatusRetryExhausted])
	b.WriteString(`
A reason's code is the status itself, but for a policy error: ` + "`policy_undefined`, `policy_conflict`, `policy_timeout`,\n`policy_failed` or `policy_malformed`" + ` say what was wrong with the policy's answer. Its detail is in the decision log.

An overloaded task is no status: nothing is judged, no step is counted, and the command says so.
`)
	if *update {
		require.NoError(t, os.WriteFile(statusesFile, []byte(b.String()), 0o644))
	}
	have, err := os.ReadFile(statusesFile)
	require.NoError(t, err)
	assert.Equal(t, b.String(), string(have), "stale; run make generate")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
