//go:build linux && !failpoints

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Who can set a variable of the environment can neither kill an ordinary build nor put its clock ahead.
func TestAnOrdinaryBuildHasNoFailpoints(t *testing.T) {
	for _, p := range points {
		h := newHome(t)
		h.env = []string{"FAILPOINT=" + p, "FAILPOINT_CLOCK_AHEAD=not even a duration"}
		a := h.govern("run", "draft.json")
		require.Equal(t, exitWaiting, a.code, a.stderr)
		require.Zero(t, a.signal)
	}
}
