package opa

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Decide evaluates data.policy.decision over one input. Anything but exactly one value is a *dispatch.PolicyError; if
// ctx ended, the error is the context's.
func (p *Policy) Decide(ctx context.Context, input ijson.Raw) (ijson.Raw, error) {
	return p.ask(ctx, p.query, entrypoint, input)
}

// ask evaluates one rule over one input.
func (p *Policy) ask(ctx context.Context, query rego.PreparedEvalQuery, rule string, input ijson.Raw) (ijson.Raw, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	value, err := ast.ValueFromReader(bytes.NewReader(input))
	if err != nil {
		return nil, failed("the input is not JSON: %v", err)
	}
	results, err := p.inTime(ctx, query, value)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, p.policyError(err)
	}
	switch {
	case len(results) == 0:
		return nil, &dispatch.PolicyError{Code: "policy_undefined", Detail: rule + " has no value for this input"}
	case len(results) > 1 || len(results[0].Expressions) != 1:
		return nil, failed("%s has %d results", rule, len(results))
	}
	answer, err := toJSON(results[0].Expressions[0].Value.(ast.Value))
	if err != nil {
		return nil, malformed("the value of %s: %v", rule, err)
	}
	if len(answer) > maxAnswer {
		return nil, malformed("the value of %s is %d bytes long; the limit is %d", rule, len(answer), maxAnswer)
	}
	return answer, nil
}

// maxAnswer bounds a decision, which is answered and recorded whole.
const maxAnswer = 64 << 10

// inTime evaluates, and gives up when the time is over or ctx is done: most built-ins then end by themselves, and
// whatever does not is left behind.
func (p *Policy) inTime(ctx context.Context, query rego.PreparedEvalQuery, input ast.Value) (rego.ResultSet, error) {
	cancel := topdown.NewCancel()
	type outcome struct {
		results rego.ResultSet
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		results, err := eval(ctx, query, input, cancel)
		done <- outcome{results, err}
	}()
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.results, o.err
	case <-ctx.Done():
		cancel.Cancel()
		return nil, ctx.Err()
	case <-timer.C:
		cancel.Cancel()
		return nil, p.late()
	}
}

// eval lets no panic through: a fault in a built-in is a denial, not the end of the process.
func eval(ctx context.Context, query rego.PreparedEvalQuery, input ast.Value, cancel topdown.Cancel) (results rego.ResultSet, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			results, err = nil, failed("panic: %v", fault)
		}
	}()
	return query.Eval(ctx,
		rego.EvalParsedInput(input),
		rego.EvalExternalCancel(cancel),
		rego.EvalMetrics(metrics.NoOp()),
	)
}

// toJSON gives a Rego value its canonical form. Sets become arrays, as in OPA's own answers; what JSON cannot say is
// refused rather than approximated.
func toJSON(v ast.Value) (ijson.Raw, error) {
	plain, err := toGo(v)
	if err != nil {
		return nil, err
	}
	return ijson.Marshal(plain)
}

func toGo(v ast.Value) (any, error) {
	switch v := v.(type) {
	case ast.Null:
		return nil, nil
	case ast.Boolean:
		return bool(v), nil
	case ast.Number:
		return ijson.Raw(v), nil // Marshal judges whether a double can hold it
	case ast.String:
		return string(v), nil
	case *ast.Array:
		return toSlice(v.Len(), v.Foreach)
	case ast.Set:
		return toSlice(v.Len(), v.Foreach)
	case ast.Object:
		object := make(map[string]any, v.Len())
		err := v.Iter(func(name, member *ast.Term) error {
			s, ok := name.Value.(ast.String)
			if !ok {
				return fmt.Errorf("an object has the name %v, which is no string", name)
			}
			value, err := toGo(member.Value)
			object[string(s)] = value
			return err
		})
		return object, err
	}
	return nil, fmt.Errorf("a %s is no JSON value", ast.ValueName(v))
}

func toSlice(n int, each func(func(*ast.Term))) (any, error) {
	items := make([]any, 0, n)
	var failure error
	each(func(t *ast.Term) {
		item, err := toGo(t.Value)
		if err != nil {
			failure = err
		}
		items = append(items, item)
	})
	return items, failure
}
