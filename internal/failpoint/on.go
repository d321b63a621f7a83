//go:build failpoints

// Package failpoint names the places where the process can be killed to see what becomes of a call. Only a program built with
// the tag failpoints has any; in others they are nothing.
package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Env names the place, and after a # the how-manieth time there counts: "after the start#2". AheadEnv is how far this process's
// clock is ahead, as a Go duration: so nothing has to wait for a lease to end.
const (
	Env      = "FAILPOINT"
	AheadEnv = "FAILPOINT_CLOCK_AHEAD"
)

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

var ahead = sync.OnceValue(func() time.Duration {
	given := os.Getenv(AheadEnv)
	if given == "" {
		return 0
	}
	d, err := time.ParseDuration(given)
	if err != nil {
		panic(AheadEnv + ": " + err.Error())
	}
	return d
})

// Now is the time of this process.
func Now() time.Time { return time.Now().Add(ahead()) }

// Here kills the process if this is the place. No deferred call runs and no buffer is written, as in any other sudden death.
func Here(name string) {
	if name != place || passed.Add(1) != nth {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
