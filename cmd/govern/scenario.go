package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/scenario"
	"github.com/policy-dispatch/govern/internal/snapshot"
	"github.com/policy-dispatch/govern/internal/sqlite"
	"github.com/policy-dispatch/govern/internal/tools"
)

func (a *app) scenarioCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "scenario", Short: "Test a governed task end to end, without Go",
		Long: `A scenario proposes, reviews and changes things on a fresh state in memory, under the given configuration and
policy, and says what must come of it.`,
	})
	cmd.AddCommand(a.scenarioRun())
	return cmd
}

func (a *app) scenarioRun() *cobra.Command {
	cmd := &cobra.Command{Use: "run FILE…", Short: "Run scenarios and compare what comes of them",
		Long: `Run the scenarios of YAML files (one or more documents), JSON files or JSON Lines files (one a line).
Exit code: 0 if every scenario passed, 3 if an expectation failed, 2 if one cannot be run as it is written.`,
		Example: "  govern scenario run scenarios/*.yaml\n  govern scenario run --format junit scenarios/groups.yaml > report.xml",
		Args: func(cmd *cobra.Command, given []string) error {
			if len(given) == 0 {
				return misuse(errors.New("govern scenario run needs a file")).hint("usage: " + cmd.UseLine())
			}
			return nil
		}}
	f := formatFlag(cmd, "text", "json", "junit")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		var all []scenario.Scenario
		for _, file := range files {
			list, err := scenario.Load(file)
			if err != nil {
				return fileError(file, err)
			}
			all = append(all, list...)
		}
		g, err := a.load(cmd)
		if err != nil {
			return err
		}
		var reports []scenario.Report
		failed := 0
		for _, s := range all {
			r, err := scenario.Run(cmd.Context(), world{g}, s)
			if err != nil && cmd.Context().Err() != nil {
				return err
			}
			if err != nil {
				return misuse(err)
			}
			if !r.Passed {
				failed++
			}
			reports = append(reports, r)
			if err := a.report(f, r); err != nil {
				return err
			}
		}
		switch f.choice {
		case "junit":
			if err := writeJUnit(a.stdout, reports); err != nil {
				return err
			}
		case "text":
			fmt.Fprintf(a.stdout, "%s, %d failed\n", plural(len(reports), "scenario"), failed)
		}
		if failed > 0 {
			return quietError(exitDenied)
		}
		return nil
	}
	return cmd
}

func (a *app) report(f *format, r scenario.Report) error {
	switch {
	case f.json():
		return writeJSON(a.stdout, r)
	case f.choice == "junit":
		return nil
	}
	word := "ok  "
	if !r.Passed {
		word = "FAIL"
	}
	name := r.Name
	if r.Category != "" {
		name = r.Category + ": " + name
	}
	fmt.Fprintf(a.stdout, "%s %s\n", word, printable(name))
	for _, p := range r.Failures {
		fmt.Fprintf(a.stdout, "       %s\n", printable(p))
	}
	return nil
}

// world gives scenarios the configuration and policy that the command was given.
type world struct{ governed }

func (w world) Store(ctx context.Context) (scenario.Store, error) { return sqlite.OpenMemory(ctx) }

func (w world) Task(id string) (scenario.TaskSpec, bool) {
	if id == "" {
		id = w.config.Task
	}
	if t, ok := w.config.Tasks[id]; ok {
		return scenario.TaskSpec{ID: id, Actor: t.Actor, Profile: t.Profile}, true
	}
	return scenario.TaskSpec{ID: id, Actor: w.config.Actor}, false
}

func (w world) Roles(reviewer string) []string { return w.config.Reviewers[reviewer].Roles }

func (w world) Wrap(f scenario.Faults, outside map[string]scenario.Answer) (func(map[string]dispatch.Tool) map[string]dispatch.Tool, error) {
	faults := &tools.Faults{ReadFailures: f.ReadFailures, LoseDraftReply: f.LoseDraftReply}
	for _, t := range f.Tools {
		times := 1
		if t.Times != nil {
			times = *t.Times
		}
		faults.Tools = append(faults.Tools, tools.ToolFault{Tool: t.Tool, Fail: tools.Failure(t.Fail), Times: times})
	}
	if err := faults.Check(w.tools); err != nil {
		return nil, err
	}
	upstream := &tools.Upstream{Answers: map[string]tools.UpstreamAnswer{}}
	for _, name := range slices.Sorted(maps.Keys(outside)) {
		if !slices.Contains(w.outside(), name) {
			return nil, fmt.Errorf("outside: %q is no tool outside; those are %q", name, w.outside())
		}
		answer := outside[name]
		if answer.Status < 100 || answer.Status > 599 {
			return nil, fmt.Errorf("outside: %s: status is %d; give the HTTP status that it answers with", name, answer.Status)
		}
		upstream.Answers[name] = tools.UpstreamAnswer{Status: answer.Status, Body: answer.Body}
	}
	return func(registered map[string]dispatch.Tool) map[string]dispatch.Tool {
		return tools.WithFaults(tools.Simulated(registered, upstream), faults)
	}, nil
}

// outside names the tools that are outside of this process.
func (w world) outside() []string {
	var names []string
	for _, name := range w.toolNames() {
		if d := w.tools[name].Definition(); d.IsOutside() {
			names = append(names, name)
		}
	}
	return names
}

// scenarioSet names the set of targets that a scenario's configure step permits.
const scenarioSet = "configured by the scenario"

func (w world) Snapshot(ctx context.Context, s scenario.Setting) (*dispatch.Snapshot, error) {
	p, ok := w.config.Profiles[s.Profile]
	if !ok {
		return nil, fmt.Errorf("there is no profile %q", s.Profile)
	}
	source := w.source
	var err error
	if s.Policy != nil {
		if source, err = snapshot.Source(w.config, s.Policy); err != nil {
			return nil, err
		}
	}
	if s.Tools != nil {
		p.Tools = *s.Tools
	}
	if s.Scopes != nil {
		p.Scopes = *s.Scopes
	}
	if s.MaxSteps != nil {
		p.MaxSteps = *s.MaxSteps
	}
	if s.Readable != nil {
		targets := map[string]bool{}
		for _, t := range *s.Readable {
			targets[t] = true
		}
		data, err := ijson.Marshal(map[string]any{"readable": map[string]any{scenarioSet: targets}})
		if err != nil {
			return nil, err
		}
		if source, err = source.WithData("the scenario", data); err != nil {
			return nil, err
		}
		p.Readable = []string{scenarioSet}
	}
	c := w.config
	c.Profiles = map[string]config.Profile{s.Profile: p}
	if err := c.Detached().CheckNames(source.ReadableSets(), source.WritableSets()); err != nil {
		return nil, err
	}
	_, made, err := snapshot.Compile(ctx, c, source, s.Wrap(w.tools))
	return made, err
}

// JUnit's XML, as far as CI systems read it.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// writeJUnit makes a suite of each category, in the order in which they appear. XML has no way to write some characters,
// and what shows it obeys others; so texts stand in it as people are shown them.
func writeJUnit(w io.Writer, reports []scenario.Report) error {
	var out junitSuites
	at := map[string]int{}
	for _, r := range reports {
		name := r.Category
		if name == "" {
			name = "scenarios"
		}
		i, ok := at[name]
		if !ok {
			i = len(out.Suites)
			at[name] = i
			out.Suites = append(out.Suites, junitSuite{Name: printable(name)})
		}
		s := &out.Suites[i]
		s.Tests++
		c := junitCase{Class: printable(name), Name: printable(r.Name)}
		if !r.Passed {
			s.Failures++
			var failures []string
			for _, f := range r.Failures {
				failures = append(failures, printable(f))
			}
			c.Failure = &junitFailure{Message: failures[0], Text: strings.Join(failures, "\n")}
		}
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
