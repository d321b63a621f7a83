package tools

import (
	"context"
	"fmt"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Guarded keeps a panic inside a tool from ending the process: a call or a result that could not be checked breaks the
// schema, and a call that could not be carried out has failed.
func Guarded(t dispatch.Tool) dispatch.Tool { return guarded{t} }

type guarded struct{ dispatch.Tool }

func (g guarded) Check(arguments ijson.Raw) (violations []dispatch.Violation) {
	defer unchecked(&violations)
	return g.Tool.Check(arguments)
}

func (g guarded) CheckOutput(value ijson.Raw) (violations []dispatch.Violation) {
	defer unchecked(&violations)
	return g.Tool.CheckOutput(value)
}

// unchecked makes a violation of a panic.
func unchecked(violations *[]dispatch.Violation) {
	if recover() != nil {
		*violations = []dispatch.Violation{{Message: "cannot be checked"}}
	}
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
