//go:build long && linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	zsqlite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// failEverywhere lets each call of a command that opens or changes a file fail once, and those at which something else
// begins or ends in every other way.
func failEverywhere(t *testing.T, of func(*testing.T) victim) {
	t.Helper()
	needStrace(t)
	v := of(t)
	all := v.plan(t, append(openings, mutations...)...)
	v.fail(t, ioError, all)
	v.fail(t, full, edges(all))
	v.fail(t, fault{error: "EIO", onwards: true}, edges(all))
}

func TestLongFaultsAnywhereInARedemption(t *testing.T) { t.Parallel(); failEverywhere(t, redeeming) }
func TestLongFaultsAnywhereInTheFirstRun(t *testing.T) { t.Parallel(); failEverywhere(t, beginning) }
func TestLongFaultsAnywhereInAnApproval(t *testing.T)  { t.Parallel(); failEverywhere(t, approving) }

func TestLongFullDisk(t *testing.T) {
	if !mayMount(t) {
		return // injected faults stand for it
	}
	for name, of := range victims {
		t.Run(name, func(t *testing.T) {
			fillDisk(t, of(t), []int{0, 1, 2, 3, 4, 6, 9, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128})
		})
	}
}

// B012, at the command: another process keeps the state locked for longer than anybody waits.
func TestLongB012ALockedStateStopsTheCommand(t *testing.T) {
	t.Parallel()
	h := approved(t)
	conn, err := zsqlite.OpenConn(h.state(), zsqlite.OpenReadWrite)
	require.NoError(t, err)
	conn.SetBusyTimeout(0)
	require.NoError(t, sqlitex.ExecuteTransient(conn, "BEGIN IMMEDIATE", nil))
	for _, args := range [][]string{{"run", "--approved"}, {"cancel", "labels-1"}} {
		a := h.govern(args...)
		require.Equal(t, exitDenied, a.code, a.stderr)
		require.Empty(t, a.stdout)
		require.Contains(t, a.stderr, "another process has kept "+h.state()+" locked")
		require.Contains(t, a.stderr, "try again")
	}
	require.NoError(t, conn.Close())
	h.works(t)
}
