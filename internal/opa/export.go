package opa

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/policy-dispatch/govern"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Files are the core as a bundle that govern and stock OPA read alike, by name: its rules and tests, its data in
// data.json, a .manifest that allows for all of it, and the schema of its input.
func (s Source) Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, f := range slices.Concat(s.modules, s.tests) {
		if _, taken := out[f.name]; taken {
			return nil, fmt.Errorf("%s: there are two files of this name in %s, and a bundle is one flat folder; rename one", f.name, s.label)
		}
		out[f.name] = []byte(f.text)
	}
	roots := []string{"policy"}
	if len(s.tests) > 0 {
		roots = append(roots, "policy_test")
	}
	roots = append(roots, slices.Sorted(maps.Keys(s.data.root))...)
	manifest := map[string]any{"roots": roots, "rego_version": 1}
	if s.revision != "" {
		manifest["revision"] = s.revision
	}
	documents := map[string]any{".manifest": manifest}
	if len(s.data.root) > 0 {
		documents["data.json"] = s.data.root
	}
	for name, document := range documents {
		raw, err := ijson.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if raw, err = ijson.Indent(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = append(raw, '\n')
	}
	schema, err := govern.Files.ReadFile(schemaFile)
	if err != nil {
		return nil, err
	}
	out["schemas/input.json"] = schema
	return out, nil
}

// Archive puts files into one .tar.gz. The same files give the same bytes.
func Archive(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: "/" + name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(files[name])), Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
