package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/journal"
	"github.com/policy-dispatch/govern/internal/opa"
	"github.com/policy-dispatch/govern/internal/snapshot"
)

func (a *app) policyExport() *cobra.Command {
	var version string
	cmd := &cobra.Command{Use: "export DEST", Short: "Write the policy in use, to edit or to carry elsewhere", Args: args("a DEST: a new folder, or a FILE.tar.gz"),
		Long: `Writes the policy with its tests, its manifest, its data, and the schema of its input. Stock OPA tests and checks
what is written; --policy DEST uses it, and as it is written it has the version that the policy in use has.
DEST is a new or empty folder, or the name of a bundle that ends in .tar.gz: the same policy gives the same bytes.
Not written are layers, which are bundles of their own, and the sets of targets that the configuration states.

With --version, what is written into the folder DEST is the policy that a state keeps because decisions were made under that
version (govern log activations lists them): its Rego and that of its layers below rego/, all its data in data.json, and
policy.json and config.json, whose SHA-256 digests are those that the activation names, and which give the version again.`,
		Example: `  govern policy export my-policy
  opa test my-policy
  govern policy check --policy my-policy
  govern policy export my-policy.tar.gz
  govern policy export as-it-was --version lab-1@sha256:13a6…`,
		RunE: func(cmd *cobra.Command, given []string) error {
			if cmd.Flags().Changed("version") {
				return a.withState(func(cmd *cobra.Command, s *system, given []string) error {
					return a.exportKept(cmd.Context(), s, given[0], version)
				})(cmd, given)
			}
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
	cmd.Flags().StringVar(&version, "version", "", "the policy that the state keeps under this `VERSION`, instead of the one in use")
	return cmd
}

// exportKept writes the policy of a version that was in force.
func (a *app) exportKept(ctx context.Context, s *system, dest, version string) error {
	if strings.HasSuffix(dest, ".tar.gz") {
		return misuse(errors.New("what is kept under a version is written into a folder")).hint("name a folder that does not exist yet")
	}
	kept, err := keptPolicy(ctx, s.store, version)
	if err != nil {
		return err
	}
	files, err := kept.Files()
	if err != nil {
		return err
	}
	if err := writeFolder(dest, files); err != nil {
		return err
	}
	at := func(name string) string { return shellWord(path.Join(dest, name)) }
	fmt.Fprintf(a.stdout, "%s written to %s\nto ask it again, with the input of a decision:\n  opa eval --data %s --data %s --input INPUT data.policy.decision\n",
		plural(len(files), "file"), printable(dest), at("rego"), at("data.json"))
	return nil
}

// keptPolicy finds what was in force under a version, and refuses what is not exactly that.
func keptPolicy(ctx context.Context, store dispatch.Reader, version string) (k opa.KeptPolicy, err error) {
	var versions []string
	var found journal.Activation
	for x, err := range journal.Activations(store.EntriesIn(ctx, "", "", dispatch.KindActivation, dispatch.Span[dispatch.Place]{})) {
		if err != nil {
			return k, err
		}
		if versions = append(versions, x.PolicyVersion); x.PolicyVersion == version {
			found = x
		}
	}
	if found.PolicyVersion == "" {
		return k, misuse(fmt.Errorf("no decision was made under version %q", version)).near(version, versions, "govern log activations lists those that there were")
	}
	var contents [2]ijson.Raw
	for i, digest := range []string{found.Policy, found.Config} {
		if contents[i], err = store.Content(ctx, digest); err == nil && dispatch.NewContent(contents[i]).Digest != digest {
			err = errors.New("its bytes have another digest")
		}
		if err != nil {
			return k, notKept(fmt.Errorf("the content %s of version %s is not there as it was kept: %w", digest, version, err))
		}
	}
	if k, err = opa.ReadKept(contents[0], contents[1]); err == nil && k.Version() != version {
		err = fmt.Errorf("what is kept under version %s is version %s", version, k.Version())
	}
	if err != nil {
		return k, notKept(err)
	}
	return k, nil
}

func notKept(err error) error {
	return (&failure{code: exitBroken, err: err}).hint("something other than govern changed the state; see what it was with: govern log verify")
}

func writeBundle(dest string, files map[string][]byte) error {
	b, err := opa.Archive(files)
	if err != nil {
		return err
	}
	return writeNew(dest, b)
}
