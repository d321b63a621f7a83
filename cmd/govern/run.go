package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

func (a *app) runCommand() *cobra.Command {
	var retry int
	var approved bool
	cmd := &cobra.Command{
		Use:   "run [FILE|-]",
		Short: "Dispatch proposals, one JSON object a line",
		Long: `Dispatch the proposals of a file, one a line, or of standard input, for one task.
Each proposal is {"call_id": …, "tool": …, "arguments": {…}}. Each gives one result on standard output, as
soon as it and everything that it says is on record. A summary goes to standard error.

Exit code: 0 if all were ok or replayed, 1 if something is broken, 2 for a mistake in the command, 3 if
something was denied or failed, 4 if something waits for a person, 5 if an outcome is unknown; of several,
the first of 1, 5, 3, 4.`,
		Example: `  govern run examples/warehouse/proposals.jsonl
  govern run --approved            # propose again what a person has approved, and nothing else
  my-agent | govern run --task labels-2 --retry 2 -`,
		Args: func(cmd *cobra.Command, given []string) error {
			if len(given) > 1 {
				return misuse(fmt.Errorf("govern run takes one file, and %q is another", given[1])).hint("usage: " + cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, given []string) error {
			if cmd.Flags().Changed("retry") && (retry < 1 || retry > dispatch.MaxAttempts) {
				return misuse(fmt.Errorf("--retry is %d", retry)).hint("give the number of attempts a proposal, 1 or 2")
			}
			file := "-"
			if len(given) == 1 {
				file = given[0]
			}
			var in io.Reader
			if len(given) == 1 || !approved {
				f, err := a.open(file)
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			s, err := a.start(cmd)
			if err != nil {
				return err
			}
			defer s.close()
			return a.runProposals(cmd.Context(), s, in, retry, approved)
		},
	}
	taskFlags(cmd)
	cmd.Flags().IntVar(&retry, "retry", 0, "attempts a proposal, `1|2`: after a timeout or an unknown outcome that can be repeated, try again; the call id gets -a1 or -a2 at its end")
	cmd.Flags().BoolVar(&approved, "approved", false, "first propose the stored calls that a person has approved")
	return cmd
}

func taskFlags(cmd *cobra.Command) {
	cmd.Flags().String("task", "", "the `ID` of the task (GOVERN_TASK)")
	cmd.Flags().String("actor", "", "on behalf of this `NAME` (GOVERN_ACTOR)")
}

// open opens a file of proposals, or standard input for "-".
func (a *app) open(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(a.stdin), nil
	}
	f, err := os.Open(file)
	if err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a folder", file)
		}
	}
	if err != nil {
		return nil, fileError(file, err)
	}
	return f, nil
}

// fileError names a file that cannot be read, and one beside it that was perhaps meant.
func fileError(file string, err error) error {
	f := misuse(err)
	if !errors.Is(err, fs.ErrNotExist) {
		return f
	}
	entries, _ := os.ReadDir(filepath.Dir(file))
	var names []string
	for _, e := range entries {
		names = append(names, filepath.Join(filepath.Dir(file), e.Name()))
	}
	return f.near(file, names, "check the path; there is no file of that name")
}

func (a *app) runProposals(ctx context.Context, s *system, in io.Reader, retry int, approved bool) error {
	r := &proposals{app: a, system: s, retry: retry, counts: map[dispatch.Status]int{}, shown: time.Now()}
	if err := s.ensureTask(ctx); err != nil {
		return err
	}
	err := r.all(ctx, in, approved)
	r.summary(ctx)
	if err != nil {
		return err
	}
	if r.code != exitOK {
		return quietError(r.code)
	}
	return nil
}

// proposals is one run of the command.
type proposals struct {
	*app
	*system
	retry    int
	progress bool
	n        int
	counts   map[dispatch.Status]int
	order    []dispatch.Status
	code     int
	shown    time.Time
}

func (r *proposals) all(ctx context.Context, in io.Reader, approved bool) error {
	r.progress = isTerminal(r.stderr) && !isTerminal(r.stdout)
	if approved {
		list, err := r.store.Approvals(ctx, r.principal.Tenant, r.config.Task, dispatch.Approved)
		if err != nil {
			return err
		}
		for _, a := range list {
			if a.Actor != r.principal.Actor {
				continue
			}
			if err := r.one(ctx, a.Proposal, 0); err != nil {
				return err
			}
		}
	}
	if in == nil {
		return nil
	}
	l := newLines(in, r.dispatcher.Snapshot().Limits.Bytes)
	for {
		line, length, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return misuse(fmt.Errorf("the proposals end early: %w", err))
		}
		if err := r.one(ctx, line, length); err != nil {
			return err
		}
	}
}

// one dispatches one proposal and prints its result.
func (r *proposals) one(ctx context.Context, line []byte, length int64) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped before proposal %d: %w", r.n+1, err)
	}
	origin := dispatch.Origin{Door: "cli", Length: length}
	var result dispatch.Result
	err := error(dispatch.ErrRetryCallID)
	if r.retry > 0 {
		result, err = r.dispatcher.DispatchRetry(ctx, r.principal, r.config.Task, origin, line, r.retry)
	}
	if errors.Is(err, dispatch.ErrRetryCallID) {
		// It is judged all the same: nothing that arrives goes without an answer and an entry.
		if r.retry > 0 {
			fmt.Fprintf(r.stderr, "proposal %d: dispatched once, without retry: %v\n", r.n+1, err)
		}
		result, err = r.dispatcher.Dispatch(ctx, r.principal, r.config.Task, origin, line)
	}
	if err != nil {
		return fmt.Errorf("proposal %d: %w", r.n+1, err)
	}
	r.n++
	if r.counts[result.Status] == 0 {
		r.order = append(r.order, result.Status)
	}
	r.counts[result.Status]++
	r.code = worst(r.code, statusCode(result))
	if err := writeJSON(r.stdout, result); err != nil {
		return fmt.Errorf("proposal %d was carried out and is on record, but its result could not be written: %w", r.n, err)
	}
	if r.progress && time.Since(r.shown) > time.Second {
		r.shown = time.Now()
		fmt.Fprintf(r.stderr, "\r%d proposals", r.n)
	}
	return nil
}

// summary tells people what came of a run and what they can do about it.
func (r *proposals) summary(ctx context.Context) {
	w := r.stderr
	if r.progress {
		fmt.Fprint(w, "\r")
	}
	if r.n == 0 {
		fmt.Fprintf(w, "no proposals for task %s\n", r.config.Task)
		return
	}
	fmt.Fprintf(w, "%s for task %s under policy %s\n", plural(r.n, "proposal"), r.config.Task, r.dispatcher.Snapshot().Version)
	for _, status := range r.order {
		line := fmt.Sprintf("  %5d %s", r.counts[status], status)
		if remedy := r.remedy(status); remedy != "" {
			line += ": " + remedy
		}
		fmt.Fprintln(w, line)
	}
	t, err := r.store.Task(ctx, r.key())
	if err != nil {
		return
	}
	if p, ok := r.config.Profiles[t.Profile]; ok {
		fmt.Fprintf(w, "  step %d of %d\n", min(t.Steps, p.MaxSteps), p.MaxSteps)
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
