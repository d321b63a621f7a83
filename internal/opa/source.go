package opa

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Source is a bundle as it was read: Rego modules, their tests, data, and where they came from. The zero value holds
// nothing.
type Source struct {
	label    string
	layer    Layer // none for the core
	revision string
	modules  []file // without tests
	tests    []file
	data     document
	layers   []Source // over the core
}

// file is one Rego file.
type file struct {
	// path is where a person finds it.
	path string
	// name is its path within its bundle, the same on every machine.
	name string
	text string
}

// Label says where the source came from.
func (s Source) Label() string { return s.label }

// Revision is the bundle's name for its state, from its .manifest, "local" if it has none; and after it those of its
// layers that have one.
func (s Source) Revision() string {
	revision := s.revision
	if revision == "" {
		revision = "local"
	}
	for _, l := range s.layers {
		if l.revision != "" {
			revision += "+" + l.revision
		}
	}
	return revision
}

// ReadableSets names the sets of data.readable; nil if the source has none that could be one.
func (s Source) ReadableSets() []string {
	sets, _ := s.data.root["readable"].(map[string]any)
	return slices.Sorted(maps.Keys(sets))
}

// WritableSets names the sets of data.writable; nil if the source has none that could be one.
func (s Source) WritableSets() []string {
	sets, _ := s.data.root["writable"].(map[string]any)
	return slices.Sorted(maps.Keys(sets))
}

// ReadFS reads a bundle of the core from the top folder of a file system: *.rego, *_test.rego, .manifest and *.json. What
// lies in other folders below it is no part of the bundle, so Rego there is an error.
func ReadFS(fsys fs.FS, label string) (Source, error) {
	s := Source{label: label}
	if err := s.addFolder(fsys, label); err != nil {
		return Source{}, err
	}
	if len(s.modules) == 0 {
		return Source{}, s.noRego(label)
	}
	return s, nil
}

// WithData adds a JSON document to the source's data. Its content, not its name, says where it stands: data.readable
// comes from {"readable": …}.
func (s Source) WithData(path string, content []byte) (Source, error) {
	s.data = s.data.clone()
	if err := s.data.add(s.layer, path, content); err != nil {
		return Source{}, err
	}
	return s, nil
}

// kindsOfSets are the documents of named sets of targets.
var kindsOfSets = []string{"readable", "writable"}

// WithSets adds the named sets of targets, {"readable": {…}, "writable": {…}}, to a source that brings none of its own:
// sets that were joined could open what neither of the two means to.
func (s Source) WithSets(path string, content []byte) (Source, error) {
	for _, kind := range kindsOfSets {
		if _, ok := s.data.root[kind]; ok {
			return Source{}, fmt.Errorf("%s: data conflict: it says which targets there are, and so does data.%s of %s; let one of the two say it", path, kind, s.data.giver("/"+kind))
		}
	}
	return s.WithData(path, content)
}

func (s *Source) noRego(path string) error {
	wanted := "a policy with the rule decision in package policy"
	if s.layer != "" {
		wanted = fmt.Sprintf("rules of package %s", s.layer)
	}
	return fmt.Errorf("%s: there is no .rego file in it; give one that holds %s", path, wanted)
}

// add takes in one file by the kind that its name tells.
func (s *Source) add(shown, name string, content []byte) error {
	switch {
	case path.Ext(name) == ".rego" && bytes.HasPrefix(content, []byte("\ufeff")):
		return fmt.Errorf("%s: it begins with a byte order mark, which hides the METADATA of its package; save it as UTF-8 without one", shown)
	case name == ".manifest":
		return s.addManifest(shown, content)
	case path.Ext(name) == ".json":
		return s.data.add(s.layer, shown, content)
	case strings.HasSuffix(name, "_test.rego"):
		s.tests = append(s.tests, file{shown, name, string(content)})
	default:
		s.modules = append(s.modules, file{shown, name, string(content)})
	}
	return nil
}

// conflictOf says to whom a top-level member of the data belongs, if not to a bundle of that layer, and what to do.
func conflictOf(layer Layer, root string) (owner, remedy string) {
	if layer != "" {
		if root == string(layer) {
			return "", ""
		}
		return "a layer's data stands under its own name", fmt.Sprintf("put it under %q: {%[1]q: {…}}", string(layer))
	}
	const remove = "remove it from the file"
	switch root {
	case "policy", "policy_test":
		return "its rules alone may give data." + root, remove
	case "profiles":
		return "it comes from the configuration's profiles", remove
	case "govern":
		return "it is set by govern itself", remove
	case string(Org), string(Site):
		return "it is a layer's", fmt.Sprintf("put it into the layer's own folder, and name that with --%s", root)
	}
	return "", ""
}

// inheritSets gives base's sets of targets to a source that brings none.
func (s *Source) inheritSets(base Source) {
	for _, kind := range kindsOfSets {
		if _, ok := s.data.root[kind]; ok {
			return
		}
	}
	for _, kind := range kindsOfSets {
		if sets, ok := base.data.root[kind]; ok {
			s.data = s.data.clone()
			s.data.root[kind] = sets
			maps.Copy(s.data.from, base.data.from)
		}
	}
}
