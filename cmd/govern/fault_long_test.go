//go:build long && linux

package main

import "testing"

// failEverywhere lets each call of a command that opens or changes a file fail once, and those at which something else
// begins or ends in every other way.
func failEverywhere(t *testing.T, of func(*testing.T) victim) {
	t.Helper()
	needStrace(t)
	v := of(t)
	all := v.plan(t, append(openings, mutations...)...)
	v.fail(t, ioError, all)
	for _, f := range []fault{full, {error: "ENOSPC"}, {error: "EIO", onwards: true}} {
		v.fail(t, f, edges(all))
	}
}

func TestLongFaultsAnywhereInARedemption(t *testing.T) { t.Parallel(); failEverywhere(t, redeeming) }
func TestLongFaultsAnywhereInTheFirstRun(t *testing.T) { t.Parallel(); failEverywhere(t, beginning) }
func TestLongFaultsAnywhereInAnApproval(t *testing.T)  { t.Parallel(); failEverywhere(t, approving) }
