package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/journal"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// followEvery is how often a follower looks whether there is more.
const followEvery = 100 * time.Millisecond

func (a *app) logFollow() *cobra.Command {
	var from, last count
	cmd := &cobra.Command{Use: "follow", Short: "Write entries as they come", Args: args(),
		Long: `Writes each entry once, in the order of the log, and goes on with those that any process appends, until it is interrupted
(Ctrl-C, SIGTERM). It begins with what comes next; --last N begins with the last N entries of the log and --from N with
the one of that number, counted before any filter. --from 0 is everything.

Nobody waits for a follower: one that reads slowly falls behind, and misses nothing. When it ends, standard error has a line
"next: --from N", from which another goes on. If the log is cut, replaced or changed while it is followed, that is an
error.

` + filtersHelp,
		Example: `  govern log follow --format text
  govern log follow --from 0 --kind action
  govern log follow --format opa --last 100`}
	f := filterFlags(cmd)
	format := formatFlag(cmd, formatJSONL, formatOPA, formatText)
	cmd.Flags().Var(&from, "from", "begin with the entry number `N`; the first is 0")
	cmd.Flags().Var(&last, "last", "begin with the last `N` entries")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		if err := f.read(time.Now()); err != nil {
			return err
		}
		switch {
		case from < 0 || last < 0:
			return misuse(errors.New("--from and --last count from 0"))
		case cmd.Flags().Changed("from") && cmd.Flags().Changed("last"):
			return misuse(errors.New("--from and --last exclude each other"))
		}
		ctx := cmd.Context()
		begin := int64(from)
		if !cmd.Flags().Changed("from") {
			head, err := s.store.Head(ctx)
			if err != nil {
				return err
			}
			begin = max(0, head.Size-int64(last))
		}
		walk, err := journal.Begin(ctx, s.store, begin)
		if err != nil {
			return beyond(err)
		}
		lines, err := a.entryLines(ctx, s.store, a.stdout, f, format.choice)
		if err != nil {
			return err
		}
		ticks := time.NewTicker(followEvery)
		defer ticks.Stop()
		return a.follow(ctx, walk, lines, ticking(ticks.C, s.store))
	})
	return cmd
}

// ticking waits for a tick, and sees to it that the state is still the one at its place.
func ticking(ticks <-chan time.Time, store *sqlite.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ticks:
			return store.InPlace()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow ends well when it is interrupted, since nothing else ends it well.
func (a *app) follow(ctx context.Context, walk *journal.Walk, lines *entryLines, wait func(context.Context) error) error {
	next := walk.Next()
	for e, err := range journal.Follow(ctx, walk, wait) {
		if err == nil {
			err = lines.write(e)
		}
		if errors.Is(err, syscall.EPIPE) {
			return err
		}
		if err != nil {
			a.next(next)
			return changedLog(err)
		}
		next = walk.Next()
	}
	a.next(next)
	return nil
}

// next says how to go on behind what was written.
func (a *app) next(n int64) { fmt.Fprintf(a.stderr, "next: --from %d\n", n) }
