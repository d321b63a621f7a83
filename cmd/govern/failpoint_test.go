package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// points are the places at which the crash matrix kills govern, in the order in which a call passes them.
var points = []string{
	"before the start",
	"before COMMIT",
	"after COMMIT",
	"after the start",
	"before the call",
	"before the first byte",
	"after bytes of the request",
	"after the head of the answer",
	"after the call",
	"before the outcome",
	"after the outcome",
	"before a settlement",
}

// No place that the code names is left out of the matrix.
func TestTheMatrixHasEveryFailpoint(t *testing.T) {
	here := regexp.MustCompile(`failpoint\.Here\((.*)\)`)
	var named []string
	for _, root := range []string{"../../internal", "."} {
		require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			b, err := os.ReadFile(file)
			for _, m := range here.FindAllStringSubmatch(string(b), -1) {
				named = append(named, m[1])
			}
			return err
		}))
	}
	var wanted []string
	for _, p := range points {
		wanted = append(wanted, `"`+p+`"`)
	}
	slices.Sort(named)
	require.ElementsMatch(t, wanted, slices.Compact(named))
}
