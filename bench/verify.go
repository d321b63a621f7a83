package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/policy-dispatch/govern/internal/audit"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// verify measures the auditor: how many entries it takes in a second, and what that costs over the least that there is to do
// with the bytes of an export, and over what the obvious reader does first.
var verify = subject{
	specs: []spec{
		{"verify-state", "entries of a state that are verified in a second, with SQLite's own check of the file on another core", 100_000, atLeast, ""},
		{"verify-export", "entries of an export that are verified in a second of one core", 100_000, atLeast, ""},
		{"verify-export/sha256", "verifying an export, over hashing its lines", 10, atMost, ""},
		{"verify-export/decode", "verifying an export, over reading its lines strictly into maps", 0.5, atMost, ""},
	},
	open: func(ctx context.Context, e *env) ([]duel, error) {
		st, lines, err := audited(ctx, e)
		if err != nil {
			return nil, err
		}
		export := append(bytes.Join(lines, []byte("\n")), '\n')
		own := onOneCore(len(lines), func() error {
			r, err := audit.Export(ctx, bytes.NewReader(export), audit.Options{})
			return sound(r, err, len(lines))
		})
		return []duel{
			{a: func(ctx context.Context) (float64, error) {
				start := time.Now()
				r, err := audit.State(ctx, stateFile(st.dir), audit.Options{})
				return float64(len(lines)) / time.Since(start).Seconds(), sound(r, err, len(lines))
			}},
			{a: func(ctx context.Context) (float64, error) {
				before := processorTime()
				_, err := own(ctx)
				return float64(len(lines)) / (processorTime() - before).Seconds(), err
			}},
			{own, onOneCore(len(lines), func() error {
				for _, line := range lines {
					sha256.Sum256(line)
				}
				return nil
			})},
			{own, onOneCore(len(lines), func() error {
				for _, line := range lines {
					var members map[string]any
					if err := ijson.Unmarshal(line, &members); err != nil {
						return err
					}
				}
				return nil
			})},
		}, nil
	},
}

func sound(r audit.Report, err error, entries int) error {
	if err == nil && (!r.Verified || r.Size != int64(entries)) {
		err = fmt.Errorf("the wrong answer: %d entries and %d findings, beginning with %+v", r.Size, r.Found, r.Findings[:min(len(r.Findings), 1)])
	}
	return err
}

// onOneCore is a side that does its work once, as n operations, with one core for all of its goroutines.
func onOneCore(n int, work func() error) side {
	return func(context.Context) (float64, error) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		start := time.Now()
		err := work()
		return time.Since(start).Seconds() / float64(n), err
	}
}

// audited makes a state in which many tasks each read, calculate, are denied, ask, are approved and write. It gives the
// lines of its export as well.
func audited(ctx context.Context, e *env) (st *state, lines [][]byte, err error) {
	t, err := sample()
	if err != nil {
		return nil, nil, err
	}
	st, err = newState(ctx, e, "audited", func(store *sqlite.Store) error {
		g := newGate(store, t.made.Snapshot)
		return prepare(e.size(5_000, 5), func(int) error {
			task, note := name('t'), draft("labels-note")
			return errors.Join(
				g.create(ctx, task),
				g.propose(ctx, task, read(readable), dispatch.StatusOK),
				g.propose(ctx, task, calculate("calculate"), dispatch.StatusOK),
				g.propose(ctx, task, read(unreadable), dispatch.StatusResourceDenied),
				g.propose(ctx, task, note, dispatch.StatusApprovalRequired),
				g.approve(ctx, task, note),
				g.propose(ctx, task, note, dispatch.StatusOK),
			)
		})
	})
	if err != nil {
		return nil, nil, err
	}
	r, err := sqlite.OpenReader(ctx, stateFile(st.dir))
	if err != nil {
		return nil, nil, err
	}
	for entry, err := range r.EntriesFrom(ctx, 0) {
		if err != nil {
			return nil, nil, errors.Join(err, r.Close())
		}
		lines = append(lines, entry.Body)
	}
	return st, lines, r.Close()
}
