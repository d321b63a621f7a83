package tools

import (
	"context"
	"fmt"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Guarded keeps a panic inside a tool from ending the process: a call that could not be checked breaks the schema,
// and one that could not be carried out has failed.
func Guarded(t dispatch.Tool) dispatch.Tool { return guarded{t} }

type guarded struct{ dispatch.Tool }

func (g guarded) Check(arguments ijson.Raw) (violations []dispatch.Violation) {
	defer func() {
		if recover() != nil {
			violations = []dispatch.Violation{{Message: "cannot be checked"}}
		}
	}()
	return g.Tool.Check(arguments)
}

func (g guarded) Run(ctx context.Context, call dispatch.Call) (outcome dispatch.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			// Effects are values, so a tool that gave none had none.
			outcome = broken(fmt.Errorf("panic in %s: %v", g.Definition().Name, p))
		}
	}()
	return g.Tool.Run(ctx, call)
}
