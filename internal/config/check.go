package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/nearest"
)

// check says everything that is wrong with what the configuration says by itself.
func (c Config) check() error {
	var wrong []error
	fault := func(pointer, format string, args ...any) {
		wrong = append(wrong, c.Fault(pointer, fmt.Sprintf(format, args...)))
	}
	for _, list := range []struct {
		key   string
		paths []string
	}{{"policy", c.Policy}, {"org", c.Org}, {"site", c.Site}} {
		if i := slices.Index(list.paths, ""); i >= 0 {
			fault(fmt.Sprintf("/%s/%d", list.key, i), "an empty path; name a folder of Rego or a bundle, or leave %s out", list.key)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		c.Profiles[name].check("/profiles/"+ijson.EscapeToken(name), fault)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tasks)) {
		t, at := c.Tasks[name], "/tasks/"+ijson.EscapeToken(name)
		if _, ok := c.Profiles[t.Profile]; !ok {
			fault(at+"/profile", "%s", unknown("profile", t.Profile, slices.Sorted(maps.Keys(c.Profiles))))
		}
		if t.Actor == "" {
			fault(at+"/actor", "it is missing; say on whose behalf its proposals come")
		}
		if t.Mode != "" && !slices.Contains(modes, t.Mode) {
			fault(at+"/mode", "%s", unknown("mode", t.Mode, modes))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Reviewers)) {
		at := "/reviewers/" + ijson.EscapeToken(name)
		if name == "" {
			fault(at, "a reviewer without a name; write the name that the votes carry")
		}
		names(at+"/roles", c.Reviewers[name].Roles, fault)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		if c.Tools[name].Schema == nil {
			fault("/tools/"+ijson.EscapeToken(name)+"/schema", "it is missing; write the JSON Schema of the arguments, or name a file that holds it")
		}
		c.Tools[name].checkOutside("/tools/"+ijson.EscapeToken(name), fault)
	}
	c.checkResources(fault)
	c.Limits.check(fault)
	c.Log.check(fault)
	return errors.Join(wrong...)
}

// faults takes what is wrong at a JSON Pointer.
type faults func(pointer, format string, args ...any)

func (p Profile) check(at string, fault faults) {
	if p.MaxSteps < 1 || p.MaxSteps > MostSteps {
		fault(at+"/max_steps", "it must state how many proposals a task may make, 1 to %d; it is missing, or %d", MostSteps, p.MaxSteps)
	}
	if n := p.MaxPending; n != nil && (*n < 1 || *n > MostPending) {
		fault(at+"/max_pending", "it is %d; give 1 to %d", *n, MostPending)
	}
	for _, b := range []struct {
		name  string
		limit *int64
	}{{"cost", p.Budgets.Cost}, {"attempts", p.Budgets.Attempts}, {"output", p.Budgets.Output}} {
		if n := b.limit; n != nil && (*n < 0 || *n > MostBudget) {
			fault(at+"/budgets/"+b.name, "it is %d; give 0 to %d, or leave it out for no limit", *n, int64(MostBudget))
		}
	}
	names(at+"/tools", p.Tools, fault)
	names(at+"/readable", p.Readable, fault)
	names(at+"/writable", p.Writable, fault)
	names(at+"/scopes", p.Scopes, fault)
}

// names refuses empty and repeated names of a list.
func names(at string, list []string, fault faults) {
	seen := map[string]bool{}
	for i, n := range list {
		switch {
		case n == "":
			fault(at+"/"+strconv.Itoa(i), "an empty name; remove it")
		case seen[n]:
			fault(at+"/"+strconv.Itoa(i), "%q is named twice; keep one", n)
		}
		seen[n] = true
	}
}

var kindsOfResources = []string{"readable", "writable"}

// checkResources reads the sets of targets as strictly as the rest: a target counts only if it is true.
func (c Config) checkResources(fault faults) {
	if c.Resources == nil || c.Resources.JSON == nil {
		return
	}
	in := ""
	if f := c.Resources.File; f != "" {
		in = f + ": "
	}
	kinds, _ := ijson.Members(c.Resources.JSON)
	for _, kind := range kinds {
		if !slices.Contains(kindsOfResources, kind.Name) {
			fault("/resources/"+ijson.EscapeToken(kind.Name), "%s%s", in, unknown("kind of resource", kind.Name, kindsOfResources))
			continue
		}
		sets, ok := ijson.Members(kind.Value)
		if !ok {
			fault("/resources/"+kind.Name, "%swants named sets of targets, like {warehouse: {/warehouse/labels.txt: true}}", in)
		}
		for _, set := range sets {
			at := "/resources/" + kind.Name + "/" + ijson.EscapeToken(set.Name)
			targets, ok := ijson.Members(set.Value)
			if set.Name == "" {
				fault(at, "%sa set without a name; give it one", in)
			}
			if !ok {
				fault(at, "%swants targets, like {/warehouse/labels.txt: true}", in)
			}
			for _, target := range targets {
				if string(target.Value) != "true" {
					fault(at+"/"+ijson.EscapeToken(target.Name), "%sit must be true; remove a target that is not in the set", in)
				}
			}
		}
	}
}

func (l Limits) check(fault faults) {
	if n := l.ProposalBytes; n != nil && (*n < LeastProposalBytes || *n > MostProposalBytes) {
		fault("/limits/proposal_bytes", "it is %d; give %d to %d", *n, LeastProposalBytes, MostProposalBytes)
	}
	if l.DecisionTime == "" {
		return
	}
	d, err := time.ParseDuration(l.DecisionTime)
	if err != nil || d < LeastDecisionTime || d > MostDecisionTime {
		fault("/limits/decision_time", "it is %q; give a duration with its unit, %s to %s", l.DecisionTime, LeastDecisionTime, MostDecisionTime)
	}
}

func (l Log) check(fault faults) {
	names("/log/checkpoints", l.Checkpoints, fault)
	if l.Every == "" {
		return
	}
	if d, err := time.ParseDuration(l.Every); err != nil || d < LeastEvery || d > MostEvery {
		fault("/log/every", "it is %q; give a duration with its unit, %s to %s", l.Every, LeastEvery, MostEvery)
	}
}

// CheckNames refuses profiles that name tools or sets of targets which do not exist.
func (c Config) CheckNames(readable, writable []string) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p, at := c.Profiles[name], "/profiles/"+ijson.EscapeToken(name)
		for _, list := range []struct {
			key, what    string
			names, known []string
		}{{"tools", "tool", p.Tools, slices.Sorted(maps.Keys(c.Tools))}, {"readable", "set of readable targets", p.Readable, readable},
			{"writable", "set of writable targets", p.Writable, writable}} {
			for i, n := range list.names {
				if !slices.Contains(list.known, n) {
					wrong = append(wrong, c.Fault(fmt.Sprintf("%s/%s/%d", at, list.key, i), unknown(list.what, n, list.known)))
				}
			}
		}
	}
	return errors.Join(wrong...)
}

func unknown(what, name string, known []string) string {
	if near, ok := nearest.Name(name, known); ok {
		return fmt.Sprintf("unknown %s %q; did you mean %q?", what, name, near)
	}
	if len(known) == 0 {
		return fmt.Sprintf("unknown %s %q; there is none", what, name)
	}
	return fmt.Sprintf("unknown %s %q; there is %q", what, name, known)
}
