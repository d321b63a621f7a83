//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is what this process has taken of all processors so far. Unlike the time that passes, it does not depend on
// who else uses the machine.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
