package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/checkpoint"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
)

func (a *app) logCheckpoint() *cobra.Command {
	var to []string
	var every time.Duration
	cmd := &cobra.Command{Use: "checkpoint", Short: "Print what the log is now, signed", Args: args(),
		Long: `Print a checkpoint of the log: its name, how many entries it has and the hash that covers all of them, signed with the
keys of govern key new. Whoever keeps one elsewhere can tell later that the log was cut, changed or replaced.
The form is C2SP's tlog-checkpoint, which other tools read too.

--to writes it to a file, whole or not at all, or sends it to a URL with PUT. What a file holds is only replaced by a
checkpoint of a log that has grown from it. With --every the command goes on until it is interrupted, and prints and
writes a checkpoint whenever the log has grown. (A run does that by itself where the configuration names log.checkpoints.)`,
		Example: "  govern log checkpoint --to /mnt/auditor/govern.checkpoint\n  govern log checkpoint --to https://example.com/govern --every 60s"}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringArrayVar(&to, "to", nil, "also write it to this `FILE|URL`; may be repeated")
	cmd.Flags().DurationVar(&every, "every", 0, "go on, and look this `TIME` apart whether the log has grown, 1s to 24h")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		if cmd.Flags().Changed("every") && (every < config.LeastEvery || every > config.MostEvery) {
			return misuse(fmt.Errorf("--every is %s", every)).hint(fmt.Sprintf("give a duration with its unit, %s to %s", config.LeastEvery, config.MostEvery))
		}
		p := s.publisher()
		p.Targets = nil
		for _, text := range to {
			t, err := checkTarget(text, s.config)
			if err != nil {
				return misuse(fmt.Errorf("--to: %w", err))
			}
			p.Targets = append(p.Targets, t)
		}
		return a.checkpoints(cmd.Context(), s, p, f, every)
	})
	return cmd
}

// checkTarget reads where checkpoints are to be kept.
func checkTarget(text string, c config.Config) (checkpoint.Target, error) {
	t, err := checkpoint.ParseTarget(text)
	switch {
	case err != nil:
	case c.Log.TokenFile != "" && !t.TakesToken():
		err = checkpoint.ErrTokenInTheOpen
	case t.File() != "" && ofState(t.File(), c):
		err = fmt.Errorf("%s is the state or lies beside it under a name of the state's own; name another file for the checkpoint, best on another disk", t.File())
	}
	return t, err
}

// ofState says whether a file is the state, or has a name that the state has for its own beside it. To open one would
// already free the locks that SQLite has on it.
func ofState(file string, c config.Config) bool {
	file, state := wholePath(file), wholePath(c.State)
	own, beside := strings.CutPrefix(file, state)
	return beside && (own == "" || strings.HasPrefix(own, "-") || own == ".key" || own == ".lock") || file == wholePath(signingKeyFile(c))
}

// wholePath is where a file is, or will be, links followed.
func wholePath(file string) string {
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		return real
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		return filepath.Join(folder, filepath.Base(file))
	}
	return file
}

// targets reads where the configuration wants checkpoints kept.
func targets(c config.Config) ([]checkpoint.Target, error) {
	var all []checkpoint.Target
	var wrong []error
	for i, text := range c.Log.Checkpoints {
		t, err := checkTarget(text, c)
		if err != nil {
			wrong = append(wrong, c.Fault("/log/checkpoints/"+strconv.Itoa(i), err.Error()))
		}
		all = append(all, t)
	}
	return all, errors.Join(wrong...)
}

// publisher writes checkpoints to where the configuration wants them kept.
func (s *system) publisher() *checkpoint.Publisher {
	return &checkpoint.Publisher{
		Log: s.store, Keys: s.signingKeys, Targets: s.targets, TokenFile: s.config.Log.TokenFile,
		Hold: func(ctx context.Context) (func(), error) {
			return s.store.Hold(ctx, dispatch.TaskKey{ID: "checkpoints"})
		},
	}
}

// continues refuses a state whose log does not go on from the checkpoints that are kept of it.
func (s *system) continues(ctx context.Context) error {
	err := s.publisher().Check(ctx, s.keyring().Trusted)
	if kept, ok := errors.AsType[*checkpoint.KeptError](err); ok {
		return misuse(err).hint(kept.Remedy() + "; govern log verify shows what the state holds")
	}
	return keyError(err)
}

// checkpointView is a checkpoint as programs read it.
type checkpointView struct {
	Origin     string `json:"origin"`
	Size       int64  `json:"size"`
	Root       string `json:"root"`
	Checkpoint string `json:"checkpoint"`
}

// checkpoints prints and writes a checkpoint; and with an interval goes on until the context ends.
func (a *app) checkpoints(ctx context.Context, s *system, p *checkpoint.Publisher, f *format, every time.Duration) error {
	printed := ""
	write := func(ctx context.Context) (failed []error, err error) {
		keys, err := s.signingKeys(ctx)
		if err != nil {
			return nil, err
		}
		c, signed, err := checkpoint.Fresh(ctx, s.store, keys)
		if err != nil {
			return nil, err
		}
		failed = publishErrors(p.Publish(ctx), p.Targets)
		if slices.ContainsFunc(failed, func(err error) bool { return errors.As(err, new(*checkpoint.KeptError)) }) {
			return failed, nil // what is not the log of a kept checkpoint is not shown as signed either
		}
		if string(signed) != printed {
			printed = string(signed)
			if f.json() {
				err = writeJSON(a.stdout, checkpointView{c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]), printed})
			} else {
				_, err = fmt.Fprint(a.stdout, printed)
			}
			if err != nil {
				return nil, err
			}
		}
		return failed, nil
	}
	if every == 0 {
		failed, err := write(ctx)
		return errors.Join(append(failed, err)...)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	complain := func(failed []error) {
		for _, err := range failed {
			a.complain(append(linesOf(err), hint(err)))
		}
	}
	for ctx.Err() == nil {
		failed, err := write(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		complain(failed)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	failed, err := write(last)
	complain(failed)
	if err == nil && len(failed) > 0 {
		err = quietError(exitBroken)
	}
	return err
}

// publishErrors gives the errors in the order of the targets, each with what a person can do.
func publishErrors(failed map[checkpoint.Target]error, targets []checkpoint.Target) []error {
	var all []error
	for _, t := range targets {
		err := failed[t]
		if kept, ok := errors.AsType[*checkpoint.KeptError](err); ok {
			err = (&failure{code: exitDenied, err: err}).hint(kept.Remedy())
		}
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// lastWrite is how long the end of a run waits for its checkpoints to be written.
const lastWrite = 15 * time.Second

// keepCheckpoints writes checkpoints to where the configuration wants them kept, at once, at every tick and when the run
// ends, which is when end is called. Nothing waits for it, and nothing of it stops a run; end gives how many attempts
// failed, and what failed is told when it is another thing than before.
func (a *app) keepCheckpoints(ctx context.Context, s *system, ticks <-chan time.Time) (end func() (failures int)) {
	if len(s.targets) == 0 {
		return func() int { return 0 }
	}
	p, told, failures := s.publisher(), map[string]bool{}, 0
	write := func(ctx context.Context) {
		errs := publishErrors(p.Publish(ctx), p.Targets)
		if errors.Is(ctx.Err(), context.Canceled) {
			return // the last one comes yet
		}
		failures += len(errs)
		now := map[string]bool{}
		for _, err := range errs {
			message := err.Error()
			if fix := hint(err); fix != "" {
				message += "; " + fix
			}
			if now[message] = true; !told[message] {
				a.warn(message)
			}
		}
		told = now
	}
	during, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		write(during)
		for {
			select {
			case <-ticks:
				write(during)
			case <-during.Done():
				return
			}
		}
	}()
	return func() int {
		stop()
		<-done
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
		defer cancel()
		write(last)
		return failures
	}
}
