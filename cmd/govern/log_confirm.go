package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/journal"
)

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// confirmation is what the command found.
type confirmation struct {
	Matches bool `json:"matches"`
	// Found are the places in the step's entries; absent where a digest was asked about.
	Found *[]journal.Sealed `json:"found,omitzero"`
}

func (a *app) logConfirm() *cobra.Command {
	var task string
	var step int
	var isJSON bool
	cmd := &cobra.Command{
		Use: "confirm [DIGEST | --task ID --step N]", Short: "Say whether a value is the one behind a seal", Args: noValue,
		Long: `A sensitive value stands in the log as {"$sealed": DIGEST, "length": N}. This command reads a value from standard input,
never from its arguments, which others can see, and says whether it is the one behind a digest, or where in the entries of
one step it is. The value is not shown and not kept. The text of standard input, without the line break at its end, is taken for
a string; --json takes it for a JSON value instead.

Exit code: 0 if the value is there, 3 if it is not.`,
		Example: `  govern log confirm --task labels-1 --step 4 < value.txt
  govern log confirm 9c41… --json < value.json`,
	}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&task, "task", "", "look at the task with this `ID`")
	cmd.Flags().Var((*count)(&step), "step", "look at the entries of this step `N`")
	cmd.Flags().BoolVar(&isJSON, "json", false, "the value is JSON, and not a text")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok { // it may be the value
			return misuse(fmt.Errorf("%s: the flag --%s does not take what it was given", cmd.CommandPath(), invalid.GetFlag().Name)).hint(onStandardInput)
		}
		return flagError(cmd, err)
	})
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		if (len(given) == 1) == (task != "") || (task != "") != cmd.Flags().Changed("step") {
			return misuse(fmt.Errorf("%s needs either a digest, or --task with --step", cmd.CommandPath())).hint("usage: " + cmd.UseLine())
		}
		value, err := a.readValue(cmd.Context(), isJSON)
		if err != nil {
			return err
		}
		seal, err := dispatch.SealOf(s.store.Key(), s.principal.Tenant, value)
		if err != nil {
			return err
		}
		c := confirmation{}
		if len(given) == 1 {
			c.Matches = seal.Digest == given[0]
		} else {
			found, err := s.sealsAt(cmd, task, step, seal)
			if err != nil {
				return err
			}
			c = confirmation{Matches: len(found) > 0, Found: &found}
		}
		err = a.confirm(f, c)
		if !c.Matches && !isJSON && !f.json() {
			fmt.Fprintln(a.stderr, "  the value was taken for a text; --json takes it for a number, or whatever else JSON has")
		}
		return err
	})
	return cmd
}

const onStandardInput = "give the value on standard input, and never as an argument, which others can see"

// noValue refuses what is no digest. It does not repeat it: it may be the value.
func noValue(_ *cobra.Command, given []string) error {
	if len(given) > 1 || len(given) == 1 && !digestForm.MatchString(given[0]) {
		return misuse(errors.New("the argument is not one digest of 64 hexadecimal digits")).hint(onStandardInput)
	}
	return nil
}

// sealsAt finds where a seal stands in the entries of one step.
func (s *system) sealsAt(cmd *cobra.Command, task string, step int, seal dispatch.Seal) ([]journal.Sealed, error) {
	if _, err := s.anyTask(cmd, task); err != nil {
		return nil, err
	}
	found, known := []journal.Sealed{}, false
	for e, err := range s.store.Entries(cmd.Context(), s.principal.Tenant, task) {
		if err != nil {
			return nil, err
		}
		if e.Step != step {
			continue
		}
		known = true
		for _, at := range journal.Seals(e) {
			if at.Seal == seal {
				found = append(found, at)
			}
		}
	}
	if !known {
		return nil, misuse(fmt.Errorf("task %s has no step %d", task, step)).hint(s.command("log", "decisions", "--task", task) + " lists its steps")
	}
	return found, nil
}

func (a *app) confirm(f *format, c confirmation) error {
	if f.json() {
		if err := writeJSON(a.stdout, c); err != nil {
			return err
		}
	} else {
		switch {
		case !c.Matches && c.Found != nil:
			fmt.Fprintln(a.stdout, "no: no seal of that step is of this value")
		case !c.Matches:
			fmt.Fprintln(a.stdout, "no: the seal is of another value")
		case c.Found == nil:
			fmt.Fprintln(a.stdout, "yes: the seal is of this value")
		default:
			for _, at := range *c.Found {
				fmt.Fprintf(a.stdout, "yes: %s entry, number %d: %s\n", at.Kind, at.N, printable(at.Pointer))
			}
		}
	}
	if !c.Matches {
		return quietError(exitDenied)
	}
	return nil
}

// readValue reads the value that is asked about. No error holds any of it.
func (a *app) readValue(ctx context.Context, isJSON bool) (ijson.Raw, error) {
	const most = config.MostProposalBytes
	b, err := a.readUnseen(ctx, most)
	switch {
	case err != nil:
		return nil, err
	case len(b) > most:
		return nil, misuse(fmt.Errorf("the value is longer than %d bytes, and so in no proposal", most))
	case isJSON:
		value, err := ijson.Canonical(b, ijson.Limits{Bytes: most, Depth: ijson.DefaultLimits.Depth})
		if broken, ok := errors.AsType[*ijson.Error](err); ok {
			err = fmt.Errorf("the value is not JSON: at byte %d: %s", broken.Offset, broken.Rule)
		}
		if err != nil {
			return nil, misuse(err).hint("leave --json out if it is a text")
		}
		return value, nil
	case !utf8.Valid(b):
		return nil, misuse(errors.New("the value is not UTF-8, and so in no proposal"))
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	return ijson.Marshal(text)
}

// readUnseen reads standard input, and keeps a terminal from showing what is typed there.
func (a *app) readUnseen(ctx context.Context, most int) ([]byte, error) {
	f, _ := a.stdin.(*os.File)
	if f == nil || !isTerminal(f) {
		return readAtMost(ctx, a.stdin, most)
	}
	terminal := int(f.Fd())
	before, err := term.GetState(terminal)
	if err != nil {
		return nil, err
	}
	// Whoever stops the command gets the terminal back as it was.
	defer func() { _ = term.Restore(terminal, before) }()
	fmt.Fprint(a.stderr, "the value, which is not shown: ")
	defer fmt.Fprintln(a.stderr)
	return await(ctx, func() ([]byte, error) { return term.ReadPassword(terminal) })
}
