package config

import (
	"slices"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Canonical is the part of the configuration that is a part of the policy version beside the definitions of the tools
// and the sets of targets: what is permitted, and not where things are kept, which tasks there are or who reviews.
func (c Config) Canonical() (ijson.Raw, error) {
	type profile struct {
		Tools, Readable, Writable, Scopes []string
		MaxSteps, MaxPending              int
		Budgets                           Budgets
	}
	profiles := map[string]profile{}
	for name, p := range c.Profiles {
		profiles[name] = profile{sorted(p.Tools), sorted(p.Readable), sorted(p.Writable), sorted(p.Scopes), p.MaxSteps, p.Pending(), p.Budgets}
	}
	limits := map[string]any{"proposals": c.Limits.Proposals(), "decision_time": c.Limits.Decision().String()}
	return ijson.Marshal(map[string]any{"profiles": profiles, "limits": limits})
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
