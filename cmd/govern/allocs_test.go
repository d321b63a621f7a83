//go:build !race

package main

import (
	"context"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
)

// What a whole dispatch allocates, with its decision and its commit in memory. The numbers are exact, as those of
// TestAllocationsOfADecision: more is a regression, and less is to be written down.
func TestAllocationsOfADispatch(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for name, c := range map[string]struct {
		proposal string
		want     float64
	}{
		"read":      {read("a", "/warehouse/labels.txt"), 722},
		"calculate": {add("a"), 801},
	} {
		l := newLab(t, func(c *config.Config) {
			for name, p := range c.Profiles {
				p.MaxSteps = 100_000
				c.Profiles[name] = p
			}
		})
		one := func() {
			r, err := l.dispatcher.Dispatch(context.Background(), l.who, l.task, dispatch.Origin{Door: "test"}, []byte(c.proposal))
			require.NoError(t, err)
			require.Equal(t, dispatch.StatusOK, r.Status)
		}
		for range 20 { // fills the pools
			one()
		}
		assert.Equal(t, c.want, testing.AllocsPerRun(200, one), name)
	}
}
