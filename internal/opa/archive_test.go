package opa

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// packed is a gzipped tar, as anybody could make one.
func packed(tb testing.TB, headers ...tar.Header) []byte {
	tb.Helper()
	return gzipped(tb, tarred(tb, headers...))
}

func tarred(tb testing.TB, headers ...tar.Header) string {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := h.PAXRecords["content"]
		h.PAXRecords = nil
		h.Size, h.Mode = int64(len(content)), 0o600
		require.NoError(tb, w.WriteHeader(&h))
		_, err := w.Write([]byte(content))
		require.NoError(tb, err)
	}
	require.NoError(tb, w.Close())
	return b.String()
}

func entry(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, PAXRecords: map[string]string{"content": content}}
}

// entries are files under a prefix, as different programs write it.
func entries(f files, prefix string) []tar.Header {
	var out []tar.Header
	for _, name := range slices.Sorted(maps.Keys(f)) {
		out = append(out, entry(prefix+name, f[name]))
	}
	return out
}

func writeArchive(tb testing.TB, b []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "b.tar.gz")
	require.NoError(tb, os.WriteFile(path, b, 0o600))
	return path
}

// A bundle in one file is the folder that it was made of: the same files, the same version.
func TestArchiveIsItsFolder(t *testing.T) {
	bundle := minimal.with(".manifest", `{"revision": "b-1", "roots": ["policy", "policy_test", "readable"]}`).
		with("b.rego", "package policy\n\n_b := 1\n").with("a_test.rego", "package policy_test\n\ntest_a if true\n").
		with("data.json", `{"readable": {"warehouse": {"/a": true}}}`)
	version := func(t *testing.T, path string) string {
		t.Helper()
		s, err := ReadPaths([]string{path}, Source{})
		require.NoError(t, err)
		assert.Len(t, s.tests, 1)
		p, err := New(t.Context(), Options{Source: s})
		require.NoError(t, err)
		return p.Version()
	}
	want := version(t, bundle.write(t))
	// opa build puts Rego under the path that it was given, and the rest at the top.
	var built []tar.Header
	for _, name := range slices.Sorted(maps.Keys(bundle)) {
		prefix := "/"
		if strings.HasSuffix(name, ".rego") {
			prefix = "/srv/policies/core/"
		}
		built = append(built, entry(prefix+name, bundle[name]))
	}
	folder := tar.Header{Name: "./", Typeflag: tar.TypeDir}
	for name, headers := range map[string][]tar.Header{
		"as opa build writes it": built,
		"as tar writes it":       append([]tar.Header{folder}, entries(bundle, "./")...),
		"plainly":                entries(bundle, ""),
		"with what is hidden":    append(entries(bundle, ""), entry(".git/config", "x"), entry("..data/x.json", "x")),
		"with what is no part":   append(entries(bundle, ""), entry("notes.txt", "x"), entry("schemas/input.json", "{}")),
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, want, version(t, writeArchive(t, packed(t, headers...)))) })
	}
}

func TestLayerFromArchive(t *testing.T) {
	l, err := ReadLayer(Site, []string{writeArchive(t, packed(t, entries(hours, "/")...))})
	require.NoError(t, err)
	folder, err := layer(t, Site, hours)
	require.NoError(t, err)
	a, err := over(t, l)
	require.NoError(t, err)
	b, err := over(t, folder)
	require.NoError(t, err)
	assert.Equal(t, b.Version(), a.Version())
}

func TestArchiveRefuses(t *testing.T) {
	whole := packed(t, entries(minimal, "/")...)
	link := tar.Header{Name: "b.rego", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}
	with := func(h ...tar.Header) []byte { return packed(t, append(entries(minimal, "/"), h...)...) }
	var bomb bytes.Buffer // the beginning of one
	require.NoError(t, tar.NewWriter(&bomb).WriteHeader(&tar.Header{Name: "a.rego", Typeflag: tar.TypeReg, Size: maxArchive + 1}))
	many := make([]tar.Header, maxArchiveFiles+1)
	for i := range many {
		many[i] = entry(fmt.Sprint("notes-", i), "")
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"too many files":        {packed(t, many...), "the archive holds more than 10000 files"},
		"too much behind it":    {padded(t, whole), "unpacks to more than 256 MiB"},
		"nothing":               {nil, "the archive ends early; fetch it again"},
		"cut short":             {whole[:len(whole)/2], "the archive ends early; fetch it again"},
		"cut in its checksum":   {whole[:len(whole)-3], "the archive ends early; fetch it again"},
		"a wrong checksum":      {append(slices.Clone(whole[:len(whole)-8]), 1, 2, 3, 4, 5, 6, 7, 8), "the archive is damaged (gzip: invalid checksum)"},
		"no gzip":               {[]byte("package policy\n\ndecision := {}\n"), "it is no gzip archive"},
		"something after it":    {append(slices.Clone(whole), "and then some more"...), "something follows the end of the archive"},
		"a second archive":      {append(slices.Clone(whole), packed(t, entry("b.rego", "package policy\n"))...), "something follows the end of the archive"},
		"more after its end":    {gzipped(t, tarred(t, entry("a.rego", "package policy\n"))+tarred(t, entry("b.rego", "package policy\n"))), "something follows the end of the archive"},
		"no tar":                {gzipped(t, strings.Repeat("no tar archive at all ", 100)), "it holds no tar archive"},
		"more than there is":    {gzipped(t, bomb.String()), "unpacks to more than 256 MiB"},
		"signed":                {with(entry("/.signatures.json", "{}")), "/.signatures.json: it is a signature, and govern verifies none; build the bundle without a signing key"},
		"a way out":             {with(entry("../b.rego", "package policy\n")), `"../b.rego" leads out of the archive`},
		"a way out in the path": {with(entry("x/../../b.rego", "package policy\n")), "leads out of the archive"},
		"another system's way":  {with(entry(`..\b.rego`, "package policy\n")), "leads out of the archive"},
		"a link":                {with(link), "b.rego is a link or a device"},
		"a file twice":          {with(entry("a.rego", "package policy\n")), "/a.rego: the archive holds it twice"},
		"a name in two forms":   {with(entry("./a.rego", "package policy\n")), "/a.rego: the archive holds it twice"},
		"compiled":              {with(entry("/policy.wasm", "\x00asm")), "/policy.wasm: it is a compiled policy"},
		"planned":               {with(entry("/plan.json", "{}")), "/plan.json: it is a compiled policy"},
		"a delta":               {with(entry("/patch.json", "{}")), "/patch.json: it is a change to another bundle; give the whole bundle"},
		"two folders":           {with(entry("/sub/b.rego", "package policy\n")), "/sub/b.rego: a bundle is one flat folder"},
		"a folder, and the top": {packed(t, entry("sub/a.rego", minimal["a.rego"]), entry("b.rego", "package policy\n")), "/b.rego: a bundle is one flat folder, and other Rego of the archive lies in /sub"},
		"Rego among schemas":    {with(entry("/schemas/b.rego", "package policy\n")), "/schemas/b.rego: a bundle is one flat folder"},
		"Rego that is hidden":   {with(entry("/.old/b.rego", "package policy\n")), ".old/b.rego is Rego in a hidden folder"},
		"a manifest below":      {packed(t, entry("site/a.rego", minimal["a.rego"]), entry("site/.manifest", "{}")), "/site/.manifest: a bundle is one flat folder"},
		"data below":            {with(entry("/sub/data.json", "{}")), "/sub/data.json: a bundle is one flat folder"},
		"YAML":                  {with(entry("/data.yaml", "a: 1")), "/data.yaml: data is read from JSON alone"},
		"data conflict (B017)":  {with(entry("/data.json", `{"policy": {"decision": {}}}`)), "/data.json: data conflict: the file gives data.policy"},
		"no Rego":               {packed(t, entry("/data.json", `{"readable": {}}`)), "there is no .rego file in it"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeArchive(t, c.content)
			_, err := ReadPaths([]string{path}, Source{})
			require.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, path)
		})
	}
}

// padded is an archive with so much behind its end that nobody comes to its checksum.
func padded(tb testing.TB, archive []byte) []byte {
	tb.Helper()
	r, err := gzip.NewReader(bytes.NewReader(archive))
	require.NoError(tb, err)
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	require.NoError(tb, err)
	_, err = io.Copy(z, r)
	require.NoError(tb, err)
	zeros := make([]byte, 1<<20)
	for range maxArchive >> 20 {
		_, err := z.Write(zeros)
		require.NoError(tb, err)
	}
	require.NoError(tb, z.Close())
	return b.Bytes()
}

func gzipped(tb testing.TB, text string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	require.NoError(tb, err)
	require.NoError(tb, z.Close())
	return b.Bytes()
}

// What is exported is the policy again: the same version from a folder and from a bundle, and the same bytes each time.
func TestExportIsThePolicy(t *testing.T) {
	s := shippedSource(t)
	want := shipped(t).Version()
	exported, err := s.Files()
	require.NoError(t, err)
	folder := files{}
	for name, content := range exported {
		folder[name] = string(content)
	}
	archive, err := Archive(exported)
	require.NoError(t, err)
	again, err := Archive(exported)
	require.NoError(t, err)
	assert.Equal(t, archive, again)
	for _, path := range []string{folder.write(t), writeArchive(t, archive)} {
		read, err := ReadPaths([]string{path}, Source{})
		require.NoError(t, err)
		assert.Len(t, read.tests, len(s.tests))
		p, err := New(t.Context(), Options{Source: read, Profiles: labProfiles})
		require.NoError(t, err)
		assert.Equal(t, want, p.Version())
	}
	one := files{"a.rego": "package policy\n"}.write(t)
	both, err := ReadPaths([]string{minimal.write(t), one}, Source{})
	require.NoError(t, err)
	_, err = both.Files()
	require.ErrorContains(t, err, "a.rego: there are two files of this name")
}
