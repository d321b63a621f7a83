package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/checkpoint"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/failpoint"
	"github.com/policy-dispatch/govern/internal/opa"
	"github.com/policy-dispatch/govern/internal/snapshot"
	"github.com/policy-dispatch/govern/internal/sqlite"
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
	// targets are where checkpoints of the log are to be kept.
	targets []checkpoint.Target
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
	if err == nil {
		g.targets, err = targets(g.config)
	}
	if err != nil {
		return g, misuse(err)
	}
	return g, nil
}

// loadToCall is load for what calls tools: every value that a call needs must be there.
func (a *app) loadToCall(cmd *cobra.Command) (governed, error) {
	g, err := a.load(cmd)
	if err == nil {
		if _, wrong := g.config.Secrets(); wrong != nil {
			err = misuse(wrong)
		}
	}
	return g, err
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
	made, err := snapshot.New(ctx, c)
	if err == nil {
		made.Snapshot.By = operator()
	}
	return governed{config: c, source: made.Source, tools: made.Tools, policy: made.Policy, snapshot: made.Snapshot}, err
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

// start loads everything and opens the state. A command that only looks, or acts on what is there, makes none:
// that would hide a mistyped path behind an empty list.
func (a *app) start(cmd *cobra.Command, mustExist bool) (*system, error) {
	return a.startFrom(cmd, mustExist, a.load)
}

func (a *app) startFrom(cmd *cobra.Command, mustExist bool, load func(*cobra.Command) (governed, error)) (*system, error) {
	g, err := load(cmd)
	if err != nil {
		return nil, err
	}
	store, err := sqlite.Open(cmd.Context(), g.config.State, sqlite.Options{MustExist: mustExist, Warn: a.warn})
	switch {
	case mustExist && errors.Is(err, fs.ErrNotExist):
		return nil, noState(g.config.State)
	case err != nil && (dispatch.KindOf(err) != dispatch.Broken || cmd.Context().Err() != nil || sqlite.IsDiskFault(err)):
		return nil, err
	case err != nil:
		return nil, misuse(err)
	}
	s := newSystem(g, store)
	if err := s.continues(cmd.Context()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func newSystem(g governed, store *sqlite.Store) *system {
	return &system{governed: g, store: store, dispatcher: dispatch.New(store, store.Key(), failpoint.Now, g.snapshot),
		principal: dispatch.Principal{Tenant: dispatch.DefaultTenant, Actor: g.config.Actor}}
}

// warn tells people what is no answer to anything. It can come at any moment.
func (a *app) warn(message string) { fmt.Fprintln(a.stderr, "govern: "+printable(message)) }

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
