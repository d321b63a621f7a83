package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A result comes from a file that somebody names, and some never end.
func TestAResultIsReadToItsLimit(t *testing.T) {
	_, err := readResult(t.Context(), "@/dev/zero")
	assert.ErrorContains(t, err, "--result is not I-JSON")
}
