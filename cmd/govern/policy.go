package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/opa"
)

func (a *app) policyCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "policy", Short: "The policy: its version, its tests, and what is wrong with it",
		Long: `The policy is one bundle of Rego. The built-in one is used unless --policy names folders, .tar.gz bundles and data
files. --org and --site put layers over it, bundles of their own that can only narrow what it allows.
Stock OPA tests and checks the same files: opa test policy data/readable.json.`,
	})
	cmd.AddCommand(a.policyVersion(), a.policyTest(), a.policyCheck(), a.policyEval(), a.policyExport())
	return cmd
}

func (a *app) policyVersion() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "The version that every result carries", Args: args(),
		Long: `The version is <revision>@sha256:<digest>. The digest covers the policy, its layers, their data, and everything in
the configuration that says what is permitted; so a change in any of them is another version.
As JSON it also says which layers there are, and which packs of rules they take in.
Standard error (or JSON) says if the last decision of the state was made under another version: a process that is
running keeps what it has if it cannot use the files. If nobody can, it says why.`,
		Example: "  govern policy version --policy policy --policy data/readable.json\n  govern policy version --site examples/layers/site --format json"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		g, err := a.load(cmd)
		if err != nil {
			return a.notLoaded(cmd, g, err, f)
		}
		last := otherInForce(cmd, g)
		if f.json() {
			return writeJSON(a.stdout, struct {
				Version  string     `json:"policy_version"`
				Revision string     `json:"revision"`
				Source   string     `json:"source"`
				Layers   []layerRow `json:"layers"`
				inForce
			}{g.policy.Version(), g.source.Revision(), g.source.Label(), layersOf(g), last})
		}
		if last != (inForce{}) {
			fmt.Fprintln(a.stderr, printable(last.String()+"; a process that is running may keep that policy, and its standard error says why"))
		}
		_, err = fmt.Fprintln(a.stdout, g.policy.Version())
		return err
	}
	return cmd
}

func (a *app) policyTest() *cobra.Command {
	cmd := &cobra.Command{Use: "test", Short: "Run the policy's own Rego tests", Args: args(),
		Long: `Each rule named test_… in a file named …_test.rego is a test. One named todo_test_… is skipped and listed; at least one
must run. The policy's tests see no layers; those of a layer see the policy and all layers.`,
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
		count := map[string]int{}
		l := a.list(f, "TEST", "PLACE", "RESULT", "WHY")
		for _, r := range results {
			word := verdict(r)
			count[word]++
			row := map[string]any{"test": r.Name, "place": r.Location, "passed": r.Passed, "skipped": r.Skipped, "output": r.Output}
			if f.json() || !r.Passed {
				if err := l.add(row, r.Name, r.Location, word, strings.TrimSpace(r.Output)); err != nil {
					return err
				}
			}
		}
		skipped := ""
		if n := count[skippedTest]; n > 0 {
			skipped = fmt.Sprintf(", %d skipped", n)
		}
		if n := count[failedTest]; n > 0 {
			of := plural(len(results)-count[skippedTest], "test")
			return errors.Join(l.end(""), &failure{code: exitDenied, err: fmt.Errorf("%d of %s failed%s", n, of, skipped)})
		}
		summary := plural(count[passedTest], "test") + " passed" + skipped
		if err := l.end(summary); err != nil || f.json() || skipped == "" {
			return err
		}
		_, err = fmt.Fprintln(a.stdout, summary) // beneath the list of those skipped
		return err
	}
	return cmd
}

const (
	passedTest  = "pass"
	failedTest  = "FAIL"
	skippedTest = "skipped"
)

func verdict(r opa.TestResult) string {
	switch {
	case r.Skipped:
		return skippedTest
	case r.Passed:
		return passedTest
	}
	return failedTest
}
