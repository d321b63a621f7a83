package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/strictyaml"
)

// places says where each key belongs, by the types that the file is read into.
var places = keysOf(map[string][]string{}, "", reflect.TypeFor[Config]())

// keysOf adds the keys of a type, which stands at a place, and of what it holds.
func keysOf(places map[string][]string, at string, t reflect.Type) map[string][]string {
	for t.Kind() == reflect.Map || t.Kind() == reflect.Pointer {
		if t.Kind() == reflect.Map {
			at += ".NAME"
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[Part]() {
		return places
	}
	for _, f := range reflect.VisibleFields(t) {
		key := f.Tag.Get("json")
		if key == "" {
			continue
		}
		if at != "" {
			places[key] = append(places[key], at)
		} else {
			places[key] = append(places[key], "the top of the file")
		}
		keysOf(places, strings.TrimPrefix(at+"."+key, "."), f.Type)
	}
	return places
}

// misplaced says of a key that exists elsewhere where that is.
func misplaced(err error) error {
	e, ok := errors.AsType[*strictyaml.Error](err)
	if !ok || !strings.HasPrefix(e.Problem, "unknown key;") {
		return err
	}
	key := e.Path[strings.LastIndexByte(e.Path, '.')+1:]
	if at, ok := places[key]; ok {
		moved := *e
		moved.Problem = "unknown key here; it belongs to " + strings.Join(slices.Compact(at), " or ")
		return &moved
	}
	return err
}
