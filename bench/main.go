// Command bench measures what govern costs, as ratios of two sides that take turns on the same machine: a ratio survives a
// change of machine far better than a time does. docs/performance.md says what each figure means.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// subjects are everything that is measured, in the order of the table.
var subjects = slices.Concat([]subject{decisions}, growth, []subject{applies, whole, outside, verify, start})

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, subjects, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	run    *regexp.Regexp
	rounds int
	quick  bool
	out    string
	dir    string
}

func run(ctx context.Context, subjects []subject, args []string, stdout, stderr io.Writer) error {
	var o options
	var list bool
	var pattern string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&pattern, "run", "", "measure only figures whose name matches this regular `expression`")
	flags.IntVar(&o.rounds, "rounds", 15, "how often the two sides of each figure take turns")
	flags.BoolVar(&o.quick, "quick", false, "one round of the smallest sizes: shows that everything works, and measures nothing")
	flags.StringVar(&o.out, "out", "", "write the results to this `file` as JSON")
	flags.StringVar(&o.dir, "dir", "", "keep the state that is measured in this `folder`; by default in a temporary one that is not in memory")
	flags.BoolVar(&list, "list", false, "list the figures and measure nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || o.rounds < 1 {
		return errors.New("it takes no arguments, and at least one round; see -help")
	}
	var err error
	if o.run, err = regexp.Compile(pattern); err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if list {
		for _, spec := range specsOf(subjects) {
			fmt.Fprintf(stdout, "%-28s %s %-6s %s\n", spec.name, spec.bound, number(spec.goal)+spec.unit, spec.what)
		}
		return nil
	}
	if o.quick {
		o.rounds = 1
	}
	return o.measure(ctx, subjects, stderr)
}

func specsOf(subjects []subject) (specs []spec) {
	for _, s := range subjects {
		specs = append(specs, s.specs...)
	}
	return specs
}

func (o options) wanted(s spec) bool { return o.run.MatchString(s.name) }

// measure runs the subjects one after another. Only when all of them are through does it write results.
func (o options) measure(ctx context.Context, subjects []subject, stderr io.Writer) (err error) {
	if o.out != "" {
		if err := replaceable(o.out); err != nil {
			return fmt.Errorf("-out: %w", err)
		}
	}
	dir, err := o.folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m, err := describe(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%s\n\n%-28s %8s  %-9s %-6s %s\n", m, "figure", "median", "goal", "", "all rounds")
	begun := time.Now()
	r := results{Machine: m}
	for i, s := range subjects {
		if !s.any(o.wanted) {
			continue
		}
		e := &env{dir: filepath.Join(dir, fmt.Sprint(i)), quick: o.quick, rounds: o.rounds}
		of, err := s.measure(ctx, e, o.wanted)
		if err != nil {
			return err
		}
		for _, one := range of {
			r.Ratios = append(r.Ratios, one.ratio())
			fmt.Fprintln(stderr, one)
		}
	}
	if len(r.Ratios) == 0 {
		return fmt.Errorf("no figure is called %s; -list names them", o.run)
	}
	fmt.Fprintf(stderr, "\n%d figures in %s\n", len(r.Ratios), time.Since(begun).Round(time.Second))
	if o.out == "" {
		return nil
	}
	return r.write(o.out)
}

// folder makes the folder that the state is kept in: on a disk, since what is measured is a sync to one.
func (o options) folder() (string, error) {
	parents := []string{o.dir}
	if o.dir == "" {
		parents = []string{os.TempDir(), "/var/tmp", "."}
	}
	for _, parent := range parents {
		kind, err := filesystem(parent)
		if err != nil {
			return "", fmt.Errorf("%s: %w", cmp.Or(o.dir, parent), err)
		}
		if kind != "tmpfs" || o.quick {
			return os.MkdirTemp(parent, "govern-bench-")
		}
	}
	return "", errors.New("in memory a sync costs nothing; name a folder on a disk with -dir")
}
