package opa

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is listed of a folder is what its reader takes, or stumbles over; what lies beside it is nobody's business.
func TestFilesAt(t *testing.T) {
	dir := minimal.
		with("a_test.rego", "package policy_test\n").
		with(".manifest", `{}`).
		with("readable.json", `{}`).
		with("broken.rego", "no Rego").
		with("govern.db", "state").
		with("govern.db-wal", "state").
		with("README.md", "text").
		with(".swap.rego", "an editor's").
		with("..v1/a.rego", "another version").
		with("schemas/input.json", "{}").
		with("out/log.txt", "text").
		with("out/b.rego", "package policy\n").
		with("b.REGO", "package policy\n").
		with("data.yaml", "a: 1\n").
		with("policy.wasm", "").write(t)
	link, linked := filepath.Join(dir, "linked.rego"), filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.Symlink(linked, link)) // to nothing yet
	root := filepath.Join(t.TempDir(), "current")
	require.NoError(t, os.Symlink(dir, root))
	none, one := filepath.Join(dir, "none"), filepath.Join(dir, "data.json")

	var want []string
	for _, name := range []string{".manifest", "a.rego", "a_test.rego", "b.REGO", "broken.rego", "data.yaml", "linked.rego", "out/b.rego", "policy.wasm", "readable.json"} {
		want = append(want, filepath.Join(root, name))
	}
	assert.ElementsMatch(t, append(want, none, one), FilesAt([]string{root + "/", none, one}), "a link is entered")

	if os.Getuid() == 0 {
		return // whom no folder keeps out
	}
	closed := filepath.Join(dir, "closed")
	require.NoError(t, os.Mkdir(closed, 0))
	assert.Equal(t, []string{closed}, FilesAt([]string{closed}))
}
