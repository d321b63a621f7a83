package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// spec is one figure: what it compares, and what it should be.
type spec struct {
	name string
	// what says to people which two sides are compared.
	what  string
	goal  float64
	bound bound
	// unit is empty for a ratio.
	unit string
}

// bound says on which side of its goal a figure should be.
type bound string

const (
	atMost  bound = "≤"
	atLeast bound = "≥"
)

func (s spec) met(value float64) bool {
	if s.bound == atMost {
		return value <= s.goal
	}
	return value >= s.goal
}

// side does its work once more and says what one operation of it took, in seconds; where there is no other side, in the
// unit of the spec.
type side func(ctx context.Context) (cost float64, err error)

// duel is what a spec compares. A round's value is the cost of a over that of b, or that of a alone if there is no b.
type duel struct{ a, b side }

// subject is some specs that are measured on the same state.
type subject struct {
	specs []spec
	// open makes the state and gives a duel for each spec. It asserts that each side answers rightly.
	open func(ctx context.Context, e *env) ([]duel, error)
}

// env is what the sides of one subject are made with.
type env struct {
	// dir is a folder of the subject's own, on the disk that is measured.
	dir string
	// quick wants every size as small as can be: the run only shows that everything works.
	quick  bool
	rounds int
	closes []func() error
}

// size is a number of things or of repetitions.
func (e *env) size(full, quick int) int {
	if e.quick {
		return quick
	}
	return full
}

// later calls f when the subject has been measured; what was opened last is closed first.
func (e *env) later(f func() error) { e.closes = append(e.closes, f) }

func (e *env) close() error {
	var errs []error
	for _, f := range slices.Backward(e.closes) {
		errs = append(errs, f())
	}
	return errors.Join(append(errs, os.RemoveAll(e.dir))...)
}

func (e *env) file(name string) string { return filepath.Join(e.dir, name) }

// measured is what came of one spec: a value for each round, and what its sides took.
type measured struct {
	spec
	values, a, b []float64
}

func (m *measured) add(a, b float64) {
	if b == 0 { // there is one side only
		m.values = append(m.values, a)
		return
	}
	m.values, m.a, m.b = append(m.values, a/b), append(m.a, a), append(m.b, b)
}

// measure opens a subject and runs its rounds for the specs that are wanted. In each round every duel has its turn, and
// who goes first changes from round to round, so that whatever else the machine does meets both sides alike.
func (s subject) measure(ctx context.Context, e *env, wanted func(spec) bool) (out []measured, err error) {
	defer func() { err = errors.Join(err, e.close()) }()
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return nil, err
	}
	duels, err := s.open(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("before %s: %w", s.specs[0].name, err)
	}
	if len(duels) != len(s.specs) {
		return nil, fmt.Errorf("%d duels for %d specs", len(duels), len(s.specs))
	}
	all := make([]measured, len(s.specs))
	for round := range e.rounds {
		for i, spec := range s.specs {
			if !wanted(spec) {
				continue
			}
			a, b, err := duels[i].round(ctx, round%2 == 1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", spec.name, err)
			}
			all[i].add(a, b)
		}
	}
	for i, spec := range s.specs {
		if wanted(spec) {
			all[i].spec = spec
			out = append(out, all[i])
		}
	}
	return out, nil
}

// round has each side do its work once. The cost of a side that is not there is 0.
func (d duel) round(ctx context.Context, reversed bool) (a, b float64, err error) {
	first, second := &a, &b
	sides := []side{d.a, d.b}
	if reversed {
		first, second = second, first
		slices.Reverse(sides)
	}
	for i, cost := range []*float64{first, second} {
		if sides[i] == nil {
			continue
		}
		runtime.GC() // nobody pays for what another left behind
		if *cost, err = sides[i](ctx); err == nil && *cost <= 0 {
			err = errors.New("it took no time")
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return a, b, nil
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// any says whether a subject has a spec that is wanted.
func (s subject) any(wanted func(spec) bool) bool { return slices.ContainsFunc(s.specs, wanted) }
