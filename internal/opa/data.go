package opa

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// maxData bounds one file of data. It is trusted, so this only keeps a wrong path from filling the memory.
const maxData = 256 << 20

// document is the data that came with a policy, and which file gave each part of it.
type document struct {
	root map[string]any
	// from names the file that gave the value at a JSON Pointer.
	from map[string]string
}

func (d document) clone() document {
	from := make(map[string]string, len(d.from))
	maps.Copy(from, d.from)
	return document{root: cloneObject(d.root), from: from}
}

func cloneObject(o map[string]any) map[string]any {
	c := make(map[string]any, len(o))
	for name, value := range o {
		if inner, ok := value.(map[string]any); ok {
			value = cloneObject(inner)
		}
		c[name] = value
	}
	return c
}

// add merges a JSON file into the document. Objects are merged; any other value may be given by one file only, and
// nothing at a place that belongs to rules or to govern: otherwise data could stand in for a decision.
func (d *document) add(layer Layer, path string, content []byte) error {
	canonical, err := ijson.Canonical(content, ijson.Limits{Bytes: maxData, Depth: ijson.DefaultLimits.Depth})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var root map[string]any
	if canonical[0] != '{' {
		return fmt.Errorf("%s: data must be a JSON object, such as {\"readable\": {…}}", path)
	}
	if err := ijson.Unmarshal(canonical, &root); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(root)) {
		if owner, remedy := conflictOf(layer, name); owner != "" {
			return fmt.Errorf("%s: data conflict: the file gives data.%s, but %s; %s", path, name, owner, remedy)
		}
	}
	if d.root == nil {
		d.root, d.from = map[string]any{}, map[string]string{}
	}
	return d.merge(d.root, root, "", path)
}

func (d *document) merge(into, from map[string]any, pointer, path string) error {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		at := pointer + "/" + ijson.EscapeToken(name)
		value := from[name]
		present, taken := into[name]
		old, isObject := present.(map[string]any)
		inner, brings := value.(map[string]any)
		switch {
		case taken && !(isObject && brings):
			return fmt.Errorf("%s: data conflict at %s: %s gives it too; only one file may", path, at, d.giver(at))
		case brings:
			if !taken {
				old = map[string]any{}
				into[name], d.from[at] = old, path
			}
			if err := d.merge(old, inner, at, path); err != nil {
				return err
			}
		default:
			into[name], d.from[at] = value, path
		}
	}
	return nil
}

// reaches says that the document has a value at a place, or one that is no object on the way there, and where.
func (d *document) reaches(pointer string) (string, bool) {
	at, here := "", any(d.root)
	for _, name := range strings.Split(pointer, "/")[1:] {
		object, ok := here.(map[string]any)
		if !ok {
			return at, true
		}
		if here, ok = object[name]; !ok {
			return at, false
		}
		at += "/" + name
	}
	return at, true
}

// giver names the file behind a place.
func (d *document) giver(at string) string {
	if path, ok := d.from[at]; ok {
		return path
	}
	return "another file"
}

// withProfiles gives the whole document that a policy sees, but for the version.
func (d document) withProfiles(profiles map[string]Profile) (map[string]any, error) {
	readable, err := d.sets("readable")
	if err != nil {
		return nil, err
	}
	writable, err := d.sets("writable")
	if err != nil {
		return nil, err
	}
	granted := make(map[string]any, len(profiles))
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		p := profiles[name]
		if err := errors.Join(has(readable, name, "readable", p.Readable), has(writable, name, "writable", p.Writable)); err != nil {
			return nil, err
		}
		granted[name] = map[string]any{"tools": members(p.Tools), "readable": members(p.Readable), "writable": members(p.Writable),
			"scopes": members(p.Scopes), "budgets": p.Budgets}
	}
	root := d.clone().root
	root["profiles"] = granted
	return root, nil
}

// sets gives the named sets of targets of one class.
func (d document) sets(class string) (map[string]any, error) {
	sets, _ := d.root[class].(map[string]any)
	if _, ok := d.root[class]; ok && sets == nil {
		return nil, fmt.Errorf("data.%s must be an object {set: {target: true}}", class)
	}
	for _, set := range slices.Sorted(maps.Keys(sets)) {
		if _, ok := sets[set].(map[string]any); !ok {
			return nil, fmt.Errorf("data.%s.%s must be an object {target: true}", class, set)
		}
	}
	return sets, nil
}

// has refuses a profile that names a set which is not there.
func has(sets map[string]any, profile, class string, names []string) error {
	for _, set := range names {
		if _, ok := sets[set]; !ok {
			return fmt.Errorf("profile %s names the %s set %q, which data.%[2]s does not have; it has %[4]s",
				profile, class, set, listed(slices.Sorted(maps.Keys(sets))))
		}
	}
	return nil
}

// members gives names the form in which membership is one look-up.
func members(names []string) map[string]any {
	set := make(map[string]any, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
