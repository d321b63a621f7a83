//go:build long && linux

package main

import "testing"

func TestLongLineOf10GB(t *testing.T) { longLine(t, 10_000_000_000) }
