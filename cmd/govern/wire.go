package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/opa"
	"github.com/policy-dispatch/govern/internal/sqlite"
	"github.com/policy-dispatch/govern/internal/tools"
)

// governed is configuration, policy and tools, before there is any state.
type governed struct {
	config config.Config
	// file names the configuration, empty for the built-in one, and inFile is what that says by itself.
	file     string
	inFile   config.Config
	source   opa.Source
	tools    map[string]dispatch.Tool
	policy   *opa.Policy
	snapshot *dispatch.Snapshot
}

// system is everything that a command on a state works with. It never changes: what is loaded later is another one, over
// the same store.
type system struct {
	governed
	store      *sqlite.Store
	dispatcher *dispatch.Dispatcher
	principal  dispatch.Principal
}

// load reads and checks configuration, policy and tools. It touches no state. With an error comes what is known of the
// configuration.
func (a *app) load(cmd *cobra.Command) (governed, error) {
	read, err := a.readConfig(cmd)
	if err != nil {
		return read, err
	}
	g, err := assemble(cmd.Context(), read.config)
	g.file, g.inFile = read.file, read.inFile
	if err != nil {
		return g, misuse(err)
	}
	return g, nil
}

// readConfig reads the configuration alone, with what flags and environment lay over it.
func (a *app) readConfig(cmd *cobra.Command) (governed, error) {
	if err := checkPolicyFlags(cmd); err != nil {
		return governed{}, err
	}
	file, err := a.configPath(cmd)
	if err != nil {
		return governed{}, err
	}
	inFile, err := parseConfig(file)
	if err != nil {
		return governed{config: inFile}, misuse(err)
	}
	c, err := inFile.Overlay(cmd.Flags())
	if err != nil {
		return governed{config: c}, misuse(err)
	}
	return governed{config: c, file: file, inFile: inFile}, nil
}

// assemble joins a configuration with the policy and the tools that it is about.
func assemble(ctx context.Context, c config.Config) (governed, error) {
	g := governed{config: c}
	var err error
	if g.source, err = policySource(c, c.Policy); err != nil {
		return g, err
	}
	g.tools, err = newTools(c)
	if err = errors.Join(checkNames(c), c.CheckNames(g.source.ReadableSets(), g.source.WritableSets()), err); err != nil {
		return g, err
	}
	g.policy, g.snapshot, err = newSnapshot(ctx, c, g.source, g.tools)
	return g, err
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

func (g *governed) toolNames() []string { return slices.Sorted(maps.Keys(g.tools)) }

// profilesWith names the profiles that permit a tool.
func (g *governed) profilesWith(tool string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(g.config.Profiles)) {
		if slices.Contains(g.config.Profiles[name].Tools, tool) {
			names = append(names, name)
		}
	}
	return names
}

// policySource is the policy at some paths, or the built-in one if there are none, under the configuration's layers. Its
// sets of targets are those that the configuration states, or else the policy's own, or else the built-in ones.
func policySource(c config.Config, paths []string) (opa.Source, error) {
	source, err := coreSource(c, paths)
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

// coreSource is the policy without what the configuration states, and without layers.
func coreSource(c config.Config, paths []string) (opa.Source, error) {
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
	made, err := tools.New(definitions(c), docs)
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
func definitions(c config.Config) map[string]dispatch.Definition {
	out := map[string]dispatch.Definition{}
	for name, t := range c.Tools {
		d := dispatch.Definition{Name: name, Version: t.Version, Description: t.Description, Local: t.Local,
			Effect: dispatch.ToolEffect(t.Effect), Approval: dispatch.ApprovalRule(t.Approval), Scopes: t.Scopes, Cost: t.Cost,
			Target: t.Target, Key: t.Key, Drop: t.Drop, Resource: t.Resource, Labels: t.Labels,
			Limits: dispatch.ToolLimits{OutputBytes: t.Limits.OutputBytes}, Schema: t.Schema.JSON}
		if t.Output != nil {
			d.Output = t.Output.JSON
		}
		out[name] = d
	}
	return out
}

// newSnapshot compiles policy and configuration into one immutable value.
func newSnapshot(ctx context.Context, c config.Config, source opa.Source, registered map[string]dispatch.Tool) (*opa.Policy, *dispatch.Snapshot, error) {
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

// start loads everything and opens the state. A command that only looks, or acts on what is there, makes none:
// that would hide a mistyped path behind an empty list.
func (a *app) start(cmd *cobra.Command, mustExist bool) (*system, error) {
	g, err := a.load(cmd)
	if err != nil {
		return nil, err
	}
	store, err := sqlite.Open(cmd.Context(), g.config.State, sqlite.Options{MustExist: mustExist})
	switch {
	case mustExist && errors.Is(err, fs.ErrNotExist):
		return nil, noState(g.config.State)
	case err != nil && (dispatch.KindOf(err) != dispatch.Broken || cmd.Context().Err() != nil):
		return nil, err
	case err != nil:
		return nil, misuse(err)
	}
	return newSystem(g, store), nil
}

func newSystem(g governed, store *sqlite.Store) *system {
	return &system{governed: g, store: store, dispatcher: dispatch.New(store, store.Key(), time.Now, g.snapshot),
		principal: dispatch.Principal{Tenant: dispatch.DefaultTenant, Actor: g.config.Actor}}
}

func noState(file string) error {
	return misuse(fmt.Errorf("there is no state file %s", file)).
		hint("govern run makes it at its first use; --state names another")
}

func (s *system) close() error { return s.store.Close() }

// mode is that of the task in use: a dry run if the command or the configuration wants one.
func (s *system) mode(dryRun bool) dispatch.Mode {
	if dryRun || s.config.Tasks[s.config.Task].Mode == string(dispatch.DryRun) {
		return dispatch.DryRun
	}
	return dispatch.Enforce
}

func (s *system) key() dispatch.TaskKey {
	return dispatch.TaskKey{Tenant: s.principal.Tenant, ID: s.config.Task}
}
