package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/audit"
	"github.com/policy-dispatch/govern/internal/checkpoint"
)

func (a *app) logVerify() *cobra.Command {
	var checkpoints, keys []string
	cmd := &cobra.Command{Use: "verify [EXPORT]", Short: "Check the whole log: that nothing was changed, and that it keeps the promises", Args: atMostOne,
		Long: `Recompute everything that the log says of itself, and say precisely what is wrong and from which entry on: entries that
were changed, dropped, swapped, inserted or cut off, and entries that break a promise, such as an effect without its
approval or an approval used twice. Of a state its tables are held against the entries as well.

EXPORT is a file with an entry a line, as govern log export writes it without filters and from the first entry on, or -
for standard input. Without it the state is read, also while govern writes to it, and neither changed nor kept from
anybody.

A log that was made anew as a whole looks whole by itself. A checkpoint that was kept elsewhere tells: give one with
--checkpoint, or several, and between which of them a change lies is said too. Whose signatures count says --key: a
public key as govern key show prints it, or a file that holds some. Without it those of the state's own signing key count,
where that is at hand.

Exit code: 0 if nothing is wrong, 1 if it cannot be read, 2 for a mistake in the command, 3 if something was found; that
no trusted key signed a checkpoint is a finding too.`,
		Example: "  govern log verify\n  govern log verify --checkpoint monday.checkpoint --key shop.vkey exported.jsonl"}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringArrayVar(&checkpoints, "checkpoint", nil, "hold the log against the checkpoint in this `FILE`; may be repeated")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "trust this public `KEY`, or the keys in this file; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		if len(given) == 1 && cmd.Flags().Changed("state") {
			return misuse(errors.New("both an export and --state are given")).hint("verify one after the other")
		}
		if len(keys) > 0 && len(checkpoints) == 0 {
			return misuse(errors.New("--key is given, and nothing that it signed")).hint("give a checkpoint with --checkpoint FILE")
		}
		kept, untrusted, err := a.kept(cmd, checkpoints, keys)
		if err != nil {
			return err
		}
		o := audit.Options{Checkpoints: kept}
		if isTerminal(a.stderr) {
			o.Progress = func(n int64) { fmt.Fprintf(a.stderr, "\r%d entries", n) }
		}
		r, err := a.audit(cmd, given, o)
		if o.Progress != nil {
			fmt.Fprint(a.stderr, "\r\033[K")
		}
		if err != nil {
			return err
		}
		r = r.With(untrusted)
		if f.json() {
			err = writeJSON(a.stdout, r)
		} else {
			err = a.showReport(r)
		}
		if err == nil && !r.Verified {
			err = quietError(exitDenied)
		}
		return err
	}
	return cmd
}

// kept reads the checkpoints of one log, which trusted keys have signed, and says of the others that they have not.
func (a *app) kept(cmd *cobra.Command, files, keys []string) (kept []audit.Checkpoint, untrusted []audit.Finding, err error) {
	if len(files) == 0 {
		return nil, nil, nil
	}
	trusted, err := a.trusted(cmd, keys)
	if err != nil {
		return nil, nil, err
	}
	origin := ""
	for _, file := range files {
		signed, err := a.readAll(cmd.Context(), file, checkpoint.MaxBytes)
		if err != nil {
			return nil, nil, err
		}
		c, err := checkpoint.Open(signed, trusted)
		if errors.Is(err, checkpoint.ErrUntrusted) || errors.Is(err, checkpoint.ErrSignature) {
			message := fmt.Sprintf("the checkpoint %s: %v", file, err)
			if fix := hint(signedByOthers(err)); fix != "" {
				message += "; " + fix
			}
			untrusted = append(untrusted, audit.Finding{Code: audit.Untrusted, Message: message})
			continue
		}
		if err != nil {
			return nil, nil, misuse(fmt.Errorf("%s: %w", file, err))
		}
		if origin != "" && c.Origin != origin {
			return nil, nil, misuse(fmt.Errorf("the checkpoints are of two logs, %s and %s", origin, c.Origin)).hint("verify each log by itself")
		}
		origin = c.Origin
		kept = append(kept, audit.Checkpoint{Name: file, Size: c.Size, Root: c.Root})
	}
	return kept, untrusted, nil
}

// audit audits an export, or the state.
func (a *app) audit(cmd *cobra.Command, given []string, o audit.Options) (audit.Report, error) {
	if len(given) == 1 {
		in, err := a.open(cmd.Context(), given[0])
		if err != nil {
			return audit.Report{}, err
		}
		defer in.Close()
		return await(cmd.Context(), func() (audit.Report, error) {
			r, err := audit.Export(cmd.Context(), in, o)
			return r, cannotVerify(cmd.Context(), given[0], err)
		})
	}
	g, err := a.readConfig(cmd)
	if err != nil {
		return audit.Report{}, err
	}
	r, err := audit.State(cmd.Context(), g.config.State, o)
	if errors.Is(err, fs.ErrNotExist) {
		return r, noState(g.config.State)
	}
	return r, cannotVerify(cmd.Context(), g.config.State, err)
}

func cannotVerify(ctx context.Context, file string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	f := &failure{code: exitBroken, err: fmt.Errorf("%s cannot be verified: %w", file, err)}
	switch {
	case errors.Is(err, os.ErrPermission):
		return f.hint("let this user read it")
	case audit.IsDiskFault(err):
		return f.hint("see that its disk and that of temporary files work and have room, or verify a copy elsewhere (of a state, with the -wal and .key beside it)")
	}
	return f
}

// mostShown is how many findings people are shown. Programs get more.
const mostShown = 100

// showReport tells people what an audit found, a finding a line.
func (a *app) showReport(r audit.Report) error {
	var b strings.Builder
	for _, f := range r.Findings[:min(len(r.Findings), mostShown)] {
		fmt.Fprintf(&b, "%s: %s: %s\n", printable(placeOf(f)), f.Code, printable(shorten(f.Message, widestCell)))
	}
	if r.Found > mostShown {
		fmt.Fprintf(&b, "… and %d more\n", r.Found-mostShown)
	}
	for _, c := range r.Checkpoints {
		fmt.Fprintf(&b, "checkpoint %s of %s: %s\n", printable(c.Name), entries(c.Size), checkpointWords[c.Result])
	}
	for _, what := range r.Unchecked {
		fmt.Fprintf(&b, "not checked: %s\n", printable(what))
	}
	verdict := "verified: nothing is wrong"
	if !r.Verified {
		verdict = fmt.Sprintf("NOT verified: %d findings", r.Found)
		if r.Found == 1 {
			verdict = "NOT verified: 1 finding"
		}
	}
	fmt.Fprintf(&b, "%s\n%s, root %s\n", verdict, entries(r.Size), r.Root)
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

var checkpointWords = map[string]string{
	"agrees": "the log agrees with it", "differs": "the log differs from it", "beyond": "the log does not reach it",
}

// placeOf says where a finding is: the number of the entry, its line in an export, its task and its number there.
func placeOf(f audit.Finding) string {
	var parts []string
	if f.Leaf != nil {
		parts = append(parts, fmt.Sprintf("entry %d", *f.Leaf))
	}
	if f.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", f.Line))
	}
	if f.Task != "" {
		parts = append(parts, "task "+f.Task)
	}
	if f.Step != nil && f.N != nil {
		parts = append(parts, fmt.Sprintf("%d.%d", *f.Step, *f.N))
	}
	if f.Kind != "" {
		parts = append(parts, f.Kind)
	}
	switch {
	case len(parts) > 0:
	case f.Code == audit.Untrusted:
		return "checkpoint"
	default:
		return "state"
	}
	return strings.Join(parts, ", ")
}
