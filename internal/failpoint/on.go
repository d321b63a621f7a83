//go:build failpoints

// Package failpoint names the places where the process can be killed to see what becomes of a call. Only a program built with
// the tag failpoints has any; in others they are nothing.
package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Env names the place, and after a # the how-manieth time there counts: "begun#2".
const Env = "GOVERN_FAILPOINT"

var (
	place, nth = wanted()
	passed     atomic.Int64
)

func wanted() (string, int64) {
	name, times, found := strings.Cut(os.Getenv(Env), "#")
	if !found {
		return name, 1
	}
	n, err := strconv.ParseInt(times, 10, 64)
	if err != nil {
		panic(Env + ": " + err.Error())
	}
	return name, n
}

// Here kills the process if this is the place. No deferred call runs and no buffer is written, as in any other sudden death.
func Here(name string) {
	if name != place || passed.Add(1) != nth {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
