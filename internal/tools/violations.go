package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

const (
	// maxViolations bounds what is told about one call; the rest is found once these are mended.
	maxViolations = 16
	// maxNameLength is the longest name of an unexpected property that is repeated, in bytes.
	maxNameLength = 64
)

// violations tells what is wrong in our own words: the validator's messages repeat values of the input, and those
// may be secret, or written to be read by whoever reads the log.
func violations(err *jsonschema.ValidationError) []dispatch.Violation {
	found := collect(nil, err)
	slices.SortFunc(found, func(a, b dispatch.Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	found = slices.Compact(found)
	return found[:min(len(found), maxViolations)]
}

func collect(found []dispatch.Violation, err *jsonschema.ValidationError) []dispatch.Violation {
	at := func(message string, under ...string) {
		found = append(found, dispatch.Violation{Path: pointer(err.InstanceLocation, under...), Message: message})
	}
	switch k := err.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range err.Causes {
			found = collect(found, cause)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			at("is required", name)
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			if len(name) > maxNameLength {
				at("has a property with a very long name, which is not a property of this tool")
			} else {
				at("is not a property of this tool", name)
			}
		}
	default:
		at(message(k))
	}
	return found
}

// message names the rule that was broken. It is made of the schema alone.
func message(broken jsonschema.ErrorKind) string {
	switch k := broken.(type) {
	case *kind.Type:
		return "must be " + list(k.Want, func(name string) string { return article(name) + name })
	case *kind.Enum:
		return "must be " + list(k.Want, quoted)
	case *kind.Const:
		return "must be " + quoted(k.Want)
	case *kind.Pattern:
		return "must match " + k.Want
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s", counted(k.Want, "character"))
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s", counted(k.Want, "character"))
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	}
	// The first step of a keyword's path is the keyword; later ones can be names out of the arguments.
	if path := broken.KeywordPath(); len(path) > 0 {
		return "breaks the schema's rule " + path[0]
	}
	return "is not allowed by the schema"
}

// list joins alternatives as "a, b or c".
func list[T any](alternatives []T, text func(T) string) string {
	var words []string
	for _, a := range alternatives {
		words = append(words, text(a))
	}
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func article(typeName string) string {
	switch typeName {
	case "null":
		return ""
	case "array", "integer", "object":
		return "an "
	}
	return "a "
}

// quoted writes a value of the schema, which was read from JSON.
func quoted(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		return "what the schema lists"
	}
	return string(b)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return fmt.Sprint(f)
}

// pointer writes a JSON Pointer (RFC 6901).
func pointer(location []string, under ...string) string {
	var b strings.Builder
	for _, token := range slices.Concat(location, under) {
		b.WriteByte('/')
		b.WriteString(ijson.EscapeToken(token))
	}
	return b.String()
}
