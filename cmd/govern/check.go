package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/opa"
)

func (a *app) checkCommand() *cobra.Command {
	var q opa.Question
	cmd := &cobra.Command{Use: "check --tool NAME --allowed NAMES --writes NAMES [--confirmed]", Short: "Ask the gate about a tool's name alone", Args: args(),
		Long: `Ask the policy's gate: may a tool of that name run? It knows names alone, and keeps no state.
The answer is deny if the name is not allowed, and nothing changes that; confirm if the tool changes something and
nobody has confirmed the call; and allow otherwise. Names are compared exactly.

Exit code: 0 for allow, 3 for deny, 4 for confirm.`,
		Example: `  govern check --tool send --allowed search,send --writes send              # confirm
  govern check --tool send --allowed search,send --writes send --confirmed  # allow`,
	}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&q.Name, "tool", "", "the `NAME` that the model wants to run")
	cmd.Flags().StringSliceVar(&q.Allowed, "allowed", nil, "the `NAMES` that may be used, with commas between")
	cmd.Flags().StringSliceVar(&q.Writes, "writes", nil, "the `NAMES` of tools that change something, with commas between")
	cmd.Flags().BoolVar(&q.Confirmed, "confirmed", false, "a person has confirmed this call")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range []string{"tool", "allowed", "writes"} {
			if !cmd.Flags().Changed(name) {
				return misuse(fmt.Errorf("govern check needs --%s", name)).hint("usage: " + cmd.UseLine() + `; an empty list is ""`)
			}
		}
		g, err := a.load(cmd)
		if err != nil {
			return err
		}
		answer, err := g.policy.Gate(cmd.Context(), q)
		if errors.Is(err, opa.ErrNoGate) {
			return misuse(err)
		}
		if err != nil {
			return err
		}
		if f.json() {
			err = writeJSON(a.stdout, map[string]string{"tool": q.Name, "answer": string(answer), "policy_version": g.policy.Version()})
		} else {
			_, err = fmt.Fprintln(a.stdout, answer)
		}
		if err != nil {
			return err
		}
		if code := gateCodes[answer]; code != exitOK {
			return quietError(code)
		}
		return nil
	}
	return cmd
}

var gateCodes = map[opa.Answer]int{opa.GateAllow: exitOK, opa.GateConfirm: exitWaiting, opa.GateDeny: exitDenied}
