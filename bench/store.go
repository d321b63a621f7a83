package main

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// applies compares the store's Apply with the disk below it, with itself for many callers, and with the obvious program.
var applies = subject{
	specs: []spec{
		{"apply/sync", "a commit of one caller, over 4 KiB written in place and synced (medians within a round)", 1.4, atMost, ""},
		{"apply-8/1", "commits a second of 8 callers, over those of one", 4, atLeast, ""},
		{"apply-64/1", "commits a second of 64 callers, over those of one", 12, atLeast, ""},
		{"apply-256/1", "commits a second of 256 callers, over those of one", 18, atLeast, ""},
		{"apply-64/sql", "commits a second of 64 callers, over those of database/sql with one transaction a commit", 8, atLeast, ""},
	},
	open: func(ctx context.Context, e *env) ([]duel, error) {
		t, err := sample()
		if err != nil {
			return nil, err
		}
		b := block{template: t}
		few, some, many := e.size(8, 2), e.size(64, 3), e.size(256, 4)
		if b.state, b.commits, err = t.commits(ctx, e, e.size(4096, 4)+warmUp); err != nil {
			return nil, err
		}
		floor, err := newFloor(e)
		if err != nil {
			return nil, err
		}
		one := e.size(200, 3)
		alone := b.apply(1, one)
		return []duel{
			{b.applyEach(one), func(context.Context) (float64, error) { return middle(one, floor.sync) }},
			{alone, b.apply(few, few*e.size(64, 1))},
			{alone, b.apply(some, some*e.size(64, 1))},
			{alone, b.apply(many, many*e.size(16, 1))},
			{b.better(some, some*e.size(8, 1)), b.apply(some, some*e.size(64, 1))},
		}, nil
	},
}

// warmUp is how many commits come before those that are measured: the first ones open connections and prepare statements.
const warmUp = 64

// block is commits, and the state that they can be applied to.
type block struct {
	template
	*state
	commits []dispatch.Commit
}

// run warms apply up with the first commits and measures some of the others.
func (b block) run(apply func(dispatch.Commit) error, measure func(op func(int) error) (float64, error)) (float64, error) {
	first, rest := b.commits[:warmUp], b.commits[warmUp:]
	if err := prepare(warmUp, func(i int) error { return apply(first[i]) }); err != nil {
		return 0, err
	}
	return measure(func(i int) error { return apply(rest[i]) })
}

// look asserts that a store has the n commits that were measured, as far as the first and the last of them show.
func (b block) look(ctx context.Context, store *sqlite.Store, n int) error {
	rest := b.commits[warmUp:]
	return errors.Join(b.arrived(ctx, store, rest[0]), b.arrived(ctx, store, rest[n-1]))
}

// apply is n commits of some callers together.
func (b block) apply(callers, n int) side {
	return b.side(n, func(op func(int) error) (float64, error) { return together(callers, n, op) })
}

// applyEach is n commits of one caller, each timed by itself.
func (b block) applyEach(n int) side {
	return b.side(n, func(op func(int) error) (float64, error) { return middle(n, op) })
}

func (b block) side(n int, measure func(op func(int) error) (float64, error)) side {
	return func(ctx context.Context) (float64, error) {
		return b.use(ctx, func(store *sqlite.Store) (float64, error) {
			cost, err := b.run(func(c dispatch.Commit) error { return store.Apply(ctx, c) }, measure)
			if err != nil {
				return 0, err
			}
			return cost, b.look(ctx, store, n)
		})
	}
}

// floor is a file whose blocks are all there already, so that a sync writes nothing but data.
type floor struct {
	file   *os.File
	block  []byte
	blocks int64
}

func newFloor(e *env) (*floor, error) {
	file, err := os.Create(e.file("floor"))
	if err != nil {
		return nil, err
	}
	e.later(file.Close)
	f := &floor{file, bytes.Repeat([]byte{7}, 4096), int64(e.size(4096, 16))}
	for i := range f.blocks {
		if _, err := file.WriteAt(f.block, i*4096); err != nil {
			return nil, err
		}
	}
	return f, file.Sync()
}

func (f *floor) sync(i int) error {
	if _, err := f.file.WriteAt(f.block, int64(i)%f.blocks*4096); err != nil {
		return err
	}
	return syncData(f.file)
}
