package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/nearest"
)

func (a *app) runCommand() *cobra.Command {
	var retry int
	var approved, dryRun bool
	cmd := &cobra.Command{
		Use:   "run [FILE|-]",
		Short: "Dispatch proposals, one JSON object a line",
		Long: `Dispatch the proposals of a file, one a line, or of standard input, for one task.
Each proposal is {"call_id": …, "tool": …, "arguments": {…}}. Each gives one result on standard output, as
soon as it and everything that it says is on record. A summary goes to standard error.

Exit code: 0 if all were ok, replayed or simulated, 1 if something is broken or a signal stopped the run, 2 for a
mistake in the command, 3 if something was denied or failed, 4 if something waits for a person, 5 if an outcome is
unknown; of several, the first of 1, 5, 3, 4.`,
		Example: `  govern run examples/warehouse/proposals.jsonl
  govern run --approved            # propose again what a person has approved, and nothing else
  my-agent | govern run --task labels-2 --retry 2 -`,
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, given []string) error {
			if cmd.Flags().Changed("retry") && (retry < 1 || retry > dispatch.MaxAttempts) {
				return misuse(fmt.Errorf("--retry is %d", retry)).hint("give the number of attempts a proposal, 1 or 2")
			}
			var file string
			switch {
			case len(given) == 1:
				file = given[0]
			case !approved:
				file = "-"
			}
			var in io.Reader
			if file != "" {
				f, err := a.open(cmd.Context(), file)
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			l, err := a.startLive(cmd)
			if err != nil {
				return err
			}
			defer l.now.Load().close()
			ticker := time.NewTicker(l.now.Load().config.Log.Interval())
			defer ticker.Stop()
			end := a.keepCheckpoints(cmd.Context(), l.now.Load(), ticker.C)
			err = a.runProposals(cmd.Context(), l, in, &proposals{file: file, retry: retry, approved: approved, dryRun: dryRun})
			if failures := end(); failures > 0 {
				a.warn(plural(failures, "attempt") + " to write a checkpoint failed; see above, and write one with: govern log checkpoint --to FILE")
			}
			return err
		},
	}
	taskFlags(cmd)
	cmd.Flags().Var((*count)(&retry), "retry", "attempts a proposal, `1|2`: after a timeout or an unknown outcome that can be repeated, try again; the call id gets -a1 or -a2 at its end. (The built-in tools come to neither by themselves.)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "judge everything for real, and run nothing that would change something")
	cmd.Flags().BoolVar(&approved, "approved", false, "first propose the stored calls that a person has approved")
	return cmd
}

func taskFlags(cmd *cobra.Command) {
	cmd.Flags().String("task", "", "the `ID` of the task (GOVERN_TASK)")
	cmd.Flags().String("actor", "", "on behalf of this `NAME` (GOVERN_ACTOR)")
}

// open opens a file that is to be read, or standard input for "-". A named pipe opens once somebody writes to it, so that it ends
// with ctx.
func (a *app) open(ctx context.Context, file string) (io.ReadCloser, error) {
	if file == "-" {
		if isTerminal(a.stdin) {
			fmt.Fprintln(a.stderr, "reading from this terminal; end with Ctrl-D")
		}
		return io.NopCloser(a.stdin), nil
	}
	f, err := await(ctx, func() (*os.File, error) { return os.Open(file) })
	if err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && info.IsDir() {
			err = errors.Join(f.Close(), &fs.PathError{Op: "read", Path: file, Err: syscall.EISDIR})
		}
	}
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil, err
	case err != nil:
		return nil, fileError(file, err)
	}
	return f, nil
}

// fileError says what a person can do about a file that cannot be read. One that does not exist may be mistyped.
func fileError(file string, err error) error {
	f := misuse(err)
	switch {
	case errors.Is(err, syscall.EISDIR):
		return f.hint("it is a folder; name a file in it")
	case errors.Is(err, fs.ErrPermission):
		return f.hint("let this user read it")
	case !errors.Is(err, fs.ErrNotExist):
		return f
	}
	folder, name := filepath.Split(file)
	entries, _ := os.ReadDir(filepath.Clean(folder))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if near, ok := nearest.Name(name, names); ok && near != name {
		return f.hint("did you mean " + folder + near + "?")
	} else if ok {
		return f.hint("it is a link to a file that is not there")
	}
	return f.hint("check the path; there is no file of that name")
}

func (a *app) runProposals(ctx context.Context, l *live, in io.Reader, r *proposals) error {
	r.app, r.live, r.system, r.shown = a, l, l.now.Load(), time.Now()
	r.counts, r.remedies = map[dispatch.Status]int{}, map[dispatch.Status]string{}
	if err := r.ensureTask(ctx); err != nil {
		return err
	}
	err := r.all(ctx, in)
	r.summary(context.WithoutCancel(ctx), err != nil) // of a run that was stopped, too
	if err != nil {
		return r.ended(err)
	}
	if r.code != exitOK {
		return quietError(r.code)
	}
	return nil
}

// ended is the error of a run that stopped early. What was judged before counts for the exit code too, and once
// anything was judged the command itself was no mistake.
func (r *proposals) ended(err error) error {
	code := exitCode(err)
	if code == exitMisuse && r.n > 0 {
		code = exitBroken
	}
	if code != exitMisuse {
		code = worst(r.code, code)
	}
	return &failure{code: code, err: err, fix: hint(err)}
}

// proposals is one run of the command.
type proposals struct {
	*app
	live *live
	// system is that of the last proposal.
	*system
	// file is where the proposals come from, empty if there are only the approved ones.
	file     string
	retry    int
	approved bool
	dryRun   bool
	progress bool
	n        int
	counts   map[dispatch.Status]int
	remedies map[dispatch.Status]string // of the first result with that status
	order    []dispatch.Status
	code     int
	shown    time.Time
}

func (r *proposals) all(ctx context.Context, in io.Reader) error {
	r.progress = isTerminal(r.stderr) && !isTerminal(r.stdout)
	if r.approved {
		list, err := r.store.Approvals(ctx, r.principal.Tenant, r.config.Task, dispatch.Approved)
		if err != nil {
			return err
		}
		for _, a := range list {
			if a.Actor != r.principal.Actor || a.Mode != r.mode(r.dryRun) {
				continue
			}
			exact, err := r.store.Approval(ctx, r.principal.Tenant, a.ID)
			if err != nil {
				return err
			}
			if exact.State != dispatch.Approved {
				continue // another was quicker
			}
			call, err := r.dispatcher.CallOf(exact)
			if err != nil {
				return fmt.Errorf("approval %s: %w", a.ID, err)
			}
			if err := r.one(ctx, call, 0); err != nil {
				return err
			}
		}
	}
	if in == nil {
		return nil
	}
	l := newLines(in, r.dispatcher.Snapshot().Limits.Bytes)
	for {
		line, length, err := l.wait(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && ctx.Err() != nil:
			return r.stopped(ctx, err)
		case err != nil:
			return misuse(fmt.Errorf("the proposals end early: %w", err))
		}
		if err := r.one(ctx, line, length); err != nil {
			return err
		}
	}
}

// stopped is the error of a run that ends between two proposals.
func (r *proposals) stopped(ctx context.Context, err error) error {
	err = fmt.Errorf("stopped before proposal %d: %w", r.n+1, err)
	if ctx.Err() == nil {
		return err
	}
	return (&failure{code: exitBroken, err: err}).hint("what came before is on record, and nothing of what comes from there on was judged")
}

// one dispatches one proposal and prints its result.
func (r *proposals) one(ctx context.Context, line []byte, length int64) error {
	s, err := r.live.system(ctx, r.note)
	if err != nil {
		return r.stopped(ctx, err)
	}
	r.system = s
	origin := dispatch.Origin{Door: "cli", Mode: r.mode(r.dryRun), Length: length}
	var result dispatch.Result
	err = dispatch.ErrRetryCallID
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
		r.remedies[result.Status] = r.remedy(result)
	}
	r.counts[result.Status]++
	r.code = worst(r.code, statusCode(result))
	if err := writeJSON(r.stdout, result); err != nil {
		return &failure{code: exitBroken, err: fmt.Errorf("proposal %d was carried out and is on record, but its result could not be written: %w", r.n, err)}
	}
	if r.progress && time.Since(r.shown) > time.Second {
		r.shown = time.Now()
		fmt.Fprintf(r.stderr, "\r%d proposals", r.n)
	}
	return nil
}

// note tells people what happens between two proposals.
func (r *proposals) note(format string, args ...any) {
	if r.progress {
		fmt.Fprint(r.stderr, "\r")
	}
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(fmt.Sprintf(format, args...)), "\n") {
		lines = append(lines, printable(line))
	}
	r.complain(lines)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
