package config

import (
	"slices"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Canonical is the part of the configuration that is a part of the policy version beside the definitions of the tools
// and the sets of targets: what is permitted, and not where things are kept, which tasks there are or who reviews.
func (c Config) Canonical() (ijson.Raw, error) {
	profiles := map[string]Profile{}
	for name, p := range c.Profiles {
		p.Tools, p.Readable, p.Writable, p.Scopes = sorted(p.Tools), sorted(p.Readable), sorted(p.Writable), sorted(p.Scopes)
		pending := p.Pending()
		p.MaxPending = &pending
		profiles[name] = p
	}
	bytes := c.Limits.Proposals().Bytes
	limits := Limits{ProposalBytes: &bytes, DecisionTime: c.Limits.Decision().String()}
	return ijson.Marshal(map[string]any{"profiles": profiles, "limits": limits})
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
