// Package snapshot makes one immutable value of a configuration, the policy and the tools: what a dispatch pins. A
// reload, a scenario and a measurement each make another one.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/policy-dispatch/govern"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/opa"
	"github.com/policy-dispatch/govern/internal/tools"
)

// Made is a snapshot with the parts that it was made of.
type Made struct {
	Source opa.Source
	Tools  map[string]dispatch.Tool
	Policy *opa.Policy
	*dispatch.Snapshot
}

// New joins a configuration with the policy and the tools that it is about. With an error comes what was made before it.
func New(ctx context.Context, c config.Config) (Made, error) {
	var m Made
	var err error
	if m.Source, err = Source(c, c.Policy); err != nil {
		return m, err
	}
	m.Tools, err = newTools(c)
	if err = errors.Join(checkNames(c), c.CheckNames(m.Source.ReadableSets(), m.Source.WritableSets()), err); err != nil {
		return m, err
	}
	m.Policy, m.Snapshot, err = Compile(ctx, c, m.Source, m.Tools)
	return m, err
}

// checkNames refuses names of tasks, profiles and actors that no task can have.
func checkNames(c config.Config) error {
	var wrong []error
	check := func(pointer, name string) {
		if !dispatch.ValidName(name) {
			wrong = append(wrong, c.Fault(pointer, fmt.Sprintf("%q is no name: it is 1 to 64 letters, digits, dots, underscores or hyphens, beginning with a letter or digit", name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		check("/profiles/"+ijson.EscapeToken(name), name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tasks)) {
		at := "/tasks/" + ijson.EscapeToken(name)
		check(at, name)
		check(at+"/actor", c.Tasks[name].Actor)
	}
	if c.Task != "" {
		check("/task", c.Task)
	}
	if c.Actor != "" {
		check("/actor", c.Actor)
	}
	return errors.Join(wrong...)
}

// Source is the policy at some paths, or the built-in one if there are none, under the configuration's layers. Its
// sets of targets are those that the configuration states, or else the policy's own, or else the built-in ones.
func Source(c config.Config, paths []string) (opa.Source, error) {
	source, err := CoreSource(c, paths)
	if err == nil && c.OwnResources() {
		source, err = source.WithSets(c.ResourcesName(), c.Resources.JSON)
	}
	if err != nil {
		return source, err
	}
	org, err := opa.ReadLayer(opa.Org, c.Org)
	if err != nil {
		return source, c.From("org", err)
	}
	site, err := opa.ReadLayer(opa.Site, c.Site)
	return source.With(org, site), c.From("site", err)
}

// CoreSource is the policy without what the configuration states, and without layers.
func CoreSource(c config.Config, paths []string) (opa.Source, error) {
	files, err := fs.Sub(govern.Files, "policy")
	if err != nil {
		return opa.Source{}, err
	}
	base, err := opa.ReadFS(files, "built in")
	if err != nil {
		return base, err
	}
	if !c.OwnResources() {
		if base, err = base.WithData(c.Resources.File, c.Resources.JSON); err != nil {
			return base, err
		}
	}
	if len(paths) == 0 {
		return base, nil
	}
	source, err := opa.ReadPaths(paths, base)
	return source, c.From("policy", err)
}

// newTools makes the tools that a configuration defines.
func newTools(c config.Config) (map[string]dispatch.Tool, error) {
	docs, err := tools.ReadDocuments(c.Documents.JSON)
	if err != nil {
		return nil, c.Fault("/documents", c.Documents.Says(err.Error()))
	}
	secrets, _ := c.Secrets() // a tool without one sends nothing; who calls tools refuses to begin
	defined, err := definitions(c)
	if err != nil {
		return nil, err
	}
	made, err := tools.New(defined, docs, secrets)
	if wrong, ok := errors.AsType[tools.DefinitionErrors](err); ok {
		var faults []error
		for _, w := range wrong {
			faults = append(faults, c.FaultOfTool(w.Tool, w.Field, w.Problem))
		}
		return nil, errors.Join(faults...)
	}
	if err != nil {
		return nil, c.Fault("/documents", c.Documents.Says(err.Error()))
	}
	return made, nil
}

// definitions gives the configured tools the form that the domain knows.
func definitions(c config.Config) (map[string]dispatch.Definition, error) {
	out := map[string]dispatch.Definition{}
	for name, t := range c.Tools {
		d := dispatch.Definition{Name: name, Version: t.Version, Description: t.Description, Local: t.Local,
			Effect: dispatch.ToolEffect(t.Effect), Approval: dispatch.ApprovalRule(t.Approval), Scopes: t.Scopes, Cost: t.Cost,
			Target: t.Target, Key: t.Key, Drop: t.Drop,
			Sensitive: t.Sensitive, SensitiveOutput: t.SensitiveOutput, Resource: t.Resource, Labels: t.Labels,
			Limits: dispatch.ToolLimits{Time: millis(t.Limits.Time), OutputBytes: t.Limits.OutputBytes}, Schema: t.Schema.JSON}
		if t.Output != nil {
			d.Output = t.Output.JSON
		}
		if t.HTTP != nil {
			if err := outside(&d, t); err != nil {
				return nil, err
			}
		}
		out[name] = d
	}
	return out, nil
}

// outside adds to a definition how its tool is reached and how outcomes are found out.
func outside(d *dispatch.Definition, t config.Tool) (err error) {
	h := t.HTTP
	o := tools.Outside{HTTP: tools.HTTP{Method: h.Method, URL: h.URL, Success: h.Success, ContentTypes: h.ContentTypes, Keep: h.Keep,
		Networks: h.Networks, Proxy: h.Proxy, Headers: map[string]tools.Header{}}}
	for name, from := range h.Headers {
		o.HTTP.Headers[name] = tools.Header(from)
	}
	if r := t.Recovery; r != nil {
		o.Recovery.Operator = r.Operator
		if i := r.Idempotency; i != nil {
			o.Recovery.Idempotency = &tools.Idempotency{Header: i.Header}
			d.Recovery.Retention = millis(i.Retention)
		}
		if l := r.Lookup; l != nil {
			o.Recovery.Lookup = &tools.Lookup{URL: l.URL, Header: l.Header, State: l.State, Committed: l.Committed, Absent: l.Absent}
			d.Recovery.Lookup, d.Recovery.Settle = true, millis(l.Settle)
		}
	}
	d.Outside, err = ijson.Marshal(o)
	return err
}

func millis(text string) dispatch.Millis {
	return dispatch.Millis(config.Duration(text).Milliseconds())
}

// Compile makes the snapshot of parts that may be others than the configuration names: the policy, and its tools as the
// caller wraps them.
func Compile(ctx context.Context, c config.Config, source opa.Source, registered map[string]dispatch.Tool) (*opa.Policy, *dispatch.Snapshot, error) {
	permissions, err := canonicalConfig(c, registered)
	if err != nil {
		return nil, nil, err
	}
	s := &dispatch.Snapshot{Profiles: map[string]dispatch.Profile{}, Tools: registered, Limits: c.Limits.Proposals()}
	profiles := map[string]opa.Profile{}
	for name, p := range c.Profiles {
		budgets := dispatch.Budgets(p.Budgets)
		profiles[name] = opa.Profile{Tools: p.Tools, Readable: p.Readable, Writable: p.Writable, Scopes: p.Scopes, Budgets: budgets}
		s.Profiles[name] = dispatch.Profile{Scopes: p.Scopes, MaxSteps: p.MaxSteps, MaxPending: p.Pending(), Budgets: budgets}
	}
	policy, err := opa.New(ctx, opa.Options{Source: source, Profiles: profiles, Config: permissions, Timeout: c.Limits.Decision()})
	if err != nil {
		return nil, nil, err
	}
	s.Version, s.Decider = policy.Version(), policy
	s.Kept = func() ([]byte, []byte, error) {
		kept, err := policy.Kept()
		return kept, permissions, err
	}
	return policy, s, nil
}

// canonicalConfig is what the policy version covers beside the policy and its data: permissions, limits and the
// definitions of the tools.
func canonicalConfig(c config.Config, registered map[string]dispatch.Tool) (ijson.Raw, error) {
	permissions, err := c.Canonical()
	if err != nil {
		return nil, err
	}
	definitions := map[string]string{}
	for name, t := range registered {
		if definitions[name], err = t.Definition().Digest(); err != nil {
			return nil, err
		}
	}
	return ijson.Marshal(map[string]any{"config": permissions, "tools": definitions})
}
