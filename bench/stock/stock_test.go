package stock_test

import (
	"encoding/json"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/bench/stock"
)

// Built-ins come and go as a side needs them.
func TestStockBuiltins(t *testing.T) {
	const name = "count"
	called := 0
	own := topdown.GetBuiltin(name)
	topdown.RegisterBuiltinFunc(name, func(c topdown.BuiltinContext, args []*ast.Term, iter func(*ast.Term) error) error {
		called++
		return own(c, args, iter)
	})
	count := func() int {
		called = 0
		rs, err := rego.New(rego.Query("count(input)"), rego.Input([]any{1, 2})).Eval(t.Context())
		require.NoError(t, err)
		require.Equal(t, json.Number("2"), rs[0].Expressions[0].Value)
		return called
	}
	require.Equal(t, 1, count())
	back := stock.Use()
	assert.Equal(t, 0, count())
	back()
	assert.Equal(t, 1, count())
}
