//go:build long && linux

package main

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// The same as process_test.go, at every moment and for longer.

// killEverywhere kills a command at each call that changes a file, tells of a change, or takes or gives back a lock:
// between two of the latter the index of the write-ahead log changes, in memory that the processes share.
func killEverywhere(t *testing.T, v victim) {
	t.Helper()
	needStrace(t)
	v.kill(t, v.plan(t, append([]string{"fcntl"}, mutations...)...))
}

func TestLongKilledAnywhereInARedemption(t *testing.T)  { t.Parallel(); killEverywhere(t, redeeming(t)) }
func TestLongKilledAnywhereInTheFirstRun(t *testing.T)  { t.Parallel(); killEverywhere(t, beginning(t)) }
func TestLongKilledAnywhereInAnApproval(t *testing.T)   { t.Parallel(); killEverywhere(t, approving(t)) }
func TestLongOneApprovalForManyProcesses(t *testing.T)  { redeemRounds(t, 200) }
func TestLongB045ApproveAndRejectTogether(t *testing.T) { opposed(t, 100) }

func TestLongB063ProcessesShareTheState(t *testing.T) {
	end := time.Now().Add(30 * time.Second)
	busyState(t, func(int) bool { return time.Now().Before(end) })
}

func TestLongSignalStopsBetweenProposals(t *testing.T) {
	for after := range 50 {
		signal := []os.Signal{syscall.SIGTERM, os.Interrupt}[after%2]
		t.Run(fmt.Sprint(signal, " after ", after+1), func(t *testing.T) { stopped(t, signal, after+1) })
	}
}
