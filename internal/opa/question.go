package opa

import (
	"context"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// question is one rule that a policy is asked for, ready to be evaluated for any number of inputs at once.
type question struct {
	rule     string
	body     ast.Body
	query    ast.QueryCompiler
	compiler *ast.Compiler
	store    storage.Store
	// read is a transaction that never ends: nothing writes to the store of a policy.
	read storage.Transaction
	data constants
}

const answerVar = ast.Var("answer")

func newQuestion(ctx context.Context, compiler *ast.Compiler, store storage.Store, rule string) (*question, error) {
	q := &question{rule: rule, compiler: compiler, store: store, query: compiler.QueryCompiler()}
	var err error
	ask := ast.Equality.Expr(ast.NewTerm(answerVar), ast.NewTerm(ast.MustParseRef(rule)))
	if q.body, err = q.query.Compile(ast.NewBody(ask)); err != nil {
		return nil, fmt.Errorf("the policy cannot be asked for %s: %w", rule, err)
	}
	if q.read, err = store.NewTransaction(ctx); err != nil {
		return nil, fmt.Errorf("the policy's data: %w", err)
	}
	data, err := store.Read(ctx, q.read, storage.RootPath)
	if err != nil {
		return nil, fmt.Errorf("the policy's data: %w", err)
	}
	q.data.root, _ = data.(ast.Object)
	return q, nil
}

// constants answer reads of the data, which never changes, for all evaluations at once. Each would otherwise keep what it
// has read. What they do not know is left to the store, among it what Rego reads of arrays.
type constants struct{ root ast.Object }

// Get implements topdown.BaseCache.
func (c constants) Get(ref ast.Ref) ast.Value {
	if len(ref) < 2 || c.root == nil {
		return nil
	}
	at := ast.Value(c.root)
	for _, step := range ref[1:] {
		object, ok := at.(ast.Object)
		if !ok {
			return nil
		}
		member := object.Get(step)
		if member == nil {
			return nil
		}
		at = member.Value
	}
	return at
}

// Put implements topdown.BaseCache.
func (constants) Put(ast.Ref, ast.Value) {}

// answer evaluates the question for one input. It lets no panic through: a fault in a built-in is a denial, not the end of
// the process.
func (q *question) answer(ctx context.Context, input ast.Value, cancel topdown.Cancel) (answer ast.Value, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			answer, err = nil, failed("panic: %v", fault)
		}
	}()
	answers := 0
	err = topdown.NewQuery(q.body).
		WithQueryCompiler(q.query).
		WithCompiler(q.compiler).
		WithStore(q.store).
		WithTransaction(q.read).
		WithBaseCache(q.data).
		WithStrictBuiltinErrors(true).
		WithMetrics(metrics.NoOp()).
		WithTime(noTime).
		WithCancel(cancel).
		WithInput(ast.NewTerm(input)).
		Iter(ctx, func(result topdown.QueryResult) error {
			answers++
			answer = result[answerVar].Value
			return nil
		})
	switch {
	case err != nil:
		return nil, err
	case answers == 0:
		return nil, &dispatch.PolicyError{Code: "policy_undefined", Detail: q.rule + " has no value for this input"}
	case answers > 1:
		return nil, failed("%s has %d values", q.rule, answers)
	}
	return answer, nil
}

// noTime stands where the clock would be read, which no policy can ask for.
var noTime = time.Unix(1, 0)
