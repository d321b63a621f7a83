package opa

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"path"
	"slices"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// versionOf names everything that a decision depends on beside its input. It is the same on every machine, whatever
// the bundle's folder is called there; tests do not count.
func versionOf(revision string, sources iter.Seq2[string, string], data map[string]any, config ijson.Raw) (string, error) {
	if len(config) == 0 {
		config = ijson.Raw("null")
	}
	type module struct {
		Name   string `json:"name"`
		SHA256 string `json:"sha256"` // a Rego file need not be text that JSON can hold
	}
	var modules []module
	for name, text := range sources {
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
	return revision + "@sha256:" + ijson.Digest("govern policy v1", all), nil
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
