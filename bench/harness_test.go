package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// costs gives one cost after another, and writes down whose turn it was.
func costs(turns *strings.Builder, name string, all ...float64) side {
	return func(context.Context) (float64, error) {
		turns.WriteString(name)
		cost := all[0]
		all = all[1:]
		return cost, nil
	}
}

func fixed(duels ...duel) subject {
	var s subject
	for i := range duels {
		s.specs = append(s.specs, spec{"figure-" + string(rune('a'+i)), "this over that", 2, atMost, ""})
	}
	s.open = func(context.Context, *env) ([]duel, error) { return duels, nil }
	return s
}

// measureAll measures subjects of a test, and gives what was written. That is quick, so that any folder will do.
func measureAll(t *testing.T, rounds int, pattern string, subjects ...subject) (results, error) {
	t.Helper()
	o := options{run: regexp.MustCompile(pattern), rounds: rounds, quick: true, dir: t.TempDir(), out: filepath.Join(t.TempDir(), "results.json")}
	err := o.measure(t.Context(), subjects, io.Discard)
	var r results
	if b, readErr := os.ReadFile(o.out); readErr == nil {
		require.NoError(t, json.Unmarshal(b, &r))
	}
	return r, err
}

func TestSidesTakeTurns(t *testing.T) {
	var turns strings.Builder
	two := duel{costs(&turns, "a", 6, 1, 10), costs(&turns, "b", 2, 1, 2)}
	other := duel{a: costs(&turns, "c", 7, 8, 9)}
	r, err := measureAll(t, 3, "", fixed(two, other))
	require.NoError(t, err)
	assert.Equal(t, "abc"+"bac"+"abc", turns.String())
	// The rounds' ratios are 3, 1 and 5; the ratio of the medians, 6 over 2, is 3 as well, and that of the sums is not.
	assert.Equal(t, []ratio{{"figure-a", 3, 2, false, 3}, {"figure-b", 8, 2, false, 3}}, r.Ratios)
	assert.NotEmpty(t, r.Machine)
}

func TestMedianIsOfTheRatios(t *testing.T) {
	var turns strings.Builder
	// A round in which the machine was slow is slow for both.
	r, err := measureAll(t, 3, "", fixed(duel{costs(&turns, "a", 2, 40, 3), costs(&turns, "b", 1, 20, 3)}))
	require.NoError(t, err)
	assert.InDelta(t, 2, r.Ratios[0].Value, 0)
	r, err = measureAll(t, 2, "", fixed(duel{costs(&turns, "a", 1, 4), costs(&turns, "b", 1, 2)}))
	require.NoError(t, err)
	assert.InDelta(t, 1.5, r.Ratios[0].Value, 0, "between the two of an even number")
}

func TestGoals(t *testing.T) {
	for _, tt := range []struct {
		bound bound
		value float64
		met   bool
	}{
		{atMost, 1.19, true}, {atMost, 1.2, true}, {atMost, 1.21, false},
		{atLeast, 1.19, false}, {atLeast, 1.2, true}, {atLeast, 1.21, true},
	} {
		assert.Equal(t, tt.met, spec{goal: 1.2, bound: tt.bound}.met(tt.value), "%v %s 1.2", tt.value, tt.bound)
	}
	// What is written decides: nobody should read 1.2, at most 1.2, and missed.
	m := measured{spec: spec{name: "x", goal: 1.2, bound: atMost}, values: []float64{1.2004}}
	assert.Equal(t, ratio{"x", 1.2, 1.2, true, 1}, m.ratio())
}

// A line is for people: three digits, and no powers of ten.
func TestLineOfAFigure(t *testing.T) {
	m := measured{spec: spec{name: "x", goal: 2, bound: atMost}, values: []float64{1.2345, 1234.5}, a: []float64{1.1449}, b: []float64{0.0000123456}}
	assert.Equal(t, "x                                 618  ≤ 2       missed 1.23–1230 (2)  1140000 µs over 12.3 µs", m.String())
}

func TestRunChoosesFigures(t *testing.T) {
	var turns strings.Builder
	unwanted := subject{specs: []spec{{name: "elsewhere"}}, open: func(context.Context, *env) ([]duel, error) {
		return nil, errors.New("nobody asked for this")
	}}
	r, err := measureAll(t, 1, "^figure-b$", unwanted, fixed(duel{a: costs(&turns, "a")}, duel{a: costs(&turns, "b", 1)}))
	require.NoError(t, err)
	require.Len(t, r.Ratios, 1)
	assert.Equal(t, "figure-b", r.Ratios[0].Name)
	assert.Equal(t, "b", turns.String())

	_, err = measureAll(t, 1, "nothing", unwanted)
	assert.ErrorContains(t, err, "no figure is called nothing")
}

// One wrong answer, and there are no results at all: the old ones stay.
func TestNoResultsFromWrongAnswers(t *testing.T) {
	var turns strings.Builder
	wrong := errors.New("the wrong answer")
	broken := duel{a: costs(&turns, "a", 1, 1), b: func(context.Context) (float64, error) { return 0, wrong }}
	unopened := subject{specs: []spec{{name: "figure"}}, open: func(context.Context, *env) ([]duel, error) { return nil, wrong }}
	for name, s := range map[string]subject{"in a round": fixed(broken), "before the first": unopened} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "results.json")
			require.NoError(t, os.WriteFile(out, []byte("old"), 0o600))
			good := fixed(duel{a: func(context.Context) (float64, error) { return 1, nil }})
			err := run(t.Context(), []subject{good, s}, []string{"-dir", t.TempDir(), "-quick", "-out", out}, io.Discard, io.Discard)
			require.ErrorIs(t, err, wrong)
			b, err := os.ReadFile(out)
			require.NoError(t, err)
			assert.Equal(t, "old", string(b))
			left, err := os.ReadDir(filepath.Dir(out))
			require.NoError(t, err)
			assert.Len(t, left, 1)
		})
	}
}

// A file that could not be written is refused before a quarter of an hour goes into it.
func TestResultsThatCouldNotBeWritten(t *testing.T) {
	dir := t.TempDir()
	s := subject{specs: []spec{{name: "figure"}}, open: func(context.Context, *env) ([]duel, error) {
		return nil, errors.New("it is measured")
	}}
	for out, why := range map[string]string{
		filepath.Join(dir, "none", "results.json"): "no such file or directory",
		dir:                                "is a folder",
		filepath.Join(dir, "results.json"): "it is measured",
	} {
		assert.ErrorContains(t, run(t.Context(), []subject{s}, []string{"-dir", dir, "-quick", "-out", out}, io.Discard, io.Discard), why)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// What a subject opened is closed, last first, and its folder is gone, also when a round fails.
func TestNothingIsLeft(t *testing.T) {
	for name, err := range map[string]error{"measured": nil, "failed": errors.New("no")} {
		t.Run(name, func(t *testing.T) {
			var closed []string
			var kept string
			s := fixed(duel{a: func(context.Context) (float64, error) { return 1, err }})
			s.open = func(_ context.Context, e *env) ([]duel, error) {
				kept = e.dir
				e.later(func() error { closed = append(closed, "first"); return nil })
				e.later(func() error { closed = append(closed, "second"); return nil })
				return []duel{{a: func(context.Context) (float64, error) { return 1, err }}}, os.WriteFile(e.file("x"), nil, 0o600)
			}
			dir := t.TempDir()
			assert.ErrorIs(t, run(t.Context(), []subject{s}, []string{"-dir", dir, "-quick"}, io.Discard, io.Discard), err)
			assert.Equal(t, []string{"second", "first"}, closed)
			assert.NoDirExists(t, kept)
			left, readErr := os.ReadDir(dir)
			require.NoError(t, readErr)
			assert.Empty(t, left)
		})
	}
}

func TestTogether(t *testing.T) {
	did := make([]int, 12)
	_, err := together(4, len(did), func(i int) error { did[i]++; return nil })
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, did)

	failed := errors.New("no")
	_, err = together(4, 12, func(i int) error {
		if i == 7 {
			return failed
		}
		return nil
	})
	require.ErrorIs(t, err, failed)
	require.ErrorIs(t, prepare(1000, func(int) error { return failed }), failed)
	require.NoError(t, prepare(12, func(i int) error { did[i]++; return nil }))
	assert.Equal(t, []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, did)
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"more"}, {"-run", "("}, {"-no-such-flag"}, {"-dir", filepath.Join(t.TempDir(), "none")}} {
		assert.Error(t, run(t.Context(), nil, args, io.Discard, io.Discard), args)
	}
	var list bytes.Buffer
	require.NoError(t, run(t.Context(), []subject{fixed(duel{})}, []string{"-list"}, &list, io.Discard))
	assert.Equal(t, "figure-a                     ≤ 2      this over that\n", list.String())
}
