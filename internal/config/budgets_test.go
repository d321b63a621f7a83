package config

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parse(budgets string) (Config, error) {
	return Parse("c.yaml", []byte("profiles: {p: {max_steps: 1, budgets: "+budgets+"}}\n"))
}

// A budget of nothing is not the absence of one.
func TestBudgets(t *testing.T) {
	c, err := parse("{cost: 100, attempts: 0}")
	require.NoError(t, err)
	b := c.Profiles["p"].Budgets
	assert.EqualValues(t, 100, *b.Cost)
	assert.EqualValues(t, 0, *b.Attempts)
	assert.Nil(t, b.Output)
}

func TestBudgetsRefused(t *testing.T) {
	for budgets, want := range map[string]string{
		"{cost: -1}": "profiles.p.budgets.cost is -1; give 0 to 1000000000000000, or leave it out for no limit",
		fmt.Sprintf("{output: %d}", MostBudget+1): "profiles.p.budgets.output is 1000000000000001",
		"{attempt: 5}":               "attempt",
		"{attempts: 1.5}":            "attempts",
		"{attempts: many}":           "attempts",
		"[5]":                        "budgets",
		"{attempts: 5, attempts: 6}": "attempts",
		"{attempts: 9007199254740993000000000000000}": "attempts",
	} {
		_, err := parse(budgets)
		assert.ErrorContains(t, err, want, budgets)
		assert.ErrorContains(t, err, "c.yaml", budgets)
	}
}

// Budgets and writable sets are permissions, so another is another policy version.
func TestBudgetsAreCanonical(t *testing.T) {
	seen := map[string]string{}
	for _, profile := range []string{"budgets: {}", "budgets: {cost: 0}", "budgets: {cost: 1}", "budgets: {attempts: 1}", "writable: [a]", "writable: [b]"} {
		c, err := Parse("c.yaml", []byte("profiles: {p: {max_steps: 1, "+profile+"}}\n"))
		require.NoError(t, err)
		canonical, err := c.Canonical()
		require.NoError(t, err)
		assert.Empty(t, seen[string(canonical)], profile)
		seen[string(canonical)] = profile
	}
}

func TestWritableSetsAreKnown(t *testing.T) {
	c, err := Parse("c.yaml", []byte("profiles: {p: {max_steps: 1, writable: [draft]}}\n"))
	require.NoError(t, err)
	assert.NoError(t, c.CheckNames(nil, nil, []string{"draft", "letters"}))
	assert.EqualError(t, c.CheckNames(nil, nil, []string{"drafts", "letters"}), `c.yaml: profiles.p.writable: unknown set of targets "draft"; did you mean "drafts"?`)
	_, err = Parse("c.yaml", []byte("profiles: {p: {max_steps: 1, writable: [a, a]}}\n"))
	assert.ErrorContains(t, err, `profiles.p.writable names "a" twice`)
}
