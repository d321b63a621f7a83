package opa

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

var minimal = files{"a.rego": "package policy\n\n" + allow}

func TestReadFS(t *testing.T) {
	s, err := ReadFS(minimal.
		with("a_test.rego", "package policy_test\n\ntest_a if true\n").
		with(".manifest", `{"revision": "r-1", "roots": ["policy"], "rego_version": 1, "file_rego_versions": {}, "metadata": {"by": "ann"}}`).
		with("readable.json", `{"readable": {"s": {"/a": true}}}`).
		with("limits.json", `{"limits": {"n": 1}}`).
		with("README.md", "text").
		with(".hidden.rego", "package hidden\n").
		with("..v1/a.rego", "package policy\n").
		with("schemas/input.json", "no JSON at all").fs(), "here")
	require.NoError(t, err)
	assert.Equal(t, "here", s.Label())
	assert.Equal(t, "r-1", s.Revision())
	assert.Equal(t, []file{{"here/a.rego", "a.rego", minimal["a.rego"]}}, s.modules)
	require.Len(t, s.tests, 1)
	assert.Equal(t, map[string]any{"readable": map[string]any{"s": map[string]any{"/a": true}}, "limits": map[string]any{"n": 1.0}}, s.data.root)

	s, err = ReadFS(minimal.fs(), "here")
	require.NoError(t, err)
	assert.Equal(t, "local", s.Revision())
}

func TestReadFSRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		files files
		want  string
	}{
		"nothing":               {files{}, "here: there is no .rego file"},
		"tests alone":           {files{"a_test.rego": "package policy_test\n"}, "here: there is no .rego file"},
		"data alone":            {files{"a.json": `{}`}, "here: there is no .rego file"},
		"Rego in a folder":      {minimal.with("more/b.rego", "package policy\n"), "here/more/b.rego: a bundle is one flat folder"},
		"YAML":                  {minimal.with("data.yaml", "a: 1\n"), "here/data.yaml: data is read from JSON alone"},
		"YML":                   {minimal.with("data.yml", "a: 1\n"), "here/data.yml"},
		"data twice a name":     {minimal.with("d.json", `{"a": 1, "a": 2}`), "here/d.json: "},
		"data too big a number": {minimal.with("d.json", `{"a": 9007199254740993}`), "here/d.json: "},
		"data more than one":    {minimal.with("d.json", `{} {}`), "here/d.json: "},
		"data empty":            {minimal.with("d.json", ``), "here/d.json: "},
		"data not an object":    {minimal.with("d.json", `["a"]`), "here/d.json: data must be a JSON object"},
		"data null":             {minimal.with("d.json", `null`), "here/d.json: data must be a JSON object"},
		"YAML in capitals":      {minimal.with("data.YAML", "a: 1\n"), "here/data.YAML: data is read from JSON alone"},
		"Rego among schemas":    {minimal.with("schemas/b.rego", "package policy\n"), "here/schemas/b.rego: a bundle is one flat folder"},
		"a manifest below":      {minimal.with("more/.manifest", "{}"), "here/more/.manifest: a bundle is one flat folder"},
		"a byte order mark":     {files{"a.rego": "\ufeff" + minimal["a.rego"]}, "here/a.rego: it begins with a byte order mark"},
		"a misspelt revision":   {minimal.with(".manifest", `{"revison": "r-1"}`), `here/.manifest: a manifest has no "revison"; did you mean revision?`},
		"a member of its own":   {minimal.with(".manifest", `{"author": "ann"}`), `here/.manifest: a manifest has no "author"; there is revision, roots`},
		"a compiled policy":     {minimal.with(".manifest", `{"wasm": []}`), "here/.manifest: it names a compiled policy"},
		"a signature":           {minimal.with(".signatures.json", "{}"), "here/.signatures.json: it is a signature, and govern verifies none"},
		"a signature in view":   {minimal.with("signatures.json", "{}"), "here/signatures.json: it is a signature"},
		"manifest no JSON":      {minimal.with(".manifest", `revision: 1`), "here/.manifest: "},
		"revision no string":    {minimal.with(".manifest", `{"revision": 1}`), "here/.manifest: revision must be"},
		"revision with an @":    {minimal.with(".manifest", `{"revision": "a@b"}`), "here/.manifest: revision must be"},
		"revision with a line":  {minimal.with(".manifest", `{"revision": "a\nb"}`), "here/.manifest: revision must be"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadFS(c.files.fs(), "here")
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Data can never give, shadow or merge with what rules or govern say (B017).
func TestDataConflicts(t *testing.T) {
	for name, content := range map[string]string{
		"the decision":        `{"policy": {"decision": {"effect": "allow"}}}`,
		"beside the decision": `{"policy": {"other": 1}}`,
		"nothing under it":    `{"policy": {}}`,
		"no object":           `{"policy": false}`,
		"null":                `{"policy": null}`,
		"the tests":           `{"policy_test": {"profiles": {}}}`,
		"profiles":            `{"profiles": {"lab": {"tools": {"send_email": true}}}}`,
		"the version":         `{"govern": {"version": "lab-1"}}`,
		"escaped":             `{"p\u006flicy": {}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadFS(minimal.with("d.json", content).fs(), "here")
			require.ErrorContains(t, err, "here/d.json: data conflict")
			dir := minimal.write(t)
			path := filepath.Join(t.TempDir(), "pushed.json")
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			_, err = ReadPaths([]string{dir, path}, Source{})
			require.ErrorContains(t, err, path+": data conflict")
			s, err := ReadFS(minimal.fs(), "here")
			require.NoError(t, err)
			_, err = s.WithData("later.json", []byte(content))
			require.ErrorContains(t, err, "later.json: data conflict")
		})
	}
	for name, c := range map[string]struct{ first, second, want string }{
		"one value twice":      {`{"a": {"b": 1}}`, `{"a": {"b": 2}}`, "here/e.json: data conflict at /a/b: here/d.json"},
		"the same value twice": {`{"a": {"b": 1}}`, `{"a": {"b": 1}}`, "here/e.json: data conflict at /a/b: here/d.json"},
		"a value, an object":   {`{"a": 1}`, `{"a": {"b": 1}}`, "data conflict at /a: here/d.json"},
		"an object, a value":   {`{"a": {"b": 1}}`, `{"a": 1}`, "data conflict at /a: here/d.json"},
		"an odd name":          {`{"a/~": 1}`, `{"a/~": 1}`, "data conflict at /a~1~0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadFS(minimal.with("d.json", c.first).with("e.json", c.second).fs(), "here")
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Data is not what a name in another case, or a prefix of it, says it is.
func TestDataBesideThePolicy(t *testing.T) {
	p, err := load(t, files{"a.rego": "package policy\n\ndecision := [data.Policy.decision, data.policy2.decision]\n",
		"d.json": `{"Policy": {"decision": 1}, "policy2": {"decision": 2}}`})
	require.NoError(t, err)
	raw, err := p.Decide(t.Context(), ijson.Raw(`{}`))
	require.NoError(t, err)
	assert.Equal(t, "[1,2]", string(raw))
}

func TestWithDataLeavesTheFirstAlone(t *testing.T) {
	a, err := ReadFS(minimal.with("d.json", `{"readable": {"s": {"/a": true}}}`).fs(), "here")
	require.NoError(t, err)
	b, err := a.WithData("e.json", []byte(`{"readable": {"s": {"/b": true}}}`))
	require.NoError(t, err)
	assert.Len(t, a.data.root["readable"].(map[string]any)["s"], 1)
	assert.Len(t, b.data.root["readable"].(map[string]any)["s"], 2)
}

// Sets of targets come from one place: two that were joined could open what neither means to.
func TestSetsComeFromOnePlace(t *testing.T) {
	sets := []byte(`{"readable": {"s": {"/b": true}}}`)
	for _, own := range []string{`{"readable": {"s": {"/a": true}}}`, `{"writable": {}}`} {
		s, err := ReadFS(minimal.with("d.json", own).fs(), "here")
		require.NoError(t, err)
		_, err = s.WithSets("config.yaml", sets)
		require.ErrorContains(t, err, "config.yaml: data conflict: it says which targets there are, and so does data.")
		require.ErrorContains(t, err, "of here/d.json; let one of the two say it")

		base, err := ReadFS(minimal.with("d.json", `{"readable": {"base": {}}, "writable": {"base": {}}}`).fs(), "base")
		require.NoError(t, err)
		own, err := ReadPaths([]string{minimal.with("d.json", own).write(t)}, base)
		require.NoError(t, err)
		assert.Len(t, own.data.root, 1, "nothing is inherited beside its own")
	}
	s, err := ReadFS(minimal.fs(), "here")
	require.NoError(t, err)
	s, err = s.WithSets("config.yaml", sets)
	require.NoError(t, err)
	assert.Equal(t, []string{"s"}, s.ReadableSets())
}

func TestReadPaths(t *testing.T) {
	base, err := ReadFS(minimal.with("d.json", `{"readable": {"base": {"/a": true}}, "other": 1}`).
		with(".manifest", `{"revision": "base-1"}`).fs(), "base")
	require.NoError(t, err)

	dir := minimal.with(".manifest", `{"revision": "own-1"}`).write(t)
	s, err := ReadPaths([]string{dir}, base)
	require.NoError(t, err)
	assert.Equal(t, dir, s.Label())
	assert.Equal(t, "own-1", s.Revision())
	assert.Equal(t, map[string]any{"readable": map[string]any{"base": map[string]any{"/a": true}}}, s.data.root,
		"readable is inherited, and nothing else")

	data := files{"own.json": `{"readable": {"own": {}}}`}.write(t) + "/own.json"
	s, err = ReadPaths([]string{data, dir}, base)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"readable": map[string]any{"own": map[string]any{}}}, s.data.root)

	second := files{"b.rego": "package policy\n\n_b := 1\n", ".manifest": `{"revision": "own-2"}`}.write(t)
	s, err = ReadPaths([]string{dir, second}, base)
	require.NoError(t, err)
	assert.Len(t, s.modules, 2)
	assert.Equal(t, "own-1+own-2", s.Revision())
}

func TestReadPathsRefuses(t *testing.T) {
	dir := minimal.write(t)
	empty := t.TempDir()
	missing := filepath.Join(empty, "missing")
	data := files{"d.json": `{}`}.write(t) + "/d.json"
	loop := filepath.Join(t.TempDir(), "loop")
	require.NoError(t, os.Symlink(loop, loop))
	loopInside := minimal.write(t)
	require.NoError(t, os.Symlink("b.rego", filepath.Join(loopInside, "b.rego")))
	dangling := minimal.write(t)
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dangling, "b.rego")))
	folder := minimal.write(t)
	require.NoError(t, os.Symlink(empty, filepath.Join(folder, "b.rego")))
	linked := minimal.write(t)
	require.NoError(t, os.Symlink(dir, filepath.Join(linked, "more")))
	pipe := minimal.write(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(pipe, "b.rego"), 0o600))
	pipes := filepath.Join(t.TempDir(), "d.json")
	require.NoError(t, syscall.Mkfifo(pipes, 0o600))
	toPipe := minimal.write(t)
	require.NoError(t, os.Symlink(pipes, filepath.Join(toPipe, ".manifest")))
	for name, c := range map[string]struct {
		paths []string
		want  []string
	}{
		"none at all":           {nil, []string{"no .rego file"}},
		"missing":               {[]string{dir, missing}, []string{missing + ": ", "check the path"}},
		"an empty folder":       {[]string{dir, empty}, []string{empty + ": there is no .rego file"}},
		"data alone":            {[]string{data}, []string{data + ": there is no .rego file"}},
		"one Rego file":         {[]string{filepath.Join(dir, "a.rego")}, []string{filepath.Join(dir, "a.rego"), "give the folder " + dir}},
		"given twice":           {[]string{dir, dir + "/"}, []string{dir, "given twice"}},
		"a loop":                {[]string{loop}, []string{loop + ": ", "round in a circle"}},
		"a loop in the folder":  {[]string{loopInside}, []string{loopInside + "/b.rego: ", "round in a circle"}},
		"a dangling link":       {[]string{dangling}, []string{dangling + "/b.rego: ", "symbolic link"}},
		"a folder named .rego":  {[]string{folder}, []string{folder + "/b.rego: ", "it must be a file"}},
		"a link to a folder":    {[]string{linked}, []string{linked + "/more: it is a link to a folder, and a bundle is one flat folder"}},
		"a pipe":                {[]string{pipe}, []string{pipe + "/b.rego: it is a pipe or a device"}},
		"a pipe by itself":      {[]string{dir, pipes}, []string{pipes + ": it is a pipe or a device"}},
		"a link to a pipe":      {[]string{toPipe}, []string{toPipe + "/.manifest: it is a pipe or a device"}},
		"data given twice over": {[]string{dir, data, filepath.Dir(data) + "/../" + filepath.Base(filepath.Dir(data)) + "/d.json"}, []string{"given twice"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadPaths(c.paths, Source{})
			require.Error(t, err)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
	// Tests may run as root, who can read everything.
	assert.ErrorContains(t, unreadable("x", &fs.PathError{Op: "open", Path: "x", Err: errors.Join(fs.ErrPermission)}), "let the user that runs govern read it")
}

// As Kubernetes mounts a ConfigMap: the files are links through a hidden folder.
func TestMountedFolder(t *testing.T) {
	dir := files{"..v1/a.rego": minimal["a.rego"], "..v1/d.json": `{"x": 1}`}.write(t)
	require.NoError(t, os.Symlink("..v1", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/a.rego", filepath.Join(dir, "a.rego")))
	require.NoError(t, os.Symlink("..data/d.json", filepath.Join(dir, "d.json")))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, path := range []string{dir, link} {
		s, err := ReadPaths([]string{path}, Source{})
		require.NoError(t, err)
		assert.Len(t, s.modules, 1)
		assert.Equal(t, map[string]any{"x": 1.0}, s.data.root)
	}
}
