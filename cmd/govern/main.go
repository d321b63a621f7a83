// Command govern decides what a language model's proposed tool calls may do, and does it at most once.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Whoever reads our output may leave. A write then fails and says so, where a signal would end the program between
	// what is on record and what was told.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program wherever it is
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
