package tools

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/nearest"
)

// nameForm is what protocols between models and tools have in common.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// mostCost keeps the sum of any number of runs that a task can make within what a number holds exactly.
const mostCost = 1_000_000_000

// check says what is wrong with a definition by itself.
func check(def dispatch.Definition) (problems []DefinitionError) {
	wrong := func(field, format string, args ...any) {
		problems = append(problems, DefinitionError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if !nameForm.MatchString(def.Name) {
		wrong("", "a tool's name is 1 to 64 letters, digits, underscores, dots or hyphens, beginning with a letter, a digit or an underscore")
	}
	if !printable(def.Version) {
		wrong("/version", "a definition needs a version, such as v1; raise it with every change of what the tool does")
	}
	if strings.TrimSpace(def.Description) == "" {
		wrong("/description", "a definition needs a description: it is what models go by")
	}
	op, known := operations[def.Local]
	outside := def.Outside != nil
	switch {
	case outside && def.Local != "":
		wrong("/local", "a tool runs in this process or outside; keep local or http")
	case outside:
		op, known = localKind{effect: def.Effect}, true
	case def.Local == "":
		wrong("/local", "it is missing; say what the tool runs: %s, or write http for a tool outside", list(operationNames(), itself))
	case !known:
		advice := "there is " + list(operationNames(), itself)
		if near, ok := nearest.Name(def.Local, operationNames()); ok {
			advice = "did you mean " + near + "?"
		}
		wrong("/local", "%q is no operation; %s", def.Local, advice)
	case op.targeted && def.Target == "":
		wrong("/target", "the operation %s needs a target: point at the argument that names it", def.Local)
	}
	switch def.Effect {
	case dispatch.Pure, dispatch.Read, dispatch.Write:
		if outside && def.Effect == dispatch.Pure {
			wrong("/effect", "a tool outside is a read or a write: what is pure depends on nothing")
		}
		if known && op.effect != def.Effect {
			wrong("/effect", "the operation %s is a %s, and the definition says %s (left out, it is a write)", def.Local, op.effect, def.Effect)
		}
	default:
		wrong("/effect", "%q is no effect; there is pure, read and write", def.Effect)
	}
	if def.Approval != dispatch.Always && def.Approval != dispatch.ByRule && !(outside && def.Approval == "") {
		wrong("/approval", "%q says not when a person is asked; there is always and by_rule", def.Approval)
	}
	switch {
	case def.Resource == "":
	case !known:
	case def.Resource != "readable" && def.Resource != "writable":
		wrong("/resource", "%q is no kind of resource; there is readable and writable, or leave it out if nothing guards the target", def.Resource)
	case (def.Resource == "writable") != (op.effect == dispatch.Write):
		wrong("/resource", "a write's target is guarded by writable sets, and any other by readable ones")
	case def.Target == "":
		wrong("/resource", "a resource guards the target, and the definition points at none; add target")
	}
	if def.Key != "" && known && op.effect != dispatch.Write {
		wrong("/key", "only a write has an idempotency key; remove it")
	}
	if def.Cost < 0 || def.Cost > mostCost {
		wrong("/cost", "a cost is 0 to %d", mostCost)
	}
	if !outside && def.Limits.Time != 0 {
		wrong("/limits/time", "only a call of a tool outside takes time; remove it")
	}
	if !outside && def.Recovery != (dispatch.Recovery{}) {
		wrong("/recovery", "only the outcome of a write outside has to be found out; remove it")
	}
	if !outside && def.Limits.OutputBytes < 0 {
		wrong("/limits/output_bytes", "a limit is 1 byte or more; leave it out for none")
	}
	for _, l := range []struct {
		field string
		words []string
	}{{"/scopes", def.Scopes}, {"/labels", def.Labels}} {
		for i, w := range l.words {
			switch {
			case !printable(w):
				wrong(fmt.Sprintf("%s/%d", l.field, i), "it is empty, or holds what cannot be seen or a space; remove it")
			case slices.Contains(l.words[:i], w):
				wrong(fmt.Sprintf("%s/%d", l.field, i), "%s is named twice; keep one", w)
			}
		}
	}
	return problems
}

// printable says whether a word can be seen as what it is.
func printable(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' })
}

// checkPointers compares what a definition points at with its schema.
func checkPointers(def dispatch.Definition) (problems []DefinitionError) {
	for _, p := range []struct{ field, pointer string }{{"/target", def.Target}, {"/key", def.Key}} {
		if p.pointer == "" {
			continue
		}
		if why := pointsAtString(def.Schema, p.pointer); why != "" {
			problems = append(problems, DefinitionError{Field: p.field, Problem: why})
		}
	}
	if def.Target != "" && def.Target == def.Key {
		problems = append(problems, DefinitionError{Field: "/key", Problem: "target and key are the same argument; the key names one attempt to bring something about, not what it is done to"})
	}
	for i, p := range def.Drop {
		field := fmt.Sprintf("/drop/%d", i)
		switch {
		case !pointerForm.MatchString(p):
			problems = append(problems, DefinitionError{Field: field, Problem: fmt.Sprintf("%q is no JSON Pointer to an argument, such as /timeout", p)})
		case slices.Contains(def.Drop[:i], p):
			problems = append(problems, DefinitionError{Field: field, Problem: fmt.Sprintf("%s is named twice; keep one", p)})
		case within(def.Target, p) || within(def.Key, p):
			problems = append(problems, DefinitionError{Field: field, Problem: "it would take away the target or the key"})
		case demanded(def.Schema, p):
			problems = append(problems, DefinitionError{Field: field, Problem: "the schema requires the argument, and after it was dropped no call would have it; take it out of the schema's required"})
		}
	}
	return problems
}

var pointerForm = regexp.MustCompile(`^(/([^~/]|~[01])+)+$`)

// within says whether a pointer leads to or below what another leads to.
func within(pointer, above string) bool {
	return pointer == above || strings.HasPrefix(pointer, above+"/")
}

// pointsAtString says why a call that matches the schema may have no string at the pointer, or nothing if each has one.
// It reads properties, required and type, and no other keyword: what they do not say counts as unsaid.
func pointsAtString(schema ijson.Raw, pointer string) string {
	if !pointerForm.MatchString(pointer) {
		return fmt.Sprintf("%q is no JSON Pointer to an argument, such as /path", pointer)
	}
	found, why := descend(schema, pointer, func(_ ijson.Raw, required bool) string {
		if required {
			return ""
		}
		return fmt.Sprintf("the schema does not require %s, so a call could come without it; name it in required", pointer)
	})
	if why == "" && typeOf(found) != "string" {
		return fmt.Sprintf("the schema must say that %s is of type string", pointer)
	}
	return why
}

// descend goes down a schema to what it says of the place that a pointer leads to, through objects alone, or says why it
// does not say that. Of each object on the way, demand gives what else is wrong with how it has the next member.
func descend(schema ijson.Raw, pointer string, demand func(object ijson.Raw, required bool) string) (found ijson.Raw, why string) {
	for i, token := range ijson.Tokens(pointer) {
		inner, required, known := property(schema, token)
		switch {
		case i > 0 && typeOf(schema) != "object":
			return nil, fmt.Sprintf("the schema must say that what is around %s is of type object; anything else has no such member", pointer)
		case !known:
			if near, ok := nearest.Name(token, properties(schema)); ok {
				return nil, fmt.Sprintf("the schema has no property %s; did you mean %s?", pointer, near)
			}
			return nil, fmt.Sprintf("the schema has no property %s; it has %s", pointer, list(properties(schema), itself))
		}
		if why := demand(schema, required); why != "" {
			return nil, why
		}
		schema = inner
	}
	return schema, ""
}

// typeOf is the one type that a schema states, or nothing.
func typeOf(schema ijson.Raw) string {
	kind, _ := ijson.Lookup(schema, "/type")
	word, _ := ijson.String(kind)
	return word
}

// demanded says whether a schema requires what a pointer leads to.
func demanded(schema ijson.Raw, pointer string) bool {
	for _, token := range ijson.Tokens(pointer) {
		inner, required, _ := property(schema, token)
		if !required {
			return false
		}
		schema = inner
	}
	return true
}

// property gives the schema of one property, and says whether an object must have it.
func property(schema ijson.Raw, name string) (inner ijson.Raw, required, known bool) {
	all, _ := ijson.Lookup(schema, "/properties")
	members, _ := ijson.Members(all)
	for _, m := range members {
		if m.Name == name {
			inner, known = m.Value, true
		}
	}
	var names []string
	if raw, ok := ijson.Lookup(schema, "/required"); ok && ijson.Unmarshal(raw, &names) == nil {
		required = slices.Contains(names, name)
	}
	return inner, required, known
}

func properties(schema ijson.Raw) []string {
	all, _ := ijson.Lookup(schema, "/properties")
	members, _ := ijson.Members(all)
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names
}

func itself(word string) string { return word }
