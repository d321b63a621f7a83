package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// state is a state in files, with its store closed. Each block of a measurement opens it, so that what one block did to
// caches and to the write-ahead log is not the next one's gain or loss.
type state struct {
	file string
	// kept says that blocks go on with what the one before them left. Otherwise each works on a copy of its own: then all
	// blocks do exactly the same, however many there are.
	kept   bool
	copies int
}

// newState makes a state and fills it.
func newState(ctx context.Context, file string, fill func(*sqlite.Store) error) (*state, error) {
	store, err := sqlite.Open(ctx, file, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	return &state{file: file}, errors.Join(fill(store), store.Close())
}

// use opens the state, or a copy, for one block.
func (s *state) use(ctx context.Context, block func(*sqlite.Store) (float64, error)) (cost float64, err error) {
	file := s.file
	if !s.kept {
		if file, err = s.copy(); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, remove(file)) }()
	}
	store, err := sqlite.Open(ctx, file, sqlite.Options{MustExist: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return block(store)
}

// The endings of the files of a state.
var parts = []string{"", ".key"}

// copy makes another state of the same content. It is synced: what is not would be written out while others are measured.
func (s *state) copy() (file string, err error) {
	s.copies++
	file = fmt.Sprintf("%s-%d", s.file, s.copies)
	for _, part := range parts {
		if err := copyFile(file+part, s.file+part); err != nil {
			return "", err
		}
	}
	return file, nil
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}

func remove(file string) error {
	var errs []error
	for _, part := range append(parts, ".lock") {
		errs = append(errs, os.Remove(file+part))
	}
	return errors.Join(errs...)
}

// work is one dispatch that is to be measured, and how it must end.
type work struct {
	task, proposal string
	want           dispatch.Status
}

// dispatches is a block of whole dispatches on a state. plan gives some of them for a caller.
func (s *state) dispatches(snap *dispatch.Snapshot, callers, each int, plan func(caller, n int) []work) side {
	return func(ctx context.Context) (float64, error) {
		var warm, timed []work
		for c := range callers {
			w := plan(c, each+2)
			warm, timed = append(warm, w[:2]...), append(timed, w[2:]...)
		}
		return s.use(ctx, func(store *sqlite.Store) (float64, error) {
			g := newGate(store, snap)
			do := func(work []work) func(int) error {
				return func(i int) error { return g.propose(ctx, work[i].task, work[i].proposal, work[i].want) }
			}
			if _, err := together(callers, len(warm), do(warm)); err != nil {
				return 0, err
			}
			return together(callers, len(timed), do(timed))
		})
	}
}
