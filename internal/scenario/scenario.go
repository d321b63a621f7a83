// Package scenario runs end-to-end tests of a governed task that are written without Go: a task, what is
// proposed, reviewed and changed, and what must come of it.
package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/strictyaml"
)

// Scenario is one test, run on a fresh state.
type Scenario struct {
	// Name says what the scenario shows.
	Name string `json:"name"`
	// Category groups scenarios, so that a failure in one cannot hide behind another's success.
	Category string   `json:"category"`
	Task     TaskSpec `json:"task"`
	Faults   Faults   `json:"faults"`
	// Outside says what tools outside answer, by name. None of them is ever called: one that is not named cannot be reached.
	Outside map[string]Answer `json:"outside"`
	Steps   []Step            `json:"steps"`
	Expect  *Expect           `json:"expect"`

	dir string // of its file: paths of policies are relative to it
}

// TaskSpec is the task under test. What it leaves out is that of the configured task of the same id.
type TaskSpec struct {
	ID       string `json:"id"`
	Actor    string `json:"actor"`
	Profile  string `json:"profile"`
	MaxSteps *int   `json:"max_steps"`
}

// Faults make tools fail on purpose.
type Faults struct {
	ReadFailures   int         `json:"read_failures"`
	LoseDraftReply bool        `json:"lose_draft_reply"`
	Tools          []ToolFault `json:"tools"`
}

// Answer is what an outside tool answers: an HTTP status and a JSON body.
type Answer struct {
	Status int       `json:"status"`
	Body   ijson.Raw `json:"body"`
}

// ToolFault makes the next calls of a tool fail: timeout, panic or lost_reply. Times defaults to 1.
type ToolFault struct {
	Tool  string `json:"tool"`
	Fail  string `json:"fail"`
	Times *int   `json:"times"`
}

// Step is one event: exactly one member beside expect.
type Step struct {
	Propose   given[ijson.Raw]     `json:"propose"`
	Retry     given[retryStep]     `json:"retry"`
	Review    given[reviewStep]    `json:"review"`
	Reopen    given[reopenStep]    `json:"reopen"`
	Configure given[configureStep] `json:"configure"`
	Policy    given[string]        `json:"policy"`
	Cancel    given[struct{}]      `json:"cancel"`
	Restart   given[struct{}]      `json:"restart"`
	Resolve   given[resolveStep]   `json:"resolve"`
	// Finish is refused by name.
	Finish given[ijson.Raw] `json:"finish"`
	// Expect is compared with the step's result: objects match as subsets, lists and scalars exactly.
	Expect ijson.Raw `json:"expect"`
}

// given is an event of a step, and whether the step has it: a bare key, as in "cancel:", counts.
type given[T any] struct {
	is    bool
	value T
}

// UnmarshalJSON reads what the event says, so that a mistake in it is found, with its place, before anything runs.
func (g *given[T]) UnmarshalJSON(b []byte) error {
	g.is = true
	return ijson.Unmarshal(b, &g.value)
}

// Expect names what the end state must be. Each member that is given is compared whole and in order.
type Expect struct {
	Statuses  ijson.Raw `json:"statuses"`
	Actions   ijson.Raw `json:"actions"`
	Drafts    ijson.Raw `json:"drafts"`
	Approvals ijson.Raw `json:"approvals"`
}

type retryStep struct {
	Proposal ijson.Raw `json:"proposal"`
	Limit    ijson.Raw `json:"limit"`
}

type reviewStep struct {
	Proposal ijson.Raw `json:"proposal"`
	Decision ijson.Raw `json:"decision"`
	Lifetime ijson.Raw `json:"lifetime"`
	Reviewer string    `json:"reviewer"`
	// Roles of the reviewer; absent means those that the configuration gives.
	Roles  *[]string `json:"roles"`
	Reason string    `json:"reason"`
}

type reopenStep struct {
	Proposal ijson.Raw `json:"proposal"`
	Reviewer string    `json:"reviewer"`
	Reason   string    `json:"reason"`
}

// resolveStep says what became of the operation that keeps a call from running.
type resolveStep struct {
	Proposal ijson.Raw `json:"proposal"`
	// State is committed or absent.
	State  string    `json:"state"`
	Result ijson.Raw `json:"result"`
	Reason string    `json:"reason"`
}

type configureStep struct {
	Tools    *[]string `json:"tools"`
	Readable *[]string `json:"readable"`
	Scopes   *[]string `json:"scopes"`
	Actor    string    `json:"actor"`
	Task     string    `json:"task"`
	Now      string    `json:"now"`
	// Mode of what follows: enforce or dry_run.
	Mode string `json:"mode"`
}

// Load reads the scenarios of a file: YAML with one or more documents, JSON, or JSON Lines with one a line.
func Load(file string) ([]Scenario, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list, err := Parse(file, b)
	for i := range list {
		list[i].dir = filepath.Dir(file)
	}
	return list, err
}

// Parse is Load for bytes; the ending of the file's name tells the form.
func Parse(file string, b []byte) ([]Scenario, error) {
	var list []Scenario
	add := func(line int, decode func(any) error) error {
		var s Scenario
		if err := decode(&s); err != nil {
			return err
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("%s:%d: %w", file, line, err)
		}
		list = append(list, s)
		return nil
	}
	if strings.HasSuffix(file, ".jsonl") {
		for i, line := range bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
			if err := add(i+1, func(v any) error { return strictyaml.UnmarshalJSON(file, i+1, line, v) }); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	documents, err := strictyaml.Documents(file, b)
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		if err := add(d.Line, d.Decode); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (s Scenario) check() error {
	if s.Name == "" {
		return errors.New("the scenario has no name; say what it shows")
	}
	if len(s.Steps) == 0 {
		return fmt.Errorf("scenario %q has no steps", s.Name)
	}
	for i, step := range s.Steps {
		if err := step.check(); err != nil {
			return fmt.Errorf("scenario %q, step %d: %w", s.Name, i+1, err)
		}
	}
	return nil
}

func (s Step) check() error {
	event, err := s.event()
	if err != nil {
		return err
	}
	switch {
	case event == "retry" && s.Retry.value.Proposal == nil,
		event == "review" && s.Review.value.Proposal == nil,
		event == "reopen" && s.Reopen.value.Proposal == nil,
		event == "resolve" && s.Resolve.value.Proposal == nil:
		return fmt.Errorf("the %s has no proposal; give the call that it is about", event)
	case !slices.Contains([]string{"", string(dispatch.Enforce), string(dispatch.DryRun)}, s.Configure.value.Mode):
		return fmt.Errorf("mode is %q; give %s or %s", s.Configure.value.Mode, dispatch.Enforce, dispatch.DryRun)
	case event == "policy" && s.Policy.value == "":
		return errors.New("policy takes the path of a folder, relative to the scenario's file")
	}
	if s.Configure.value.Now != "" {
		_, err = parseTime(s.Configure.value.Now)
	}
	return err
}

// events in the order in which an error lists them; those without a runner come with later versions.
var events = []string{"propose", "retry", "review", "reopen", "configure", "policy", "cancel", "restart", "resolve"}

// event is the name of the step's one member.
func (s Step) event() (string, error) {
	var names []string
	for name, is := range map[string]bool{
		"propose": s.Propose.is, "retry": s.Retry.is, "review": s.Review.is, "reopen": s.Reopen.is, "configure": s.Configure.is,
		"policy": s.Policy.is, "cancel": s.Cancel.is, "restart": s.Restart.is, "resolve": s.Resolve.is, "finish": s.Finish.is,
	} {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "", fmt.Errorf("the step does nothing; give one of %s", strings.Join(events, ", "))
	case len(names) > 1:
		return "", fmt.Errorf("the step has %s; give one of them, and the other in a step of its own", strings.Join(names, " and "))
	case !slices.Contains(events, names[0]):
		return "", fmt.Errorf("%s is not supported: this version has no bounded loop", names[0])
	}
	return names[0], nil
}

// parseTime reads the moment of a configure step.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.UTC().Year() > 9000 { // time limits are counted from it
		return t, fmt.Errorf("now is %q; give RFC 3339, such as 2026-01-01T00:00:00Z", s)
	}
	return t.UTC(), nil
}
