package opa

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// versionOf names everything that a decision depends on beside its input. It is the same on every machine, whatever
// the bundle's folder is called there; tests do not count.
func versionOf(s Source, data map[string]any, config ijson.Raw) (string, error) {
	if len(config) == 0 {
		config = ijson.Raw("null")
	}
	type module struct {
		Name   string `json:"name"`
		SHA256 string `json:"sha256"` // a Rego file need not be text that JSON can hold
	}
	var modules []module
	for name, text := range s.allModules() {
		sum := sha256.Sum256([]byte(text))
		modules = append(modules, module{name, hex.EncodeToString(sum[:])})
	}
	slices.SortFunc(modules, func(a, b module) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.SHA256, b.SHA256))
	})
	// The profiles are part of data.
	all, err := ijson.Marshal(struct {
		Modules []module       `json:"modules"`
		Data    map[string]any `json:"data"`
		Config  ijson.Raw      `json:"config"`
	}{modules, data, config})
	if err != nil {
		return "", err
	}
	return s.Revision() + "@sha256:" + ijson.Digest("govern policy v1", all), nil
}

// allModules gives the Rego of the core and of its layers, without tests. The core's names have no slash, so a layer's
// cannot be taken for one of them.
func (s Source) allModules() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for _, b := range s.bundles() {
			for _, f := range b.modules {
				if !yield(path.Join(string(b.layer), f.name), f.text) {
					return
				}
			}
		}
	}
}

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
