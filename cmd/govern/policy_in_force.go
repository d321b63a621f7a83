package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/journal"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// notLoaded says beside the reason why the files cannot be loaded which policy decided last: a process that is running
// keeps what it had.
func (a *app) notLoaded(cmd *cobra.Command, g governed, err error, f *format) error {
	state := stateOf(cmd, g.config)
	last, known := lastDecision(cmd.Context(), state)
	if f.json() {
		row := struct {
			Version *string `json:"policy_version"`
			Error   string  `json:"error"`
			State   string  `json:"state,omitzero"`
			InForce string  `json:"in_force,omitzero"`
			Since   string  `json:"last_decision,omitzero"`
		}{Error: err.Error()}
		if known {
			row.State, row.InForce, row.Since = state, last.PolicyVersion, last.Time
		}
		if err := writeJSON(a.stdout, row); err != nil {
			return err
		}
	}
	if !known {
		return err
	}
	said := misuse(err)
	if fix := hint(err); fix != "" {
		said.fix = fix + "\n"
	}
	return said.hint(said.fix + "until then no new process starts, and one that is running keeps its policy; the last decision in " + state +
		" was made under " + last.PolicyVersion + " at " + last.Time)
}

// stateOf is the state that the command would have used, as far as that can be told of a configuration that could not
// be read.
func stateOf(cmd *cobra.Command, c config.Config) string {
	if over, err := c.Overlay(cmd.Flags()); err == nil {
		c = over
	}
	return cmp.Or(c.State, config.DefaultState)
}

// lastDecision finds the latest decision of a state. A state that cannot be read has none: this is said beside
// another error.
func lastDecision(ctx context.Context, state string) (last journal.Decision, found bool) {
	store, err := sqlite.Open(ctx, state, sqlite.Options{MustExist: true})
	if err != nil {
		return last, false
	}
	defer store.Close()
	tasks, err := store.Tasks(ctx, dispatch.DefaultTenant)
	if err != nil {
		return last, false
	}
	slices.SortFunc(tasks, func(x, y dispatch.Task) int { return y.Updated.Compare(x.Updated) })
	for _, t := range tasks {
		if found && dispatch.FormatTime(t.Updated) < last.Time {
			break // what people did may have touched a task since its last decision, but not before
		}
		for d, err := range journal.Decisions(store.Entries(ctx, t.Tenant, t.ID)) {
			if err != nil {
				return last, false
			}
			if d.Time >= last.Time {
				last, found = d, true
			}
		}
	}
	return last, found
}
