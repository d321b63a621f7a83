package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is the program too: called by the name govern, it is govern. A copy under that name is the first on
// PATH, for scripts and for tests that start processes of their own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"govern": main})
}
