package govern_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	testNames  = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]+)`")
	testFuncs  = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	markdownTo = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// A document that names a test names one that exists, and a link leads to a file.
func TestDocumentsNameWhatExists(t *testing.T) {
	exist := map[string]bool{}
	var documents []string
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch {
		case strings.HasSuffix(file, "_test.go"):
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for _, m := range testFuncs.FindAllStringSubmatch(string(b), -1) {
				exist[m[1]] = true
			}
		case strings.HasSuffix(file, ".md"):
			documents = append(documents, file)
		}
		return nil
	}))
	require.NotEmpty(t, documents)
	named := 0
	for _, file := range documents {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range testNames.FindAllStringSubmatch(string(b), -1) {
			named++
			assert.True(t, exist[m[1]], "%s names %s, and there is no such test", file, m[1])
		}
		for _, m := range markdownTo.FindAllStringSubmatch(string(b), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(file), m[1]))
			assert.NoError(t, err, "%s links to %s", file, m[1])
		}
	}
	assert.NotZero(t, named)
}
