// Package config reads the configuration: one strict file, under environment and flags.
package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/nearest"
	"github.com/policy-dispatch/govern/internal/strictyaml"
)

// Config is a whole configuration.
type Config struct {
	// State is the path of the state file.
	State string `json:"state"`
	// Policy lists bundles and data files that replace the built-in policy; empty means the built-in one.
	Policy []string `json:"policy"`
	// Org and Site list those of the layers over it; empty means none.
	Org  []string `json:"org"`
	Site []string `json:"site"`
	// Task and Actor are what commands use unless told otherwise.
	Task     string             `json:"task"`
	Actor    string             `json:"actor"`
	Profiles map[string]Profile `json:"profiles"`
	// Tasks are made at their first use.
	Tasks map[string]Task `json:"tasks"`

	file string // for errors
}

// Profile is what a kind of work may do.
type Profile struct {
	Tools []string `json:"tools"`
	// Readable names sets of targets in the policy's data.
	Readable []string `json:"readable"`
	Scopes   []string `json:"scopes"`
	// MaxSteps bounds the judged proposals of a task; it must be stated.
	MaxSteps int `json:"max_steps"`
	// MaxPending bounds the calls of a task that wait for a person at one time; absent means DefaultMaxPending.
	MaxPending *int `json:"max_pending"`
}

// Task is a task that exists by configuration.
type Task struct {
	Profile string `json:"profile"`
	Actor   string `json:"actor"`
	// Mode is "enforce" or "dry_run"; absent means enforce.
	Mode string `json:"mode"`
}

// DefaultState is where the state is kept if the file does not say.
const DefaultState = "govern.db"

var modes = []string{"enforce", "dry_run"}

// DefaultMaxPending holds where a profile does not say.
const DefaultMaxPending = 10

// Upper limits of what a profile can state.
const (
	MostSteps   = 1_000_000
	MostPending = 10_000
)

// Read decodes a configuration file strictly and checks what it says by itself. Errors name the place.
func Read(file string) (Config, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	return Parse(file, b)
}

// Parse is Read for a file that was read already.
func Parse(file string, b []byte) (Config, error) {
	var c Config
	if err := strictyaml.Unmarshal(file, b, &c); err != nil {
		return Config{}, err
	}
	c.file = file
	if c.State == "" {
		c.State = DefaultState
	}
	if err := c.check(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

func (c Config) check() error {
	if slices.Contains(c.Policy, "") {
		return errors.New("policy names an empty path; name a folder of Rego or a JSON data file, or leave it out for the built-in policy")
	}
	if slices.Contains(c.Org, "") || slices.Contains(c.Site, "") {
		return errors.New("org or site names an empty path; name a folder of Rego or a JSON data file, or leave it out for no such layer")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p := c.Profiles[name]
		at := "profiles." + name
		if p.MaxSteps < 1 || p.MaxSteps > MostSteps {
			return fmt.Errorf("%s.max_steps must state how many proposals a task may make, 1 to %d; it is %d, or missing", at, MostSteps, p.MaxSteps)
		}
		if n := p.MaxPending; n != nil && (*n < 1 || *n > MostPending) {
			return fmt.Errorf("%s.max_pending is %d; give 1 to %d", at, *n, MostPending)
		}
		for list, names := range map[string][]string{"tools": p.Tools, "readable": p.Readable, "scopes": p.Scopes} {
			if twice, ok := repeated(names); ok {
				return fmt.Errorf("%s.%s names %q twice", at, list, twice)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tasks)) {
		t := c.Tasks[name]
		if _, ok := c.Profiles[t.Profile]; !ok {
			return fmt.Errorf("tasks.%s.profile: %s", name, unknown("profile", t.Profile, slices.Sorted(maps.Keys(c.Profiles))))
		}
		if t.Actor == "" {
			return fmt.Errorf("tasks.%s.actor is missing; say on whose behalf its proposals come", name)
		}
		if t.Mode != "" && !slices.Contains(modes, t.Mode) {
			return fmt.Errorf("tasks.%s.mode: %s", name, unknown("mode", t.Mode, modes))
		}
	}
	return nil
}

// CheckNames refuses profiles that name tools or sets of targets which do not exist. Without any set the policy's
// data is not what it should be, and that is the policy's error.
func (c Config) CheckNames(tools, readable []string) error {
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p := c.Profiles[name]
		for _, list := range []struct {
			key, what    string
			names, known []string
		}{{"tools", "tool", p.Tools, tools}, {"readable", "set of targets", p.Readable, readable}} {
			for _, n := range list.names {
				if len(list.known) > 0 && !slices.Contains(list.known, n) {
					return fmt.Errorf("%s: profiles.%s.%s: %s", c.file, name, list.key, unknown(list.what, n, list.known))
				}
			}
		}
	}
	return nil
}

// Pending is MaxPending with its default.
func (p Profile) Pending() int {
	if p.MaxPending == nil {
		return DefaultMaxPending
	}
	return *p.MaxPending
}

// Canonical is the part of the configuration that is a part of the policy version: what is permitted, and not
// where things are kept or which tasks there are.
func (c Config) Canonical() (ijson.Raw, error) {
	type profile struct {
		Tools, Readable, Scopes []string
		MaxSteps, MaxPending    int
	}
	profiles := map[string]profile{}
	for name, p := range c.Profiles {
		profiles[name] = profile{sorted(p.Tools), sorted(p.Readable), sorted(p.Scopes), p.MaxSteps, p.Pending()}
	}
	return ijson.Marshal(map[string]any{"profiles": profiles})
}

func sorted(names []string) []string {
	return slices.Sorted(slices.Values(names))
}

func repeated(names []string) (string, bool) {
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n] {
			return n, true
		}
		seen[n] = true
	}
	return "", false
}

func unknown(what, name string, known []string) string {
	if near, ok := nearest.Name(name, known); ok {
		return fmt.Sprintf("unknown %s %q; did you mean %q?", what, name, near)
	}
	return fmt.Sprintf("unknown %s %q; there is %q", what, name, known)
}
