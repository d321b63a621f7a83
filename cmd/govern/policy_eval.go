package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// maxInput bounds one input, which holds a proposal, as long as any configuration lets it be, and the facts around it.
const maxInput = config.MostProposalBytes + 4<<20

func (a *app) policyEval() *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "eval [--input FILE]", Short: "What the policy would say of one input", Args: args(),
		Long: `Asks the policy about one input and prints its decision as govern would take it: after the checks in Go, so that an
answer that is none is a denial with the status policy_error, and says why. Nothing is counted, run or recorded.
The input is one JSON object, as the log shows it under "input"; members that no input has are refused.

Exit code: that of a run with this result, 0, 1, 3, 4 or 5.`,
		Example: `  govern log decisions --inputs --format json | tail -n 1 | jq .input > input.json
  govern policy eval --input input.json
  govern policy eval --policy my-policy < input.json`}
	cmd.Flags().StringVar(&file, "input", "-", "`FILE` with the input; - is standard input")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		g, err := a.load(cmd)
		if err != nil {
			return err
		}
		input, err := a.readInput(cmd.Context(), file)
		if err != nil {
			return err
		}
		d, err := dispatch.Judge(cmd.Context(), g.policy, g.policy.Version(), input)
		if err != nil {
			return err
		}
		shown := struct {
			dispatch.Decision
			Detail string `json:"detail,omitzero"`
		}{d, d.Detail}
		if err := writeJSON(a.stdout, shown); err != nil {
			return err
		}
		if code := statusCode(dispatch.Result{Status: d.Status}); code != exitOK {
			return quietError(code)
		}
		return nil
	}
	return cmd
}

// readInput reads one input in its canonical form, and holds it against what Go puts in.
func (a *app) readInput(ctx context.Context, file string) (ijson.Raw, error) {
	in, err := a.open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := readAtMost(ctx, in, maxInput)
	if err != nil {
		return nil, err
	}
	input, err := ijson.Canonical(b, ijson.Limits{Bytes: maxInput, Depth: ijson.DefaultLimits.Depth + 2}) // the arguments stand two below the top
	if err == nil {
		var known dispatch.Input
		err = ijson.Unmarshal(input, &known)
	}
	if err == nil {
		return input, nil
	}
	f := misuse(fmt.Errorf("the input: %w", err))
	if _, unknown := errors.AsType[*ijson.UnknownMemberError](err); unknown {
		return nil, f.hint(`give one input alone, as govern log decisions --inputs --format json shows it under "input"`)
	}
	return nil, f
}
