// Package config reads the configuration: one strict file, under environment and flags.
package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/strictyaml"
)

// Config is a whole configuration.
type Config struct {
	// State is the path of the state file.
	State string `json:"state"`
	// Policy lists folders and bundles that replace the built-in policy; empty means the built-in one.
	Policy []string `json:"policy"`
	// Org and Site list folders and bundles of the layers over the policy; empty means none.
	Org  []string `json:"org"`
	Site []string `json:"site"`
	// Task and Actor are what commands use unless told otherwise.
	Task     string             `json:"task"`
	Actor    string             `json:"actor"`
	Profiles map[string]Profile `json:"profiles"`
	// Tasks are made at their first use.
	Tasks map[string]Task `json:"tasks"`
	// Tools are the definitions of the tools that there are; absent means the built-in ones.
	Tools map[string]Tool `json:"tools"`
	// Resources are the named sets of targets, {"readable": {set: {target: true}}, "writable": …}; absent means those of
	// the policy, or else the built-in ones.
	Resources *Part `json:"resources"`
	// Documents are the texts that can be read; absent means the built-in ones.
	Documents *Part `json:"documents"`
	// Reviewers are the people who review, by the name that their votes carry. Others can review too, and have no role.
	Reviewers map[string]Reviewer `json:"reviewers"`
	Limits    Limits              `json:"limits"`
	Log       Log                 `json:"log"`

	origin  origin
	secrets secrets
}

// Profile is what a kind of work may do.
type Profile struct {
	Tools []string `json:"tools"`
	// Readable and Writable name sets of targets.
	Readable []string `json:"readable"`
	Writable []string `json:"writable"`
	Scopes   []string `json:"scopes"`
	// MaxSteps bounds the judged proposals of a task; it must be stated.
	MaxSteps int `json:"max_steps"`
	// MaxPending bounds the calls of a task that wait for a person at one time; absent means DefaultMaxPending.
	MaxPending *int    `json:"max_pending"`
	Budgets    Budgets `json:"budgets"`
}

// Budgets bound what the runs of a task may take in all; one that is absent bounds nothing.
type Budgets struct {
	Cost     *int64 `json:"cost"`
	Attempts *int64 `json:"attempts"`
	Output   *int64 `json:"output"`
}

// Task is a task that exists by configuration.
type Task struct {
	Profile string `json:"profile"`
	Actor   string `json:"actor"`
	// Mode is "enforce" or "dry_run"; absent means enforce.
	Mode string `json:"mode"`
}

// Tool is the definition of a tool, but for its name.
type Tool struct {
	// Local names the operation inside govern that the tool runs, and HTTP says how a tool outside is reached.
	Local       string `json:"local"`
	HTTP        *HTTP  `json:"http"`
	Version     string `json:"version"`
	Description string `json:"description"`
	// Schema and Output are the JSON Schemas of the arguments and, if it is stated, of what the tool gives.
	Schema *Part `json:"schema"`
	Output *Part `json:"output"`
	// Effect is pure, read or write; absent means write.
	Effect string `json:"effect"`
	// Approval is always or by_rule; absent means always for a write.
	Approval string   `json:"approval"`
	Scopes   []string `json:"scopes"`
	Cost     int64    `json:"cost"`
	// Target, Key, Drop and Sensitive are JSON Pointers into the arguments.
	Target    string   `json:"target"`
	Key       string   `json:"key"`
	Drop      []string `json:"drop"`
	Sensitive []string `json:"sensitive"`
	// SensitiveOutput are JSON Pointers into what the tool gives.
	SensitiveOutput []string `json:"sensitive_output"`
	Resource        string   `json:"resource"`
	Labels          []string `json:"labels"`
	// Recovery says how the outcome of a write outside is found out that nobody heard of.
	Recovery *Recovery  `json:"recovery"`
	Limits   ToolLimits `json:"limits"`
}

// ToolLimits bound what one tool gives and, of a tool outside, how long a call may take, as a Go duration.
type ToolLimits struct {
	Time        string `json:"time"`
	OutputBytes int    `json:"output_bytes"`
}

// Reviewer is a person who reviews.
type Reviewer struct {
	Roles []string `json:"roles"`
}

// Limits bound what is read and decided.
type Limits struct {
	// ProposalBytes is the greatest length of a proposal; absent means that of ijson.DefaultLimits.
	ProposalBytes *int `json:"proposal_bytes"`
	// DecisionTime is how long the policy may take for one decision, as a Go duration; absent means DefaultDecisionTime.
	DecisionTime string `json:"decision_time"`
}

// Log says what vouches for the log, and where that is kept.
type Log struct {
	// SigningKey is the path of the signing keys; absent means that they stand beside the state.
	SigningKey string `json:"signing_key"`
	// Checkpoints are files and URLs that a run keeps checkpoints in.
	Checkpoints []string `json:"checkpoints"`
	// Every is how often, as a Go duration; absent means DefaultEvery.
	Every string `json:"every"`
	// TokenFile holds the bearer token for the URLs; absent means none.
	TokenFile string `json:"checkpoint_token_file"`
}

// Interval is Every with its default.
func (l Log) Interval() time.Duration {
	if d, err := time.ParseDuration(l.Every); err == nil {
		return d
	}
	return DefaultEvery
}

// Part is JSON that stands in the configuration, or in a file that the configuration names.
type Part struct {
	// File is the path as it is written there; empty if the JSON stands in the configuration itself.
	File string
	JSON ijson.Raw
}

// UnmarshalJSON takes an object, or the path of a file as a string.
func (p *Part) UnmarshalJSON(b []byte) error {
	raw := ijson.Raw(b)
	if file, ok := ijson.String(raw); ok {
		if file == "" {
			return errors.New("names an empty path; name a JSON file, or write the object here")
		}
		p.File = file
		return nil
	}
	if raw.Kind() != '{' {
		return errors.New("wants an object, or the path of a JSON file that holds one")
	}
	p.JSON = raw.Clone()
	return nil
}

// Defaults, for what a file leaves out.
const (
	DefaultState        = "govern.db"
	DefaultMaxPending   = 10
	DefaultMode         = "enforce"
	DefaultDecisionTime = time.Second
	DefaultEvery        = time.Minute
	// Of tools outside.
	DefaultToolTime  = 10 * time.Second
	DefaultToolBytes = 64 << 10
)

// Least and greatest values that a file can state.
const (
	MostSteps          = 1_000_000
	MostPending        = 10_000
	MostBudget         = 1_000_000_000_000_000 // well within what every JSON number holds exactly
	LeastProposalBytes = 1 << 10
	MostProposalBytes  = 16 << 20
	LeastDecisionTime  = 10 * time.Millisecond
	MostDecisionTime   = time.Minute
	LeastEvery         = time.Second
	MostEvery          = 24 * time.Hour
)

var modes = []string{DefaultMode, "dry_run"}

// Pending is MaxPending with its default.
func (p Profile) Pending() int {
	if p.MaxPending == nil {
		return DefaultMaxPending
	}
	return *p.MaxPending
}

// Proposals are the limits of a proposal.
func (l Limits) Proposals() ijson.Limits {
	limits := ijson.DefaultLimits
	if l.ProposalBytes != nil {
		limits.Bytes = *l.ProposalBytes
	}
	return limits
}

// Decision is DecisionTime with its default.
func (l Limits) Decision() time.Duration {
	if d, err := time.ParseDuration(l.DecisionTime); err == nil {
		return d
	}
	return DefaultDecisionTime
}

// origin is what is needed to say where each value came from.
type origin struct {
	// own is the file; builtin is the built-in one, where another stands over it.
	own, builtin *strictyaml.Document
	// inherited names the parts that the file leaves out and that are the built-in ones.
	inherited map[string]bool
	// overlaid says for the key of a setting which flag or variable gave it.
	overlaid map[string]string
	// files are the paths of every file that was read, the configuration's own first.
	files []string
}

// Files are the paths of every file that was read. The built-in configuration reads none.
func (c Config) Files() []string { return c.origin.files }

// Fault is an error about the value that a JSON Pointer leads to, where it was given.
func (c Config) Fault(pointer, problem string) error {
	if from, ok := c.overlaid(pointer); ok {
		return errors.New(from + ": " + problem)
	}
	if d := c.document(pointer); d != nil {
		return d.Fault(pointer, problem)
	}
	return errors.New(pointer + ": " + problem)
}

// From adds to an error about what a setting names where the setting was given.
func (c Config) From(key string, err error) error {
	if err == nil {
		return nil
	}
	if from, over := c.overlaid("/" + key); over || c.origin.own == nil {
		return fmt.Errorf("%w (from %s)", err, from)
	}
	return fmt.Errorf("%w (%s: %s)", err, c.origin.own.Place("/"+key), key)
}

// Says puts the file that holds the part before a problem in it.
func (p *Part) Says(problem string) string {
	if p.File == "" {
		return problem
	}
	return p.File + ": " + problem
}

// Detached is the configuration without the places of its values, for a copy that says something else than the files.
func (c Config) Detached() Config {
	c.origin = origin{}
	return c
}

// FaultOfTool is Fault for a field of a tool's definition, which may be one of a tool's name.
func (c Config) FaultOfTool(tool, field, problem string) error {
	return c.Fault("/tools/"+ijson.EscapeToken(tool)+field, problem)
}

// overlaid gives the flag or variable that set the value at a pointer, or in it.
func (c Config) overlaid(pointer string) (from string, ok bool) {
	for key := strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", "."); key != ""; key, _, _ = cutLast(key) {
		if from, ok := c.origin.overlaid[key]; ok {
			return from, true
		}
	}
	return "", false
}

func cutLast(key string) (before, after string, found bool) {
	i := strings.LastIndexByte(key, '.')
	if i < 0 {
		return "", key, false
	}
	return key[:i], key[i+1:], true
}

// document is the one that gives, or would give, the value at a pointer.
func (c Config) document(pointer string) *strictyaml.Document {
	if c.origin.inherited[section(pointer)] {
		return c.origin.builtin
	}
	return c.origin.own
}
