package govern_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/policy-dispatch/govern"

// mayImport says which of our packages each package may use: arrows go one way, from the edges to the domain, and
// adapters do not know one another. internal/snapshot joins configuration,
// policy and tools, and cmd/govern all.
var mayImport = map[string][]string{
	".":                   {},
	"internal/ijson":      {},
	"internal/nearest":    {},
	"internal/strictyaml": {"internal/ijson", "internal/nearest"},
	"internal/failpoint":  {},
	"internal/dispatch":   {"internal/failpoint", "internal/ijson"},
	"internal/journal":    {"internal/dispatch", "internal/ijson", "internal/merkle"},
	"internal/watch":      {},
	"internal/cursor":     {"internal/ijson"},
	"internal/opa":        {".", "internal/dispatch", "internal/ijson", "internal/nearest"},
	"internal/outbound":   {"internal/failpoint"},
	"internal/tools":      {"internal/dispatch", "internal/ijson", "internal/nearest", "internal/outbound"},
	"internal/wholefile":  {},
	"internal/merkle":     {},
	"internal/audit":      {"internal/ijson", "internal/merkle"},
	"internal/checkpoint": {"internal/merkle", "internal/wholefile"},
	"internal/seal":       {},
	"internal/sqlite":     {"internal/dispatch", "internal/failpoint", "internal/ijson", "internal/merkle", "internal/seal", "internal/wholefile"},
	"internal/storetest":  {"internal/dispatch", "internal/ijson", "internal/merkle"},
	"internal/config":     {"internal/ijson", "internal/nearest", "internal/strictyaml", "internal/wholefile"},
	"internal/scenario":   {"internal/dispatch", "internal/ijson", "internal/journal", "internal/strictyaml"},
	"internal/snapshot":   {".", "internal/config", "internal/dispatch", "internal/ijson", "internal/opa", "internal/tools"},
	"cmd/govern": {".", "internal/audit", "internal/checkpoint", "internal/config", "internal/cursor", "internal/dispatch", "internal/failpoint", "internal/ijson", "internal/journal", "internal/merkle", "internal/nearest",
		"internal/opa", "internal/scenario", "internal/snapshot", "internal/sqlite", "internal/tools", "internal/watch"},
	"bench/stock":              {},
	"examples/payments/ledger": {},
	"bench":                    {".", "bench/stock", "internal/audit", "internal/config", "internal/dispatch", "internal/ijson", "internal/merkle", "internal/snapshot", "internal/sqlite"},
}

// onlyIn names the packages in which a library with sharp edges may be touched. Beside them bench uses OPA, a driver of
// database/sql and encoding/json as others use them, to compare govern with that.
var onlyIn = map[string][]string{
	"github.com/open-policy-agent/opa":      {"internal/opa", "bench", "bench/stock"},
	"github.com/go-json-experiment/json":    {"internal/ijson"},
	"go.yaml.in/yaml/v3":                    {"internal/strictyaml"},
	"zombiezen.com/go/sqlite":               {"internal/sqlite", "internal/audit"},
	"modernc.org/sqlite":                    {"internal/sqlite", "bench"},
	"github.com/santhosh-tekuri/jsonschema": {"internal/tools"},
	"github.com/spf13/viper":                {"internal/config"},
	"github.com/spf13/cobra":                {"cmd/govern"},
	"golang.org/x/mod/sumdb/tlog":           {"internal/merkle"},
	"golang.org/x/mod/sumdb/note":           {"internal/checkpoint"},
	// It folds case, keeps the last of repeated names, and rounds. The tools only write constants of schemas with it.
	"encoding/json": {"internal/tools", "bench", "examples/payments/ledger"},
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for file, imports := range sources(t) {
		pkg := path.Dir(file)
		allowed, known := mayImport[pkg]
		require.True(t, known, "%s is in a package that the table of imports does not have; say there what it may use", file)
		seen[pkg] = true
		for _, imported := range imports {
			if own, ok := ours(imported); ok {
				assert.Contains(t, allowed, own, "%s imports %s", file, own)
				continue
			}
			for library, packages := range onlyIn {
				if imported == library || strings.HasPrefix(imported, library+"/") {
					assert.Contains(t, packages, pkg, "%s imports %s", file, imported)
				}
			}
			if pkg == "internal/dispatch" {
				assert.NotContains(t, strings.Split(imported, "/")[0], ".", "%s imports %s; the domain stands on the standard library", file, imported)
			}
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(mayImport)), slices.Collect(maps.Keys(seen)), "the table of imports holds what there is")
}

func ours(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// sources gives the imports of every Go file that is no test.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		imports := []string{}
		for _, i := range f.Imports {
			imports = append(imports, strings.Trim(i.Path.Value, `"`))
		}
		out[filepath.ToSlash(file)] = imports
		return nil
	}))
	require.NotEmpty(t, out)
	return out
}
