package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// system is everything that a command on a state works with.
type system struct {
	governed
	store      *sqlite.Store
	dispatcher *dispatch.Dispatcher
	principal  dispatch.Principal
}

// load reads and checks configuration, policy and tools. It touches no state.
func (a *app) load(cmd *cobra.Command) (governed, error) {
	if err := checkPolicyFlag(cmd); err != nil {
		return governed{}, err
	}
	file, err := a.configPath(cmd)
	if err != nil {
		return governed{}, err
	}
	inFile, err := parseConfig(file)
	if err != nil {
		return governed{}, misuse(err)
	}
	c, err := inFile.Overlay(cmd.Flags())
	if err != nil {
		return governed{}, misuse(err)
	}
	g, err := assemble(cmd.Context(), c)
	if err != nil {
		return g, misuse(err)
	}
	g.file, g.inFile = file, inFile
	return g, nil
}

// assemble joins a configuration with the policy and the tools that it is about.
func assemble(ctx context.Context, c config.Config) (governed, error) {
	g := governed{config: c}
	var err error
	if g.source, err = policySource(c.Policy); err != nil {
		return g, err
	}
	if g.tools, err = labTools(); err != nil {
		return g, err
	}
	if err = c.CheckNames(g.toolNames(), g.source.ReadableSets()); err != nil {
		return g, err
	}
	g.policy, g.snapshot, err = newSnapshot(ctx, c, g.source, g.tools)
	return g, err
}

func (g *governed) toolNames() []string { return slices.Sorted(maps.Keys(g.tools)) }

// checkPolicyFlag refuses an empty path, which would be lost on the way and so give the built-in policy.
func checkPolicyFlag(cmd *cobra.Command) error {
	flag, _ := cmd.Flags().Lookup("policy").Value.(pflag.SliceValue)
	if slices.Contains(flag.GetSlice(), "") {
		return misuse(errors.New("--policy is given without a path")).hint("name a folder, or leave the flag out for the built-in policy")
	}
	return nil
}

// configPath is empty for the built-in configuration, unless something names it and names nothing.
func (a *app) configPath(cmd *cobra.Command) (string, error) {
	if cmd.Flags().Changed("config") {
		if a.configFile == "" {
			return "", misuse(errors.New("--config is given without a file")).hint("name one, or leave the flag out for the built-in configuration")
		}
		return a.configFile, nil
	}
	file, ok := os.LookupEnv(config.EnvConfig)
	if ok && file == "" {
		return "", misuse(fmt.Errorf("%s is set to nothing", config.EnvConfig)).hint("name a file, or unset it")
	}
	return file, nil
}

// command is a command line that works on the same state under the same policy as this one, whatever flags and
// environment said: people paste it.
func (g *governed) command(words ...string) string {
	words = append([]string{"govern"}, words...)
	if g.file != "" {
		words = append(words, "--config", g.file)
	}
	if !slices.Equal(g.config.Policy, g.inFile.Policy) {
		for _, path := range g.config.Policy {
			words = append(words, "--policy", path)
		}
	}
	if g.config.State != g.inFile.State {
		words = append(words, "--state", g.config.State)
	}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// forTask adds the flags that choose a task and its actor, where the configuration does not.
func (g *governed) forTask(task, actor string, words ...string) []string {
	if task != g.inFile.Task {
		words = append(words, "--task", task)
	}
	return g.forActor(actor, words...)
}

func (g *governed) forActor(actor string, words ...string) []string {
	if actor != g.inFile.Actor {
		words = append(words, "--actor", actor)
	}
	return words
}

// shellWord quotes what a shell would take apart.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r > 127 || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func parseConfig(file string) (config.Config, error) {
	if file == "" {
		b, err := govern.Files.ReadFile("config.yaml")
		if err != nil {
			return config.Config{}, err
		}
		return config.Parse("the built-in config.yaml", b)
	}
	c, err := config.Read(file)
	if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
		return c, fileError(file, err)
	}
	return c, err
}

// embeddedPolicy is the built-in bundle with its data.
func embeddedPolicy() (opa.Source, error) {
	files, err := fs.Sub(govern.Files, "policy")
	if err != nil {
		return opa.Source{}, err
	}
	source, err := opa.ReadFS(files, "built in")
	if err != nil {
		return source, err
	}
	sets, err := govern.Files.ReadFile("data/readable.json")
	if err != nil {
		return source, err
	}
	return source.WithData("data/readable.json", sets)
}

func policySource(paths []string) (opa.Source, error) {
	base, err := embeddedPolicy()
	if err != nil || len(paths) == 0 {
		return base, err
	}
	return opa.ReadPaths(paths, base)
}

func labTools() (map[string]dispatch.Tool, error) {
	b, err := govern.Files.ReadFile("data/documents.json")
	if err != nil {
		return nil, err
	}
	docs, err := tools.ReadDocuments(b)
	if err != nil {
		return nil, err
	}
	return tools.Lab(docs)
}

// newSnapshot compiles policy and configuration into one immutable value.
func newSnapshot(ctx context.Context, c config.Config, source opa.Source, registered map[string]dispatch.Tool) (*opa.Policy, *dispatch.Snapshot, error) {
	permissions, err := canonicalConfig(c, registered)
	if err != nil {
		return nil, nil, err
	}
	s := &dispatch.Snapshot{Profiles: map[string]dispatch.Profile{}, Tools: registered, Limits: ijson.DefaultLimits}
	profiles := map[string]opa.Profile{}
	for name, p := range c.Profiles {
		profiles[name] = opa.Profile{Tools: p.Tools, Readable: p.Readable}
		s.Profiles[name] = dispatch.Profile{Scopes: p.Scopes, MaxSteps: p.MaxSteps, MaxPending: p.Pending()}
	}
	policy, err := opa.New(ctx, opa.Options{Source: source, Profiles: profiles, Config: permissions})
	if err != nil {
		return nil, nil, err
	}
	s.Version, s.Decider = policy.Version(), policy
	return policy, s, nil
}

// canonicalConfig is what the policy version covers beside the policy: permissions, limits and the definitions
// of the tools.
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
	return ijson.Marshal(map[string]any{"config": permissions, "tools": definitions, "limits": ijson.DefaultLimits})
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
	case dispatch.KindOf(err) != dispatch.Broken:
		return nil, err
	case err != nil:
		return nil, misuse(err)
	}
	s := &system{governed: g, store: store, principal: dispatch.Principal{Tenant: dispatch.DefaultTenant, Actor: g.config.Actor}}
	s.dispatcher = dispatch.New(store, store.Key(), time.Now, g.snapshot)
	return s, nil
}

func noState(file string) error {
	return misuse(fmt.Errorf("there is no state file %s", file)).
		hint("govern run makes it at its first use; --state names another")
}

func (s *system) close() error { return s.store.Close() }

func (s *system) key() dispatch.TaskKey {
	return dispatch.TaskKey{Tenant: s.principal.Tenant, ID: s.config.Task}
}

// ensureTask makes the configured task at its first use, and finds any other.
func (s *system) ensureTask(ctx context.Context) error {
	t, ok := s.config.Tasks[s.config.Task]
	if ok {
		err := s.dispatcher.EnsureTask(ctx, dispatch.Task{TaskKey: s.key(), Profile: t.Profile, Actor: t.Actor}, operator())
		if errors.Is(err, dispatch.ErrTaskExists) {
			return misuse(err)
		}
		if err != nil {
			return err
		}
	}
	found, err := s.store.Task(ctx, s.key())
	if err == nil && found.Actor != s.principal.Actor {
		err = dispatch.ErrUnknownTask
	}
	if errors.Is(err, dispatch.ErrUnknownTask) {
		return s.unknownTask(ctx, s.config.Task)
	}
	return err
}

// unknownTask names the task and the nearest of those that this actor has.
func (s *system) unknownTask(ctx context.Context, id string) error {
	var names []string
	for name, t := range s.config.Tasks {
		if t.Actor == s.principal.Actor {
			names = append(names, name)
		}
	}
	if list, err := s.store.Tasks(ctx, s.principal.Tenant); err == nil {
		for _, t := range list {
			if t.Actor == s.principal.Actor {
				names = append(names, t.ID)
			}
		}
	}
	slices.Sort(names)
	return misuse(fmt.Errorf("%s has no task %q", s.principal.Actor, id)).
		near(id, slices.Compact(names), "make one with "+s.createTask(id, s.principal.Actor, s.defaultProfile()))
}

// createTask is the command that makes a task.
func (s *system) createTask(id, actor, profile string) string {
	words := s.forActor(actor, "task", "create", id)
	if profile != s.defaultProfile() {
		words = append(words, "--profile", profile)
	}
	return s.command(words...)
}

// defaultProfile is the profile of a task that is made without saying one: that of the task in use, or the only one.
// It is empty if there is no such profile.
func (s *system) defaultProfile() string {
	if t, ok := s.config.Tasks[s.config.Task]; ok {
		return t.Profile
	}
	if len(s.config.Profiles) == 1 {
		for name := range s.config.Profiles {
			return name
		}
	}
	return ""
}

// remedy tells people what to do about a status, from the policy's own METADATA.
func (g *governed) remedy(status dispatch.Status) string {
	if status == dispatch.StatusOK || status == dispatch.StatusReplayed {
		return ""
	}
	for _, o := range g.policy.Outcomes() {
		if o.Status == status {
			return o.Remedy
		}
	}
	return executionRemedies[status]
}

// executionRemedies are for what no rule of the policy gives.
var executionRemedies = map[dispatch.Status]string{
	dispatch.StatusPolicyError:    "the policy is broken, and everything is denied until it is mended; govern log decisions shows the detail",
	dispatch.StatusInternalError:  "a tool is broken; govern log decisions shows the detail",
	dispatch.StatusNotFound:       "the target is permitted and does not exist; nothing ran",
	dispatch.StatusTimeout:        "nothing happened; propose the call again, or run with --retry 2",
	dispatch.StatusOutcomeUnknown: "it took place or not; propose the same call with the same key again to learn which, and never with another key",
	dispatch.StatusRetryExhausted: "the last attempt was transient too; try later",
}

// operator is the operating system's user: the only identity that a command line has.
func operator() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprintf("uid-%d", os.Getuid())
}
