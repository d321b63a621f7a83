package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/opa"
)

func (a *app) policyCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "policy", Short: "The policy's version, and its tests",
		Long: `The policy is one bundle of Rego. The built-in one is used unless --policy names folders and data files.
Stock OPA tests and checks the same files: opa test policy data/readable.json.`,
	})
	cmd.AddCommand(a.policyVersion(), a.policyTest())
	return cmd
}

func (a *app) policyVersion() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "The version that every result carries", Args: args(),
		Long: `The version is <revision>@sha256:<digest>. The digest covers the policy, its data, and everything in the
configuration that says what is permitted; so a change in any of them is another version.`,
		Example: "  govern policy version --policy policy --policy data/readable.json"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		g, err := a.load(cmd)
		if err != nil {
			return err
		}
		if f.json() {
			return writeJSON(a.stdout, map[string]string{"policy_version": g.policy.Version(), "revision": g.source.Revision(), "source": g.source.Label()})
		}
		_, err = fmt.Fprintln(a.stdout, g.policy.Version())
		return err
	}
	return cmd
}

func (a *app) policyTest() *cobra.Command {
	cmd := &cobra.Command{Use: "test", Short: "Run the policy's own Rego tests", Args: args(),
		Example: "  govern policy test\n  govern policy test --policy policy --policy data/readable.json"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		g, err := a.load(cmd)
		if err != nil {
			return err
		}
		results, err := opa.Test(cmd.Context(), g.source)
		if err != nil {
			return misuse(err)
		}
		failed := 0
		l := a.list(f, "TEST", "PLACE", "RESULT")
		for _, r := range results {
			word := "pass"
			if !r.Passed {
				word = "FAIL"
				failed++
			}
			row := map[string]any{"test": r.Name, "place": r.Location, "passed": r.Passed, "output": r.Output}
			if f.json() || !r.Passed {
				if err := l.add(row, r.Name, r.Location, word); err != nil {
					return err
				}
			}
		}
		if failed > 0 {
			return errors.Join(l.end(""), &failure{code: exitDenied, err: fmt.Errorf("%d of %s failed", failed, plural(len(results), "test"))})
		}
		return l.end(plural(len(results), "test") + " passed")
	}
	return cmd
}
