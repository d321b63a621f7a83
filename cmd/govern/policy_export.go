package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/opa"
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
			core, err := coreSource(g.config, g.config.Policy)
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

// writeFolder writes into a folder that is new or empty: what is there already is never mixed with, or lost.
func writeFolder(dest string, files map[string][]byte) error {
	entries, err := os.ReadDir(dest)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return misuse(err).hint("name a folder that does not exist yet, or a file that ends in .tar.gz")
	}
	if len(entries) > 0 {
		return misuse(fmt.Errorf("%s is not empty", dest)).hint("name a folder that does not exist yet")
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dest, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return misuse(err)
		}
		if err := writeNew(path, files[name]); err != nil {
			return err
		}
	}
	return nil
}

// writeNew writes a file that does not exist yet.
func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return misuse(fmt.Errorf("%s exists already", path)).hint("name another; nothing is overwritten")
	}
	if err != nil {
		return misuse(err)
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
