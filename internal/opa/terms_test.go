package opa

import (
	"bytes"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// anyJSON draws values of every kind, with names that sort differently as UTF-8 and as UTF-16, and numbers on both sides
// of what is written without thought.
func anyJSON() *rapid.Generator[any] {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"epoch", "enforce", "\uffff", "\U00010000", "é", "\"\\\n", ""}))
	number := rapid.OneOf(rapid.Just(ijson.Raw("1e3")), rapid.Just(ijson.Raw("-0")), rapid.Just(ijson.Raw("0.5")), rapid.Just(ijson.Raw("1E30")),
		rapid.Map(rapid.Int64Range(-1<<53, 1<<53), func(n int64) ijson.Raw { raw, _ := ijson.Marshal(n); return raw }))
	scalar := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any](false),
		rapid.Map(text, func(s string) any { return s }), rapid.Map(number, func(n ijson.Raw) any { return n }))
	value := scalar
	for range 3 {
		value = rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(value, 0, 4), func(list []any) any { return list }),
			rapid.Map(rapid.MapOfN(text, value, 0, 10), func(object map[string]any) any { return object }))
	}
	return value
}

func TestTermsAreThoseOfOPA(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := ijson.Encode(anyJSON().Draw(t, "value"))
		require.NoError(t, err)
		want, err := ast.ValueFromReader(bytes.NewReader(text))
		require.NoError(t, err)
		got, err := termsOf(text)
		require.NoError(t, err)
		require.Zero(t, want.Compare(got), "%s became %s", text, got)
		require.Equal(t, want.Hash(), got.Hash())
		require.Equal(t, want.String(), got.String())
	})
}

func TestAnswersAreCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := ijson.Encode(anyJSON().Draw(t, "value"))
		require.NoError(t, err)
		want, err := ijson.Canonical(text, ijson.DefaultLimits)
		require.NoError(t, err)
		value, err := ast.ValueFromReader(bytes.NewReader(text))
		require.NoError(t, err)
		got, err := toJSON(value)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}

func TestTextThatIsNotUTF8IsNoAnswer(t *testing.T) {
	_, err := toJSON(ast.NewArray(ast.StringTerm("\xff")))
	require.Error(t, err)
}

// Rego takes for numbers what JSON does not.
func TestNumberThatIsNoJSONIsNoAnswer(t *testing.T) {
	p := regoPolicy(t, "decision := {\"n\": [to_number(input.call.arguments.text)]}\n")
	for _, text := range []string{"007", "00", "-01", "+5", "1_0", ".5"} {
		assert.Equal(t, "policy_malformed", policyError(t, p, withArguments(`{"text": "`+text+`"}`)).Code, text)
	}
	raw, err := p.Decide(t.Context(), ijson.Raw(withArguments(`{"text": "0"}`)))
	require.NoError(t, err)
	assert.Equal(t, `{"n":[0]}`, string(raw))
}

// The words of every input share their terms.
func TestWordsOfTheInput(t *testing.T) {
	for _, word := range []string{"now", "rfc3339", "enforce", "dry_run", "arguments", "violations", "reviewer", "expires_at_step", "write"} {
		assert.Contains(t, words(), word)
	}
}

// What is read of the data without the store is what the store gives.
func TestDataIsReadAsFromTheStore(t *testing.T) {
	bundle := files{"d.json": `{"d": {"a": [10, [20]], "1": "one", "o": {"p": null, "q": {"r": false}}, "e": {}}}`}
	for _, read := range []string{
		`data.d.a[0]`, `data.d.a[1][0]`, `data.d.a[9]`, `data.d["1"]`, `data.d[1]`, `data.d.o`, `data.d.o.p`, `data.d.o.q.r`, `data.d.e`,
		`[v | some k in [0, 1, "0", "1", 9, null]; v := data.d.a[k]]`, `[v | some k in ["1", 1, "o", "none", ["o"]]; v := data.d[k]]`,
		`[x | some x in data.d.a]`, `{k | some k, _ in data.d}`, `[v | some k in ["p", "q"]; v := data.d.o[k]]`, `data.d.e[_]`,
		`object.get(data.d, "o", 1)`, `object.get(data.d, ["o", "q"], 1)`, `count(data.d)`, `data.govern.version`,
	} {
		t.Run(read, func(t *testing.T) {
			p, err := load(t, bundle.with("a.rego", "package policy\n\ndecision := "+read+"\n"))
			require.NoError(t, err)
			prepared, err := rego.New(rego.Query(entrypoint), rego.Compiler(p.compiler), rego.Store(p.decision.store)).PrepareForEval(t.Context())
			require.NoError(t, err)
			for range 2 {
				want, err := prepared.Eval(t.Context())
				require.NoError(t, err)
				got, err := p.decision.answer(t.Context(), ast.NewObject(), topdown.NewCancel())
				if len(want) == 0 {
					require.Error(t, err)
					continue
				}
				require.NoError(t, err)
				plain, err := ast.JSON(got)
				require.NoError(t, err)
				require.Equal(t, want[0].Expressions[0].Value, plain)
			}
		})
	}
}
