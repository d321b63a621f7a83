package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/nearest"
)

// app is the program: its streams, and the flags that every command has.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	configFile     string
}

// run is the program as a function. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &checkedWriter{w: stdout}
	a := &app{stdin: stdin, stdout: out, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	err := config.CheckEnv(os.Environ())
	if err != nil {
		err = misuse(err)
	} else {
		err = root.ExecuteContext(ctx)
	}
	var said *failure
	if out.err != nil && (err == nil || errors.Is(err, out.err) && !errors.As(err, &said)) {
		err = fmt.Errorf("the command did its work, but its output could not be written: %w", out.err)
	}
	if errors.Is(err, syscall.EPIPE) && !errors.As(err, &said) {
		err = quietError(exitBroken) // whoever read a listing has seen enough of it
	}
	code := exitCode(err)
	var quiet quietError
	if err != nil && !errors.As(err, &quiet) {
		lines := linesOf(err)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			for i, line := range lines {
				lines[i] = strings.ReplaceAll(line, context.Canceled.Error(), context.Cause(ctx).Error()) // which names the signal
			}
		}
		a.complain(append(lines, strings.Split(hint(err), "\n")...))
	}
	return code
}

// complain tells people something in several lines.
func (a *app) complain(lines []string) {
	prefix := "govern: "
	for _, line := range lines {
		if line != "" {
			fmt.Fprintln(a.stderr, prefix+line)
		}
		prefix = "  "
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "govern",
		Short: "Decide what a language model's tool calls may do, and do it at most once",
		Long: `govern stands between what a language model proposes and what software does.
A policy in Rego decides each proposed tool call: allow it, deny it, or ask a person.
What is allowed runs at most once, and is on record before its answer is given.`,
		Example: `  govern run examples/warehouse/proposals.jsonl
  govern review list
  govern run --approved
  govern log decisions`,
		SilenceErrors: true, SilenceUsage: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.configFile, "config", "", "configuration `FILE` instead of the built-in one ("+config.EnvConfig+")")
	flags.StringArray("policy", nil, "folder of Rego, .tar.gz bundle or JSON data file at this `PATH` instead of the built-in policy; may be repeated (GOVERN_POLICY)")
	flags.StringArray("org", nil, "the organisation's own rules over the policy, such a `PATH` too; may be repeated (GOVERN_ORG)")
	flags.StringArray("site", nil, "the site's own rules over the policy, such a `PATH` too; may be repeated (GOVERN_SITE)")
	flags.String("state", "", "state `FILE` (GOVERN_STATE)")
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(helpCommand(root))
	root.AddCommand(a.runCommand(), a.reviewCommand(), a.cancelCommand(), a.taskCommand(), a.operationsCommand(), a.logCommand(),
		a.scenarioCommand(), a.keyCommand(), a.configCommand(), a.policyCommand(), a.toolsCommand(), a.checkCommand(), a.versionCommand())
	group(root)
	return root
}

// group makes a command that only has commands below it refuse a word that is none of them.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return noCommand(cmd, args[0])
	}
	return cmd
}

func noCommand(cmd *cobra.Command, word string) error {
	err := misuse(fmt.Errorf("%s has no command %q", cmd.CommandPath(), word))
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if len(names) == 0 {
		return err.hint("usage: " + cmd.UseLine())
	}
	return err.near(word, names, "it has "+strings.Join(names, ", "))
}

// helpCommand does what cobra's own does, and fails for a command that does not exist.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{Use: "help [COMMAND]", Short: "Help about any command", Example: "  govern help review approve",
		RunE: func(_ *cobra.Command, words []string) error {
			found, rest, err := root.Find(words)
			if err != nil {
				return misuse(err)
			}
			if len(rest) > 0 {
				return noCommand(found, rest[0])
			}
			return found.Help()
		}}
}

// args checks the number of a command's arguments and names the missing or surplus one.
func args(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) < len(names) {
			return misuse(fmt.Errorf("%s needs %s", cmd.CommandPath(), names[len(given)])).hint("usage: " + cmd.UseLine())
		}
		if len(given) > len(names) {
			return surplus(cmd, given[len(names)])
		}
		return nil
	}
}

// atMostOne lets a command have one argument or none.
func atMostOne(cmd *cobra.Command, given []string) error {
	if len(given) > 1 {
		return surplus(cmd, given[1])
	}
	return nil
}

func surplus(cmd *cobra.Command, argument string) error {
	return misuse(fmt.Errorf("%s takes no argument %q", cmd.CommandPath(), argument)).hint("usage: " + cmd.UseLine())
}

func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return misuse(fmt.Errorf("%s: %w", cmd.CommandPath(), err)).hint("usage: " + cmd.UseLine())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	given := "--" + unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		given = "-" + unknown.GetSpecifiedName()
	}
	wrong := misuse(fmt.Errorf("%s has no flag %s", cmd.CommandPath(), given))
	for _, c := range cmd.Commands() {
		if given == "--"+c.Name() {
			return wrong.hint("did you mean " + c.CommandPath() + "?")
		}
	}
	return wrong.near(given, names, "it has "+strings.Join(names, ", "))
}

// near adds the nearest right name as a hint, or else what there is.
func (e *failure) near(name string, known []string, otherwise string) *failure {
	if n, ok := nearest.Name(name, known); ok {
		return e.hint("did you mean " + n + "?")
	}
	return e.hint(otherwise)
}
