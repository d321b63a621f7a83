package main

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern"
)

func (a *app) configCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "config", Short: "The configuration: check it, show it, write the built-in one out",
		Long: `The configuration is one YAML file: what each kind of work may do, the tools that there are, the sets of targets, the
documents, the tasks. The built-in one is used unless --config or GOVERN_CONFIG names another.`,
	})
	cmd.AddCommand(a.configCheck(), a.configShow(), a.configExport())
	return cmd
}

func (a *app) configCheck() *cobra.Command {
	cmd := &cobra.Command{Use: "check", Short: "Read the configuration, with its tools and policy, and say what is wrong", Args: args(),
		Long: `Read the configuration with everything that it names, as a run would, and touch no state.
Exit code: 0 if it can be used, 2 if not; standard error then says where, what and what to do.`,
		Example: "  govern config check --config config.yaml"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		g, err := a.loadToCall(cmd)
		if err != nil {
			return err
		}
		if f.json() {
			return writeJSON(a.stdout, map[string]any{"config": g.name(), "profiles": len(g.config.Profiles), "tasks": len(g.config.Tasks),
				"tools": len(g.tools), "policy_version": g.policy.Version()})
		}
		_, err = fmt.Fprintf(a.stdout, "%s: in order: %s, %s, %s, under policy %s\n", printable(g.name()), plural(len(g.config.Profiles), "profile"),
			plural(len(g.config.Tasks), "task"), plural(len(g.tools), "tool"), g.policy.Version())
		return err
	}
	return cmd
}

func (a *app) configShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show", Short: "Show every value that holds, and where it came from", Args: args(),
		Long: `Show every value that holds, as it was written, and where: a line of a file, a flag, a variable of the environment, or
a default. What another file holds is shown by that file's name.`,
		Example: "  govern config show --config config.yaml\n  govern config show --format json"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		g, err := a.readConfig(cmd)
		if err != nil {
			return err
		}
		values, err := g.config.Values()
		if err != nil {
			return err
		}
		l := a.list(f, "KEY", "VALUE", "FROM")
		for _, v := range values {
			if err := l.add(v, v.Key, shorten(v.Text(), widestValue), v.From); err != nil {
				return err
			}
		}
		return l.end("the configuration is empty")
	}
	return cmd
}

// widestValue bounds what is shown of a value in the table; JSON has all of it.
const widestValue = 60

func (a *app) configExport() *cobra.Command {
	return &cobra.Command{Use: "export FOLDER", Short: "Write the built-in configuration out, with the files that it names, to be edited", Args: args("the FOLDER to make"),
		Long: `Write the built-in config.yaml into a new or empty folder, with the files that it names: the schemas of the tools, the
sets of targets and the documents. Nothing is overwritten. (govern policy export does the same for the policy.)`,
		Example: "  govern config export mine\n  govern run --config mine/config.yaml examples/warehouse/proposals.jsonl",
		RunE: func(cmd *cobra.Command, given []string) error {
			folder := given[0]
			files, err := builtinConfig()
			if err != nil {
				return err
			}
			if err := writeFolder(folder, files); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "%s is written; edit it, then:\n  govern config check --config %s\n",
				printable(filepath.Join(folder, "config.yaml")), shellWord(filepath.Join(folder, "config.yaml")))
			return err
		}}
}

// builtinConfig is the built-in configuration with the files that it names.
func builtinConfig() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, pattern := range []string{"config.yaml", "data/*.json", "schemas/*.json"} {
		names, err := fs.Glob(govern.Files, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if files[name], err = govern.Files.ReadFile(name); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// name is what people know the configuration by.
func (g *governed) name() string {
	if g.file == "" {
		return "the built-in configuration"
	}
	return g.file
}
