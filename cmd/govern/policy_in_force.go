package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/journal"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// inForce is under which version the last decision of a state was made: a process that is running keeps what it has, if
// it cannot use the files. The zero value is a state without decisions, or none that can be read.
type inForce struct {
	State   string `json:"state,omitzero"`
	Version string `json:"in_force,omitzero"`
	Time    string `json:"last_decision,omitzero"`
}

func (i inForce) String() string {
	return fmt.Sprintf("the last decision in %s was made under %s at %s", i.State, i.Version, i.Time)
}

// versionInForce looks into the state that a command would use. Nothing depends on it, so that what cannot be read says
// nothing.
func versionInForce(ctx context.Context, cmd *cobra.Command, c config.Config) inForce {
	// Of a configuration that has faults the state can be told all the same.
	over, _ := c.Overlay(cmd.Flags())
	state := cmp.Or(over.State, config.DefaultState)
	r, err := sqlite.OpenReader(ctx, state)
	if err != nil {
		return inForce{}
	}
	defer r.Close()
	last, found, err := journal.LastDecision(ctx, r, dispatch.DefaultTenant)
	if err != nil || !found {
		return inForce{}
	}
	return inForce{state, last.PolicyVersion, last.Time}
}

// notLoaded says beside the reason why the files cannot be loaded which policy decided last.
func (a *app) notLoaded(cmd *cobra.Command, g governed, err error, f *format) error {
	last := versionInForce(cmd.Context(), cmd, g.config)
	if f.json() {
		row := struct {
			Version *string `json:"policy_version"`
			Error   string  `json:"error"`
			inForce
		}{Error: err.Error(), inForce: last}
		if err := writeJSON(a.stdout, row); err != nil {
			return err
		}
	}
	if last == (inForce{}) {
		return err
	}
	said := misuse(err).hint("until then no new process starts, and one that is running keeps its policy; " + last.String())
	if fix := hint(err); fix != "" {
		said.fix = fix + "\n" + said.fix
	}
	return said
}

// otherInForce is inForce if that is another version than the one that was loaded: a running process may not have taken
// the files up.
func otherInForce(cmd *cobra.Command, g governed) inForce {
	last := versionInForce(cmd.Context(), cmd, g.config)
	if last.Version == g.policy.Version() {
		return inForce{}
	}
	return last
}
