//go:build !failpoints

// Package failpoint names the places where the process can be killed to see what becomes of a call. Only a program built with
// the tag failpoints has any; in others they are nothing.
package failpoint

import "time"

// Now is the time.
func Now() time.Time { return time.Now() }

// Here is a place where the process can be killed.
func Here(string) {}
