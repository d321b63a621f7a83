package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/policy-dispatch/govern/bench/stock"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/snapshot"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

const entrypoint = "data.policy.decision"

// kinds of calls whose decisions are compared; each has a figure of its own, so that none hides behind a mean.
var kinds = []string{"read", "calculate", "draft", "denied"}

// decisions compares one decision of govern, from canonical bytes to a checked decision, with three ways to ask OPA for
// the same one.
var decisions = subject{
	specs: func() (specs []spec) {
		for _, kind := range kinds {
			specs = append(specs,
				spec{"decision-" + kind + "/bare", "a decision, over bare rego.Eval with its best options and a ready input", 1.15, atMost, ""},
				spec{"decision-" + kind + "/bare-json", "a decision, over the same Eval from the input's bytes to a Go value", 1.15, atMost, ""},
				spec{"decision-" + kind + "/usual", "the usual embedding of OPA, over a decision", 1.3, atLeast, ""})
		}
		return specs
	}(),
	open: func(ctx context.Context, e *env) ([]duel, error) {
		c, made, err := shipped(ctx)
		if err != nil {
			return nil, err
		}
		inputs, err := recorded(ctx, made.Snapshot)
		if err != nil {
			return nil, err
		}
		b, err := newBare(ctx, c, made)
		if err != nil {
			return nil, err
		}
		var duels []duel
		for i, kind := range kinds {
			in := inputs[i]
			if err := b.agree(ctx, made.Snapshot, in); err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			n := e.size(1500, 5)
			own := repeat(n, func(ctx context.Context) error { return judge(ctx, made.Snapshot, in) })
			duels = append(duels,
				duel{own, stockOPA(repeat(n, func(ctx context.Context) error { return b.ready(ctx, in) }))},
				duel{own, stockOPA(repeat(n, func(ctx context.Context) error { return b.fromJSON(ctx, in) }))},
				duel{stockOPA(repeat(n, func(ctx context.Context) error { return b.usual(ctx, in) })), own})
		}
		return duels, nil
	},
}

func repeat(n int, op func(context.Context) error) side {
	return func(ctx context.Context) (float64, error) {
		return serial(n, func(int) error { return op(ctx) })
	}
}

// stockOPA is a side in which govern has no hand at all.
func stockOPA(s side) side {
	return func(ctx context.Context) (float64, error) {
		defer stock.Use()()
		return s(ctx)
	}
}

// input is what the policy was really asked for one kind of call, and what came of it.
type input struct {
	dispatch.DecisionEntry
	value ast.Value
}

// recorded dispatches a call of each kind and gives what was recorded.
func recorded(ctx context.Context, snap *dispatch.Snapshot) (inputs []input, err error) {
	store, err := sqlite.OpenMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	g, task, note := newGate(store, snap), name('t'), draft("labels-note")
	err = errors.Join(
		g.create(ctx, task),
		g.propose(ctx, task, note, dispatch.StatusApprovalRequired),
		g.approve(ctx, task, note),
		g.propose(ctx, task, read(readable), dispatch.StatusOK),
		g.propose(ctx, task, calculate("calculate"), dispatch.StatusOK),
		g.propose(ctx, task, note, dispatch.StatusOK),
		g.propose(ctx, task, read(unreadable), dispatch.StatusResourceDenied),
	)
	if err != nil {
		return nil, err
	}
	for entry, err := range store.Entries(ctx, who.Tenant, task) {
		if err != nil {
			return nil, err
		}
		if entry.Kind != dispatch.KindDecision {
			continue
		}
		var in input
		if err := ijson.Unmarshal(entry.Body, &in.DecisionEntry); err != nil {
			return nil, err
		}
		if in.value, err = ast.ValueFromReader(bytes.NewReader(in.Input)); err != nil {
			return nil, err
		}
		if in.Decision.Effect != dispatch.RequireApproval {
			inputs = append(inputs, in)
		}
	}
	if len(inputs) != len(kinds) {
		return nil, fmt.Errorf("%d decisions are on record, not %d", len(inputs), len(kinds))
	}
	return inputs, nil
}

// judge is govern's side: the recorded input's bytes, to a decision that was checked against it.
func judge(ctx context.Context, snap *dispatch.Snapshot, in input) error {
	d, err := dispatch.Judge(ctx, snap.Decider, snap.Version, in.Input)
	if err == nil && d.Status != in.Decision.Status {
		err = fmt.Errorf("the wrong answer: %s (%s), not %s", d.Status, d.Detail, in.Decision.Status)
	}
	return err
}

// bare is OPA itself with the same modules and the same data.
type bare struct {
	best, plain rego.PreparedEvalQuery
	cancel      topdown.Cancel
}

func newBare(ctx context.Context, c config.Config, made snapshot.Made) (*bare, error) {
	files, err := made.Source.Files()
	if err != nil {
		return nil, err
	}
	var modules []func(*rego.Rego)
	for name, text := range files {
		if path.Ext(name) == ".rego" && !strings.HasSuffix(name, "_test.rego") {
			modules = append(modules, rego.Module(name, string(text)))
		}
	}
	data, err := dataOf(c, files["data.json"], made.Version)
	if err != nil {
		return nil, err
	}
	b := &bare{cancel: topdown.NewCancel()}
	prepare := func(store storage.Store, options ...func(*rego.Rego)) (rego.PreparedEvalQuery, error) {
		options = append(options, rego.Query(entrypoint), rego.Store(store))
		return rego.New(append(options, modules...)...).PrepareForEval(ctx)
	}
	if b.best, err = prepare(
		inmem.NewFromObjectWithOpts(data, inmem.OptRoundTripOnWrite(false), inmem.OptReturnASTValuesOnRead(true)),
		rego.StrictBuiltinErrors(true),
		rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t, nil }),
	); err != nil {
		return nil, err
	}
	b.plain, err = prepare(inmem.NewFromObject(data))
	return b, err
}

// dataOf is what the policy sees under data: its own documents, the profiles and its version.
func dataOf(c config.Config, own []byte, version string) (map[string]any, error) {
	data := map[string]any{}
	if err := json.Unmarshal(own, &data); err != nil {
		return nil, err
	}
	profiles := map[string]any{}
	for name, p := range c.Profiles {
		profiles[name] = map[string]any{"tools": set(p.Tools), "readable": set(p.Readable), "writable": set(p.Writable),
			"scopes": set(p.Scopes), "budgets": dispatch.Budgets(p.Budgets)}
	}
	rest, err := ijson.Marshal(map[string]any{"profiles": profiles, "govern": map[string]any{"version": version}})
	if err == nil {
		err = json.Unmarshal(rest, &data)
	}
	return data, err
}

func set(names []string) map[string]any {
	s := map[string]any{}
	for _, n := range names {
		s[n] = true
	}
	return s
}

// ready evaluates an input that is an ast.Value already, and leaves the answer a term.
func (b *bare) ready(ctx context.Context, in input) error {
	_, err := b.eval(ctx, in.value)
	return err
}

func (b *bare) eval(ctx context.Context, value ast.Value) (*ast.Term, error) {
	results, err := b.best.Eval(ctx, rego.EvalParsedInput(value), rego.EvalExternalCancel(b.cancel), rego.EvalMetrics(metrics.NoOp()))
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, fmt.Errorf("the wrong answer: %d results", len(results))
	}
	return results[0].Expressions[0].Value.(*ast.Term), nil
}

// fromJSON does what the input's bytes and a caller in Go ask for as well.
func (b *bare) fromJSON(ctx context.Context, in input) error {
	value, err := ast.ValueFromReader(bytes.NewReader(in.Input))
	if err != nil {
		return err
	}
	term, err := b.eval(ctx, value)
	if err != nil {
		return err
	}
	answer, err := ast.JSON(term.Value)
	if err != nil {
		return err
	}
	return in.sameStatus(answer)
}

// usual is how OPA's own documentation embeds it: JSON to a map, the map to Eval, everything else left as it is.
func (b *bare) usual(ctx context.Context, in input) error {
	answer, err := b.embedded(ctx, in)
	if err != nil {
		return err
	}
	return in.sameStatus(answer)
}

func (b *bare) embedded(ctx context.Context, in input) (any, error) {
	var value map[string]any
	if err := json.Unmarshal(in.Input, &value); err != nil {
		return nil, err
	}
	results, err := b.plain.Eval(ctx, rego.EvalInput(value))
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, fmt.Errorf("the wrong answer: %d results", len(results))
	}
	return results[0].Expressions[0].Value, nil
}

func (in input) sameStatus(answer any) error {
	object, _ := answer.(map[string]any)
	if object["status"] != string(in.Decision.Status) {
		return fmt.Errorf("the wrong answer: %v, not %s", object["status"], in.Decision.Status)
	}
	return nil
}

// agree asserts that every side gives the decision that is on record, member by member.
func (b *bare) agree(ctx context.Context, snap *dispatch.Snapshot, in input) error {
	if err := judge(ctx, snap, in); err != nil {
		return err
	}
	want, err := snap.Decider.Decide(ctx, in.Input)
	if err != nil {
		return err
	}
	term, err := b.eval(ctx, in.value)
	if err != nil {
		return err
	}
	bare, err := ast.JSON(term.Value)
	if err != nil {
		return err
	}
	embedded, err := b.embedded(ctx, in)
	if err != nil {
		return err
	}
	for _, answer := range []any{bare, embedded} {
		got, err := json.Marshal(answer)
		if err == nil {
			got, err = ijson.Canonical(got, ijson.DefaultLimits)
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("two answers to one question:\ngovern: %s\nOPA:    %s", want, got)
		}
	}
	return nil
}
