package config_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
)

func profile(t testing.TB, text string) (config.Config, error) {
	t.Helper()
	return read(t, "profiles: {p: {max_steps: 1, "+text+"}}\n")
}

// A budget of nothing is not the absence of one.
func TestBudgets(t *testing.T) {
	c, err := profile(t, "budgets: {cost: 100, attempts: 0}")
	require.NoError(t, err)
	b := c.Profiles["p"].Budgets
	assert.EqualValues(t, 100, *b.Cost)
	assert.EqualValues(t, 0, *b.Attempts)
	assert.Nil(t, b.Output)
}

func TestBudgetsRefused(t *testing.T) {
	for budgets, want := range map[string]string{
		"{cost: -1}": "profiles.p.budgets.cost: it is -1; give 0 to 1000000000000000, or leave it out for no limit",
		fmt.Sprintf("{output: %d}", config.MostBudget+1): "profiles.p.budgets.output: it is 1000000000000001",
		"{attempts: -1}":             "profiles.p.budgets.attempts: it is -1",
		"{attempt: 5}":               "attempt",
		"{attempts: 1.5}":            "attempts",
		"{attempts: many}":           "attempts",
		"[5]":                        "budgets",
		"{attempts: 5, attempts: 6}": "attempts",
		"{attempts: 9007199254740993000000000000000}": "attempts",
	} {
		_, err := profile(t, "budgets: "+budgets)
		assert.ErrorContains(t, err, want, budgets)
		assert.ErrorContains(t, err, "config.yaml", budgets)
	}
}

// Budgets and writable sets are permissions, so another is another policy version.
func TestBudgetsAreCanonical(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{"budgets: {}", "budgets: {cost: 0}", "budgets: {cost: 1}", "budgets: {attempts: 1}", "writable: [a]", "writable: [b]"} {
		c, err := profile(t, text)
		require.NoError(t, err)
		canonical, err := c.Canonical()
		require.NoError(t, err)
		assert.Empty(t, seen[string(canonical)], text)
		seen[string(canonical)] = text
	}
}

func TestSetsAreKnown(t *testing.T) {
	c, err := profile(t, "writable: [draft], readable: [Draft]")
	require.NoError(t, err)
	assert.NoError(t, c.CheckNames([]string{"Draft"}, []string{"draft", "letters"}))
	err = c.CheckNames([]string{"draft"}, []string{"drafts", "letters"})
	assert.ErrorContains(t, err, `config.yaml:1: profiles.p.readable[0]: unknown set of readable targets "Draft"; did you mean "draft"?`)
	assert.ErrorContains(t, err, `config.yaml:1: profiles.p.writable[0]: unknown set of writable targets "draft"; did you mean "drafts"?`)
	assert.ErrorContains(t, c.CheckNames(nil, nil), `unknown set of writable targets "draft"; there is none`)
}
