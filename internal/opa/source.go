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
	revision string
	modules  []file // without tests
	tests    []file
	data     document
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

// Revision is the bundle's name for its state, from its .manifest; "local" if it has none.
func (s Source) Revision() string {
	if s.revision == "" {
		return "local"
	}
	return s.revision
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

// ReadFS reads a bundle from the top folder of a file system: *.rego, *_test.rego, .manifest and *.json. What lies in
// other folders below it is no part of the bundle, so Rego there is an error.
func ReadFS(fsys fs.FS, label string) (Source, error) {
	s := Source{label: label}
	if err := s.addFolder(fsys, label); err != nil {
		return Source{}, err
	}
	if len(s.modules) == 0 {
		return Source{}, noRego(label)
	}
	return s, nil
}

// WithData adds a JSON document to the source's data. Its content, not its name, says where it stands: data.readable
// comes from {"readable": …}.
func (s Source) WithData(path string, content []byte) (Source, error) {
	s.data = s.data.clone()
	if err := s.data.add(path, content); err != nil {
		return Source{}, err
	}
	return s, nil
}

func noRego(path string) error {
	return fmt.Errorf("%s: there is no .rego file in this folder; give one that holds a policy with the rule decision in package policy", path)
}

// addFolder adds the files at the top of fsys, which people know as folder.
func (s *Source) addFolder(fsys fs.FS, folder string) error {
	return fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		shown := path.Join(folder, name)
		if err != nil {
			return unreadable(shown, err)
		}
		nested := strings.Contains(name, "/")
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir // as Kubernetes keeps the versions of a mounted folder
			}
			return nil
		}
		kind := path.Ext(name)
		if lower := strings.ToLower(kind); lower != kind && (lower == ".rego" || lower == ".json") {
			return fmt.Errorf("%s: a policy's files end in .rego or .json, in lower case; rename it, or move it out of the folder", shown)
		}
		switch {
		case entry.Name() == ".manifest" && !nested:
		case strings.HasPrefix(entry.Name(), "."):
			return nil
		case nested && strings.HasPrefix(name, "schemas/"):
			return nil
		case nested && (kind == ".rego" || kind == ".json"):
			return fmt.Errorf("%s: a bundle is one flat folder; move the file up, or name its folder as a policy path of its own", shown)
		case nested:
			return nil
		case kind == ".yaml", kind == ".yml":
			return fmt.Errorf("%s: data is read from JSON alone; write it as .json, or move the file out of the folder", shown)
		case kind != ".rego" && kind != ".json":
			return nil
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return unreadable(shown, err)
		}
		return s.add(shown, name, content)
	})
}

// add takes in one file by the kind that its name tells.
func (s *Source) add(shown, name string, content []byte) error {
	switch {
	case name == ".manifest":
		return s.addManifest(shown, content)
	case path.Ext(name) == ".json":
		return s.data.add(shown, content)
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
	raw, ok := manifest["revision"]
	if !ok {
		return nil
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

// conflictOf names a top-level member of the data that belongs to the rules or to govern itself.
func conflictOf(root string) string {
	switch root {
	case "policy", "policy_test":
		return "its rules alone may give data." + root
	case "profiles":
		return "it comes from the configuration's profiles"
	case "govern":
		return "it is set by govern itself"
	}
	return ""
}

// inheritReadable gives base's data.readable to a source that brings none.
func (s *Source) inheritReadable(base Source) {
	if _, ok := s.data.root["readable"]; ok {
		return
	}
	if sets, ok := base.data.root["readable"]; ok {
		s.data = s.data.clone()
		s.data.root["readable"] = sets
		maps.Copy(s.data.from, base.data.from)
	}
}

func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.path, b.path) })
}
