package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// state is a state in a folder, with its store closed. Each block of a measurement opens it, so that what one block did to
// caches and to the write-ahead log is not the next one's gain or loss.
type state struct {
	dir string
	// kept says that blocks go on with what the one before them left. Otherwise each works on a copy of its own: then all
	// blocks do exactly the same, however many there are.
	kept   bool
	quick  bool
	copies int
}

// stateFile is the state's file in its folder.
func stateFile(dir string) string { return filepath.Join(dir, "state.db") }

// newState makes a folder with a state and fills it.
func newState(ctx context.Context, e *env, name string, fill func(*sqlite.Store) error) (*state, error) {
	dir := e.file(name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	store, err := sqlite.Open(ctx, stateFile(dir), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	return &state{dir: dir, quick: e.quick}, errors.Join(fill(store), store.Close())
}

// use opens the state, or a copy, for one block.
func (s *state) use(ctx context.Context, block func(*sqlite.Store) (float64, error)) (cost float64, err error) {
	dir := s.dir
	if !s.kept {
		if dir, err = s.copy(); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	store, err := sqlite.Open(ctx, stateFile(dir), sqlite.Options{MustExist: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := s.settle(ctx, store); err != nil {
		return 0, err
	}
	return block(store)
}

// settle brings the write-ahead log to the length that it has in a process that has run for a while, in a tenant of its own:
// what is overwritten is synced in less time than what grows. The small commits give a checkpoint time to end.
func (s *state) settle(ctx context.Context, store *sqlite.Store) error {
	c := dispatch.Commit{Task: dispatch.Task{TaskKey: dispatch.TaskKey{Tenant: "settling", ID: name('t')}, Profile: profile, Actor: who.Actor}}
	c.Task.Revision, c.Entries = 1, s.ballast(c.Task.TaskKey)
	small := 200
	if s.quick {
		small = 1
	}
	for range small {
		if err := store.Apply(ctx, c); err != nil {
			return err
		}
		c.Revision++
		c.Task.Revision++
		c.Entries = nil
	}
	return nil
}

// ballast is entries of 12 MiB in all.
func (s *state) ballast(task dispatch.TaskKey) []dispatch.Entry {
	entries, length := make([]dispatch.Entry, 12), 1<<20
	if s.quick {
		length = 1 << 10
	}
	for i := range entries {
		entries[i] = dispatch.Entry{Task: task, N: i, Kind: dispatch.KindTask, Body: ijson.Raw(`"` + strings.Repeat("x", length) + `"`)}
	}
	return entries
}

// copy makes another state of the same content. It is synced: what is not would be written out while others are measured.
func (s *state) copy() (dir string, err error) {
	s.copies++
	dir = fmt.Sprintf("%s-%d", s.dir, s.copies)
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for _, f := range files {
		if err := copyFile(filepath.Join(dir, f.Name()), filepath.Join(s.dir, f.Name())); err != nil {
			return "", err
		}
	}
	return dir, nil
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
