package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// results is the file that a run writes.
type results struct {
	Machine string  `json:"machine"`
	Ratios  []ratio `json:"ratios"`
}

// ratio is one figure: the median of its rounds.
type ratio struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Goal  float64 `json:"goal"`
	Met   bool    `json:"met"`
	// N counts the rounds.
	N int `json:"n"`
}

func (m measured) ratio() ratio {
	value := threeDigits(median(m.values))
	return ratio{Name: m.name, Value: value, Goal: m.goal, Met: m.met(value), N: len(m.values)}
}

// String is the figure's line of the table that is printed.
func (m measured) String() string {
	r := m.ratio()
	verdict := "met"
	if !r.Met {
		verdict = "missed"
	}
	line := fmt.Sprintf("%-28s %8s  %-9s %-6s %s–%s (%d)", r.Name, number(r.Value), string(m.bound)+" "+number(r.Goal)+m.unit, verdict,
		short(slices.Min(m.values)), short(slices.Max(m.values)), r.N)
	if m.b != nil {
		line += fmt.Sprintf("  %s over %s", micro(m.a), micro(m.b))
	}
	return line
}

// micro is the median of some times, for people alone: on another machine, or at another hour, it is another one.
func micro(seconds []float64) string { return short(1e6*median(seconds)) + " µs" }

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func short(v float64) string { return number(threeDigits(v)) }

// threeDigits are more than the machine is good for.
func threeDigits(v float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return rounded
}

// write puts the file in place whole or not at all.
func (r results) write(file string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return replace(file, append(b, '\n'))
}

// replaceable says why a file could not be put in place, before there is anything to put there.
func replaceable(file string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder; name a file in it", file)
	}
	f, err := temporary(file)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// temporary makes a file beside the one whose place it is to take.
func temporary(file string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
}

func replace(file string, content []byte) error {
	f, err := temporary(file)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
