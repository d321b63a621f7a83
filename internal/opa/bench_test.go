package opa

import (
	"bytes"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// BenchmarkDecide holds a decision against the evaluation that it is made of: bare is rego.Eval with its best options, of
// an input that is there already and with the answer left as Rego has it; whole reads the same bytes first and makes Go
// values of the answer; usual is how OPA is mostly embedded. judge is what a replay asks: Decide, and the answer checked
// against the input.
func BenchmarkDecide(b *testing.B) {
	p := shipped(b)
	store := rego.Store(p.decision.store)
	ctx := b.Context()
	fast, err := rego.New(rego.Query(entrypoint), rego.Compiler(p.compiler), store, rego.StrictBuiltinErrors(true),
		rego.GenerateJSON(func(term *ast.Term, _ *rego.EvalContext) (any, error) { return term.Value, nil })).PrepareForEval(ctx)
	require.NoError(b, err)
	usual, err := rego.New(rego.Query(entrypoint), rego.Compiler(p.compiler), store).PrepareForEval(ctx)
	require.NoError(b, err)
	eval := func(value ast.Value) (rego.ResultSet, error) {
		return fast.Eval(ctx, rego.EvalParsedInput(value), rego.EvalExternalCancel(topdown.NewCancel()),
			rego.EvalMetrics(metrics.NoOp()), rego.EvalTransaction(p.decision.read))
	}
	for _, name := range []string{"allow_read", "allow_draft", "approval_required", "cancelled", "resource_denied"} {
		input := sample(b, name)
		value, err := ast.ValueFromReader(bytes.NewReader(input))
		require.NoError(b, err)
		var plain map[string]any
		require.NoError(b, ijson.Unmarshal(input, &plain))
		for _, way := range []struct {
			name string
			ask  func() error
		}{
			{"bare", func() error { _, err := eval(value); return err }},
			{"decide", func() error { _, err := p.Decide(ctx, input); return err }},
			{"whole", func() error {
				value, err := ast.ValueFromReader(bytes.NewReader(input))
				if err != nil {
					return err
				}
				results, err := eval(value)
				if err != nil {
					return err
				}
				_, err = ast.JSON(results[0].Expressions[0].Value.(ast.Value))
				return err
			}},
			{"usual", func() error { _, err := usual.Eval(ctx, rego.EvalInput(plain)); return err }},
			{"judge", func() error { _, err := dispatch.Judge(ctx, p, p.version, input); return err }},
		} {
			b.Run(name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := way.ask(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
