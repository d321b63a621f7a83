package config

import (
	"maps"
	"slices"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/strictyaml"
)

// Value is one value of a configuration, and where it came from.
type Value struct {
	// Key is its full path, like profiles.warehouse.max_steps.
	Key string `json:"key"`
	// Value is as it was written: a part that another file holds is that file's name.
	Value ijson.Raw `json:"value"`
	// From is a file with its line, a flag, a variable, or "default".
	From string `json:"from"`
}

// Values are all values that hold, in the order in which they stand in the files; defaults come last.
func (c Config) Values() ([]Value, error) {
	var values []Value
	if c.origin.own != nil {
		values = c.walk(values, c.origin.own, "", "", c.origin.own.JSON())
	}
	for _, section := range []string{"tools", "resources", "documents"} {
		if c.origin.inherited[section] {
			part, _ := ijson.Lookup(c.origin.builtin.JSON(), "/"+section)
			values = c.walk(values, c.origin.builtin, "/"+section, section, part)
		}
	}
	rest, err := c.unwritten(values)
	return append(values, rest...), err
}

// walk lists what stands at a pointer: objects by their members, everything else as it is.
func (c Config) walk(values []Value, d *strictyaml.Document, pointer, key string, raw ijson.Raw) []Value {
	members, isObject := ijson.Members(raw)
	if !isObject || len(members) == 0 && pointer != "" {
		if _, over := c.overlaid(pointer); over {
			return values // listed with what stands over it
		}
		return append(values, Value{Key: key, Value: raw, From: d.Place(pointer)})
	}
	for _, m := range members {
		inner := strictyaml.Member(key, m.Name)
		values = c.walk(values, d, pointer+"/"+ijson.EscapeToken(m.Name), inner, m.Value)
	}
	return values
}

// unwritten lists what flags and variables set, and the defaults of what nothing sets.
func (c Config) unwritten(written []Value) ([]Value, error) {
	var values []Value
	has := map[string]bool{}
	for _, v := range written {
		has[v.Key] = true
	}
	add := func(key string, value any, from string) error {
		raw, err := ijson.Encode(value)
		values = append(values, Value{Key: key, Value: raw, From: from})
		return err
	}
	for _, s := range settings {
		if from, ok := c.origin.overlaid[s.key]; ok {
			if err := add(s.key, s.field(&c), from); err != nil {
				return nil, err
			}
			has[s.key] = true
		}
	}
	type entry struct {
		key   string
		value any
	}
	defaults := []entry{{"state", c.State}, {"limits.proposal_bytes", c.Limits.Proposals().Bytes}, {"limits.decision_time", c.Limits.Decision().String()},
		{"log.every", c.Log.Interval().String()}}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		defaults = append(defaults, entry{strictyaml.Member("profiles", name) + ".max_pending", c.Profiles[name].Pending()})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tasks)) {
		defaults = append(defaults, entry{strictyaml.Member("tasks", name) + ".mode", DefaultMode})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		t, at := c.Tools[name], strictyaml.Member("tools", name)
		defaults = append(defaults, entry{at + ".effect", "write"}, entry{at + ".approval", defaultApproval(t.Effect)})
		if t.HTTP != nil {
			defaults = append(defaults, entry{at + ".limits.time", DefaultToolTime.String()}, entry{at + ".limits.output_bytes", DefaultToolBytes})
		}
	}
	for _, d := range defaults {
		if !has[d.key] {
			if err := add(d.key, d.value, "default"); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// defaultApproval is what a tool of that effect has where nothing is said; internal/tools applies it.
func defaultApproval(effect string) string {
	if effect == "" || effect == "write" {
		return "always"
	}
	return "by_rule"
}

// Text is the value as people read it: strings without quotes, lists in brackets.
func (v Value) Text() string {
	if s, ok := ijson.String(v.Value); ok {
		return s
	}
	return string(v.Value)
}
