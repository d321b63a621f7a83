//go:build !unix

package main

import "time"

var began = time.Now()

// processorTime is the time that has passed, where nothing better is known.
func processorTime() time.Duration { return time.Since(began) }
