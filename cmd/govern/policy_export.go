package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/opa"
	"github.com/policy-dispatch/govern/internal/snapshot"
)

func (a *app) policyExport() *cobra.Command {
	return &cobra.Command{Use: "export DEST", Short: "Write the policy in use, to edit or to carry elsewhere", Args: args("a DEST: a new folder, or a FILE.tar.gz"),
		Long: `Writes the policy with its tests, its manifest, its data, and the schema of its input. Stock OPA tests and checks
what is written; --policy DEST uses it, and as it is written it has the version that the policy in use has.
DEST is a new or empty folder, or the name of a bundle that ends in .tar.gz: the same policy gives the same bytes.
Not written are layers, which are bundles of their own, and the sets of targets that the configuration states.`,
		Example: `  govern policy export my-policy
  opa test my-policy
  govern policy check --policy my-policy
  govern policy export my-policy.tar.gz`,
		RunE: func(cmd *cobra.Command, given []string) error {
			g, err := a.load(cmd)
			if err != nil {
				return err
			}
			core, err := snapshot.CoreSource(g.config, g.config.Policy)
			if err != nil {
				return misuse(err)
			}
			files, err := core.Files()
			if err != nil {
				return misuse(err)
			}
			dest := given[0]
			next := []string{g.command("policy", "check", "--policy", dest)}
			if strings.HasSuffix(dest, ".tar.gz") {
				err = writeBundle(dest, files)
			} else {
				next = append([]string{"opa test " + shellWord(dest)}, next...)
				err = writeFolder(dest, files)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s written to %s\nto test and to check what it is after a change:\n", plural(len(files), "file"), printable(dest))
			for _, command := range next {
				fmt.Fprintln(a.stdout, "  "+command)
			}
			return nil
		}}
}

func writeBundle(dest string, files map[string][]byte) error {
	b, err := opa.Archive(files)
	if err != nil {
		return err
	}
	return writeNew(dest, b)
}
