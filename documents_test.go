package govern_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	testNames  = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]+)`")
	testFuncs  = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	markdownTo = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

	reports   = regexp.MustCompile(`\b(?:Test(?:Long)?)?(B[0-9]{3})(?:[^0-9]|$)`)
	reportRow = regexp.MustCompile(`(?m)^\| (B[0-9]{3}) \| (.+?) \| .+? \| (.+) \|$`)
	reference = regexp.MustCompile(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+#[0-9]+$`)
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

// docs/reports.md has a row for every report that a test names, and no other; what a row names as its test is there, and
// says which report it is about.
func TestReportsAndTestsNameEachOther(t *testing.T) {
	namedIn := map[string]map[string]bool{} // which files name a report
	declaredIn := map[string]string{}       // which file has a test
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		isTest := strings.HasSuffix(file, "_test.go")
		if err != nil || d.IsDir() || !isTest && !slices.Contains([]string{".txtar", ".yaml", ".rego"}, filepath.Ext(file)) {
			return err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range reports.FindAllStringSubmatch(string(b), -1) {
			if namedIn[m[1]] == nil {
				namedIn[m[1]] = map[string]bool{}
			}
			namedIn[m[1]][filepath.ToSlash(file)] = true
		}
		if isTest {
			for _, m := range testFuncs.FindAllStringSubmatch(string(b), -1) {
				declaredIn[m[1]] = filepath.ToSlash(file)
			}
		}
		return nil
	}))
	text, err := os.ReadFile("docs/reports.md")
	require.NoError(t, err)
	var listed []string
	for _, row := range reportRow.FindAllStringSubmatch(string(text), -1) {
		report, references, tests := row[1], row[2], row[3]
		listed = append(listed, report)
		for r := range strings.SplitSeq(references, ", ") {
			assert.Regexp(t, reference, r, report)
		}
		var files []string
		for _, m := range testNames.FindAllStringSubmatch(tests, -1) {
			file, ok := declaredIn[m[1]]
			assert.True(t, ok, "%s names %s, and there is no such test", report, m[1])
			files = append(files, file)
		}
		for _, m := range markdownTo.FindAllStringSubmatch(tests, -1) {
			files = append(files, path.Join("docs", m[1]))
		}
		assert.NotEmpty(t, files, "%s has no test", report)
		for _, file := range files {
			assert.True(t, namedIn[report][file], "%s is said to be tested in %s, which does not name it", report, file)
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(namedIn)), listed, "one row for each report that a test names, in order")
}
