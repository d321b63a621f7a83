// Command govern decides what a language model's proposed tool calls may do, and does it at most once.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	// Whoever reads our output may leave. A write then fails and says so, where a signal would end the program between
	// what is on record and what was told.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program wherever it is
	room := headroom()
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	runtime.KeepAlive(room)
	stop()
	os.Exit(code)
}

// headroom is memory that nothing is written to, so that it takes up none. It counts for the collector, which begins when
// what is alive has doubled: without it, the little that govern keeps is collected several times as often, at a fifth of
// its time. An operator who sets GOGC or GOMEMLIMIT decides instead.
func headroom() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, 12<<20)
}
