package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is also the program: called by the name govern it is govern. testscript puts it on PATH under
// that name, for the scripts and for the tests that start processes of their own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"govern": main})
}
