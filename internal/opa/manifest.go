package opa

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/ijson"
)

var revisionForm = regexp.MustCompile(`^[!-?A-~]{1,100}$`) // printable ASCII without the @ that ends it in a version

// manifestMembers are what opa build can write.
var manifestMembers = []string{"revision", "roots", "rego_version", "file_rego_versions", "metadata", "wasm"}

func (s *Source) addManifest(shown string, content []byte) error {
	var manifest map[string]ijson.Raw
	if err := ijson.Unmarshal(content, &manifest); err != nil {
		return fmt.Errorf("%s: %w", shown, err)
	}
	for _, name := range slices.Sorted(maps.Keys(manifest)) {
		if !slices.Contains(manifestMembers, name) {
			return fmt.Errorf("%s: a manifest has no %q; %s", shown, name, advice(name, manifestMembers))
		}
	}
	if _, ok := manifest["wasm"]; ok {
		return fmt.Errorf("%s: it names a compiled policy; build the bundle from its Rego: opa build -b FOLDER -o FILE%s", shown, archiveEnding)
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
