package opa

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// DefaultTimeout bounds one decision.
const DefaultTimeout = time.Second

// Profile is what the policy needs of a profile.
type Profile struct {
	// Tools that tasks of this profile may use, by exact name.
	Tools []string
	// Readable names the sets of data.readable whose targets they may reach.
	Readable []string
	// Writable names the sets of data.writable whose targets their guarded writes may reach.
	Writable []string
	Scopes   []string
	Budgets  dispatch.Budgets
}

// Options are what a policy is made of.
type Options struct {
	// Source is the core, with the layers over it.
	Source Source
	// Profiles by name become data.profiles.
	Profiles map[string]Profile
	// Config is the configuration's canonical form. It is part of the version and nothing else.
	Config ijson.Raw
	// Timeout bounds one decision; zero means DefaultTimeout.
	Timeout time.Duration
}

// Policy is one immutable policy, compiled once. It is safe for concurrent use.
type Policy struct {
	version  string
	source   Source
	data     map[string]any // with the profiles, without the version
	outcomes []Outcome
	layers   []LayerInfo
	compiler *ast.Compiler
	decision *question
	gate     *question // nil if the policy has no such rule
	timeout  time.Duration
}

var _ dispatch.Decider = (*Policy)(nil)

// New compiles a policy. Whatever would make it answer nothing, or not the same twice, is an error here.
func New(ctx context.Context, o Options) (_ *Policy, err error) {
	defer faulty(&err)
	compiling.Lock()
	defer compiling.Unlock()
	made, err := compile(o.Source)
	if err != nil {
		return nil, err
	}
	compiler := made.compiler
	data, err := o.Source.allData().withProfiles(o.Profiles)
	if err != nil {
		return nil, err
	}
	version, err := versionOf(o.Source.Revision(), o.Source.allModules(), data, o.Config)
	if err != nil {
		return nil, fmt.Errorf("the policy's version: %w", err)
	}
	versioned := maps.Clone(data)
	versioned["govern"] = map[string]any{"version": version}
	store, err := newStore(versioned)
	if err != nil {
		return nil, err
	}
	decision, err := newQuestion(ctx, compiler, store, entrypoint)
	if err != nil {
		return nil, err
	}
	var gate *question
	if len(compiler.GetRulesExact(ast.MustParseRef(gateRule))) > 0 {
		if gate, err = newQuestion(ctx, compiler, store, gateRule); err != nil {
			return nil, err
		}
	}
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return &Policy{version: version, source: o.Source, data: data, outcomes: made.outcomes, layers: made.layers, compiler: compiler, decision: decision, gate: gate, timeout: timeout}, nil
}

// faulty turns a panic into an error: no policy, however wrong, ends the process that loads it.
func faulty(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("a fault of govern, met while the policy was read: %v; report it with the policy", p)
	}
}

// newStore holds data in the form in which Rego reads it without conversion.
func newStore(data map[string]any) (storage.Store, error) {
	raw, err := ijson.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("the policy's data: %w", err)
	}
	var root map[string]any
	if err := util.NewJSONDecoder(bytes.NewReader(raw)).Decode(&root); err != nil {
		return nil, fmt.Errorf("the policy's data: %w", err)
	}
	return inmem.NewFromObjectWithOpts(root, inmem.OptRoundTripOnWrite(false), inmem.OptReturnASTValuesOnRead(true)), nil
}

// Version is the bundle's revision and a digest of everything that decisions depend on beside their input.
func (p *Policy) Version() string { return p.version }

// Outcomes lists what the policy and its layers can answer, each in the order of its files and lines.
func (p *Policy) Outcomes() []Outcome { return p.outcomes }
