package main

import (
	"context"
	"fmt"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// summary tells people what came of a run and what they can do about it.
func (r *proposals) summary(ctx context.Context, failed bool) {
	w := r.stderr
	if r.progress {
		fmt.Fprint(w, "\r")
	}
	if r.n == 0 && failed {
		return
	}
	if r.n == 0 {
		what := "no proposals"
		if r.approved {
			what = "no approved calls"
		}
		fmt.Fprintf(w, "%s for task %s\n", what, r.config.Task)
		return
	}
	fmt.Fprintf(w, "%s for task %s under policy %s\n", plural(r.n, "proposal"), r.config.Task, r.dispatcher.Snapshot().Version)
	for _, status := range r.order {
		line := fmt.Sprintf("  %5d %s", r.counts[status], status)
		if remedy := r.remedies[status]; remedy != "" {
			line += ": " + printable(remedy)
		}
		fmt.Fprintln(w, line)
	}
	t, err := r.store.Task(ctx, r.key())
	if err != nil {
		return
	}
	if p, ok := r.config.Profiles[t.Profile]; ok {
		fmt.Fprintf(w, "  step %d of %d\n", min(t.Steps, p.MaxSteps), p.MaxSteps)
		for _, row := range budgetRows(r.budgets(t)) {
			fmt.Fprintf(w, "  %s %s\n", row[0], row[1])
		}
	}
	r.next(ctx, t)
}

// next gives the commands that lead on from here, ready to be pasted.
func (r *proposals) next(ctx context.Context, t dispatch.Task) {
	if r.counts[dispatch.StatusApprovalRequired] > 0 {
		fmt.Fprintf(r.stderr, "to see what waits for a person:\n  %s\n", r.command("review", "list"))
	}
	if r.counts[dispatch.StatusOutcomeUnknown]+r.counts[dispatch.StatusInProgress] > 0 {
		fmt.Fprintf(r.stderr, "to see whose outcome is unknown, and what is under way:\n  %s\n", r.command("operations", "list"))
	}
	if r.counts[dispatch.StatusPolicyError]+r.counts[dispatch.StatusInternalError]+r.counts[dispatch.StatusInvalidResult] > 0 {
		fmt.Fprintf(r.stderr, "to see what is broken:\n  %s\n", r.command("log", "decisions", "--task", t.ID))
	}
	if r.counts[dispatch.StatusBudgetExhausted]+r.counts[dispatch.StatusCancelled]+r.counts[dispatch.StatusDeadlineExceeded] == 0 {
		return
	}
	fresh := nextName(t.ID, r.taskOwners(ctx))
	fmt.Fprintf(r.stderr, "to go on with another task:\n  %s\n", r.createTask(fresh, t.Actor, t.Profile))
	if r.file == "" {
		return
	}
	words := r.forTask(fresh, t.Actor, "run")
	if r.retry > 0 {
		words = append(words, "--retry", fmt.Sprint(r.retry))
	}
	fmt.Fprintf(r.stderr, "  %s\n", r.command(append(words, r.file)...))
}

// remedy tells people what to do about a result: what the METADATA of the rule says that refused the call, and
// otherwise what is known of its execution.
func (g *governed) remedy(r dispatch.Result) string {
	if len(r.Reasons) > 0 {
		for _, o := range g.policy.Outcomes() {
			if o.Code == r.Reasons[0].Code {
				return o.Remedy
			}
		}
	}
	return executionRemedies[r.Status]
}

// executionRemedies are for what no rule of the policy gives.
var executionRemedies = map[dispatch.Status]string{
	dispatch.StatusPolicyError:    "the policy is broken, and everything is denied until it is mended; the decision log shows the detail",
	dispatch.StatusInternalError:  "a tool is broken; the decision log shows the detail",
	dispatch.StatusNotFound:       "the target is permitted and does not exist; nothing ran",
	dispatch.StatusTimeout:        "nothing happened; propose the call again, or run with --retry 2",
	dispatch.StatusUnavailable:    "nothing took place; the reasons and the decision log say why",
	dispatch.StatusInvalidResult:  "the tool's result is not what its definition promises, and is not told; a write outside took place, anything else did not, and the decision log shows the detail",
	dispatch.StatusOutcomeUnknown: "it took place or not; a call with a key can be proposed again, the same with the same key, to learn which, and never with another key",
	dispatch.StatusRetryExhausted: "the last attempt was transient too; try later",
}
