//go:build !race

package opa

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a decision allocates is the measure of its cost that no noise of a machine touches, so the numbers are exact: more
// is a regression, and less is to be written down. They change with the policy, with OPA and with Go. Collection is off
// meanwhile, since it empties the pools; the race detector, which empties them at random, is not used.
func TestAllocationsOfADecision(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	p := shipped(t)
	for name, want := range map[string]float64{
		"allow_read": 579, "allow_draft": 810, "approval_required": 952, "cancelled": 258, "resource_denied": 412,
	} {
		input := sample(t, name)
		decide := func() {
			_, err := p.Decide(t.Context(), input)
			require.NoError(t, err)
		}
		for range 20 { // fills the pools
			decide()
		}
		got := testing.AllocsPerRun(100, decide)
		assert.Equal(t, want, got, name)
	}
}
