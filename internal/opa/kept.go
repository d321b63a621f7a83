package opa

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// KeptModule is a Rego file in what Kept gives.
type KeptModule struct {
	// Name is the file's within its bundle, a layer's behind "org/" or "site/".
	Name string `json:"name"`
	// Rego is the file's text, or Base64 its bytes where they are not UTF-8.
	Rego   string `json:"rego,omitzero"`
	Base64 []byte `json:"base64,omitzero"`
}

// kept is everything that a version stands for beside the configuration.
type kept struct {
	Revision string         `json:"revision"`
	Modules  []KeptModule   `json:"modules"`
	Data     map[string]any `json:"data"`
}

// Kept is the policy with its layers and their data, as canonical JSON: {"revision", "modules", "data"}. With the
// configuration it gives the version, and every decision can be made again.
func (p *Policy) Kept() (ijson.Raw, error) {
	k := kept{Revision: p.source.Revision(), Data: p.data}
	for name, text := range p.source.allModules() {
		m := KeptModule{Name: name, Rego: text}
		if !utf8.ValidString(text) {
			m.Rego, m.Base64 = "", []byte(text)
		}
		k.Modules = append(k.Modules, m)
	}
	slices.SortFunc(k.Modules, func(a, b KeptModule) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Rego, b.Rego), bytes.Compare(a.Base64, b.Base64))
	})
	return ijson.Marshal(k)
}

// KeptPolicy is a policy that was kept, read again.
type KeptPolicy struct {
	policy, config ijson.Raw
	kept
	version string
}

// ReadKept reads what Kept gave, with the configuration of the same version.
func ReadKept(policy, config ijson.Raw) (k KeptPolicy, err error) {
	k.policy, k.config = policy, config
	if err = ijson.Unmarshal(policy, &k.kept); err == nil && k.Data == nil {
		err = errors.New("it has no data")
	}
	if err != nil {
		return k, fmt.Errorf("the policy that was kept cannot be read: %w", err)
	}
	k.version, err = versionOf(k.Revision, k.sources(), k.Data, config)
	return k, err
}

// Version is computed from the contents, and from nothing that stands beside them.
func (k KeptPolicy) Version() string { return k.version }

func (k KeptPolicy) sources() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for _, m := range k.Modules {
			if !yield(m.Name, m.Rego+string(m.Base64)) {
				return
			}
		}
	}
}

// Files are the policy as stock OPA reads it, by name: its Rego below rego/, each layer in a folder of its own, and all data
// in data.json; and beside them the two contents, byte by byte.
func (k KeptPolicy) Files() (map[string][]byte, error) {
	out := map[string][]byte{"policy.json": k.policy, "config.json": k.config}
	for name, text := range k.sources() {
		if !fs.ValidPath(name) || path.Ext(name) != ".rego" {
			return nil, errors.New("the policy that was kept has a file without a name for Rego")
		}
		file := path.Join("rego", name)
		for n := 2; out[file] != nil; n++ { // files of several folders can have one name
			file = path.Join("rego", fmt.Sprintf("%s-%d.rego", strings.TrimSuffix(name, ".rego"), n))
		}
		out[file] = []byte(text)
	}
	data := maps.Clone(k.Data)
	data["govern"] = map[string]any{"version": k.version}
	raw, err := ijson.Marshal(data)
	if err != nil {
		return nil, err
	}
	if raw, err = ijson.Indent(raw); err != nil {
		return nil, err
	}
	out["data.json"] = append(raw, '\n')
	return out, nil
}
