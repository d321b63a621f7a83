//go:build long && linux

package main

import (
	"testing"
	"time"
)

// The same as log_process_test.go and log_follow_test.go, for longer.

func TestLongTwoProcessesAppend(t *testing.T) { appending(t, time.Now().Add(30*time.Second)) }

func TestLongB074ASlowFollower(t *testing.T) { slowFollower(t, 20_000) }
