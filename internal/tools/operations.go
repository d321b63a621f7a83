package tools

import (
	"embed"
	"fmt"
	"maps"
	"slices"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// The operations that a definition can name.
const (
	documentOperation   = "document"
	arithmeticOperation = "arithmetic"
	recordOperation     = "record"
)

// localKind is one operation that runs inside this process.
type localKind struct {
	// effect is what the operation can do to the world: a definition cannot say otherwise.
	effect dispatch.ToolEffect
	// targeted operations act on their target, so a definition must point at one.
	targeted bool
	// needs is the schema of what the operation itself demands of the arguments, beside the definition's own.
	needs   *schema
	prepare func(dispatch.Definition, Documents) prepare
}

// prepare settles what is known before anything is tried, such as that there is no such document. It gives the
// operation that is left to run, or nil and the outcome.
type prepare func(dispatch.Call) (operation, dispatch.Outcome)

var operations = map[string]localKind{
	documentOperation:   {effect: dispatch.Read, targeted: true, prepare: readDocument},
	arithmeticOperation: {effect: dispatch.Pure, needs: mustNeed("arithmetic"), prepare: calculate},
	recordOperation:     {effect: dispatch.Write, targeted: true, prepare: createRecord},
}

func operationNames() []string { return slices.Sorted(maps.Keys(operations)) }

//go:embed needs/*.json
var needs embed.FS

// mustNeed reads the schema of what an operation demands.
func mustNeed(operation string) *schema {
	source, err := needs.ReadFile("needs/" + operation + ".json")
	if err != nil {
		panic(err)
	}
	_, compiled, err := readSchema(operation, source)
	if err != nil {
		panic(fmt.Errorf("needs/%s.json: %w", operation, err))
	}
	return compiled
}

// without gives arguments without what some pointers name.
func without(arguments ijson.Raw, pointers ...string) ijson.Raw {
	for _, p := range pointers {
		arguments, _ = ijson.Remove(arguments, p)
	}
	return arguments
}
