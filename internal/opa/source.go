package opa

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/ijson"
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

// addFolder adds the files at the top of fsys, which people know as folder.
func (s *Source) addFolder(fsys fs.FS, folder string) error {
	return eachPart(fsys, folder, func(shown, name string, err error) error {
		if err != nil {
			return err
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return unreadable(shown, err)
		}
		return s.add(shown, name, content)
	})
}

// eachPart calls take for each file of a folder that belongs to a bundle, and with an error for what keeps the folder
// from being one. It ends at the first error that take gives.
func eachPart(fsys fs.FS, folder string, take func(shown, name string, err error) error) error {
	return fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		shown := path.Join(folder, name)
		if err != nil {
			return take(shown, name, unreadable(shown, err))
		}
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir // as Kubernetes keeps the versions of a mounted folder
			}
			return nil
		}
		part, err := isPart(shown, name)
		if !part && err == nil {
			return nil
		}
		return take(shown, name, err)
	})
}

// unusable are files of a bundle that govern cannot honour, by a pattern of their names, and what is to be done.
var unusable = []struct{ pattern, is, remedy string }{
	{"*signatures.json", "a signature, and govern verifies none", "build the bundle without a signing key, and keep it where only those can write who may change the policy"},
	{"*.wasm", "a compiled policy", "build the bundle from its Rego: opa build -b FOLDER -o FILE" + archiveEnding},
	{"plan.*", "a compiled policy", "build the bundle from its Rego: opa build -b FOLDER -o FILE" + archiveEnding},
	{"patch.json", "a change to another bundle", "give the whole bundle"},
}

// isPart says whether a file belongs to a bundle, by its name there. Nothing is passed over that somebody may have meant.
func isPart(shown, name string) (bool, error) {
	nested := strings.Contains(name, "/")
	base, kind := path.Base(name), path.Ext(name)
	for _, u := range unusable {
		if match, _ := path.Match(u.pattern, base); match {
			return false, fmt.Errorf("%s: it is %s; %s", shown, u.is, u.remedy)
		}
	}
	if lower := strings.ToLower(kind); lower != kind && (lower == ".rego" || lower == ".json") {
		return false, fmt.Errorf("%s: a policy's files end in .rego or .json, in lower case; rename it, or move it out of the folder", shown)
	}
	switch {
	case base == ".manifest" && !nested:
		return true, nil
	case strings.HasPrefix(base, "."), nested && strings.HasPrefix(name, "schemas/"):
		return false, nil
	case nested && (kind == ".rego" || kind == ".json"):
		return false, fmt.Errorf("%s: a bundle is one flat folder; move the file up, or name its folder as a policy path of its own", shown)
	case !nested && (kind == ".yaml" || kind == ".yml"):
		return false, fmt.Errorf("%s: data is read from JSON alone; write it as .json, or move the file out of the folder", shown)
	}
	return !nested && (kind == ".rego" || kind == ".json"), nil
}

// add takes in one file by the kind that its name tells.
func (s *Source) add(shown, name string, content []byte) error {
	switch {
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

var revisionForm = regexp.MustCompile(`^[!-?A-~]{1,100}$`) // printable ASCII without the @ that ends it in a version

func (s *Source) addManifest(shown string, content []byte) error {
	var manifest map[string]ijson.Raw
	if err := ijson.Unmarshal(content, &manifest); err != nil {
		return fmt.Errorf("%s: %w", shown, err)
	}
	if err := s.checkRoots(shown, manifest["roots"]); err != nil {
		return err
	}
	if v, ok := manifest["rego_version"]; ok && string(v) != "1" {
		return fmt.Errorf("%s: rego_version is %s; the policy is read as Rego v1 alone: rewrite it with opa fmt --v0-v1", shown, v)
	}
	raw, ok := manifest["revision"]
	if !ok || string(raw) == `""` {
		return nil // opa build writes an empty one where there is none
	}
	revision, ok := ijson.String(raw)
	if !ok || !revisionForm.MatchString(revision) {
		return fmt.Errorf("%s: revision must be a string of 1 to 100 printable ASCII characters without spaces and @", shown)
	}
	if s.revision != "" {
		revision = s.revision + "+" + revision
	}
	s.revision = revision
	return nil
}

// checkRoots holds the roots that a manifest states against what the bundle may give. The root of everything is what
// opa build writes where none is stated.
func (s *Source) checkRoots(shown string, raw ijson.Raw) error {
	if raw == nil {
		return nil
	}
	var roots []string
	if err := ijson.Unmarshal(raw, &roots); err != nil {
		return fmt.Errorf("%s: roots must be a list of paths, such as [\"policy\"]", shown)
	}
	for _, root := range roots {
		first, _, _ := strings.Cut(strings.Trim(root, "/"), "/")
		switch {
		case first == "" && len(roots) == 1:
		case s.layer != "" && first != string(s.layer) && first != string(s.layer)+"_test":
			return fmt.Errorf("%s: roots name %q, in the layer %s; a layer's bundle has the root %[3]q alone, and %q for its tests", shown, root, s.layer, string(s.layer)+"_test")
		case s.layer == "" && slices.Contains(Layers, Layer(first)):
			return fmt.Errorf("%s: roots name %q, which is a layer's; remove it, and give the layer a bundle of its own with --%s", shown, root, first)
		}
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
