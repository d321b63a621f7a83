package tools

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Guarded keeps a panic inside a tool from ending the process: a call or a result that could not be checked breaks the
// schema, and a call that could not be carried out has failed or, of a write outside, has an outcome that nobody knows.
func Guarded(t dispatch.Tool) dispatch.Tool {
	if f, ok := t.(dispatch.Finder); ok {
		return guardedFinder{guarded{t}, f}
	}
	return guarded{t}
}

type guarded struct{ dispatch.Tool }

// guardedFinder is guarded around what can be asked what became of a call.
type guardedFinder struct {
	guarded
	finder dispatch.Finder
}

func (g guardedFinder) Find(ctx context.Context, call dispatch.Call) (finding dispatch.Finding) {
	defer func() {
		if p := recover(); p != nil {
			finding = dispatch.Finding{State: dispatch.Unknown, Detail: panicOutside(g.Definition().Name, p)}
		}
	}()
	return g.finder.Find(ctx, call)
}

// unguarded is the tool inside its guard.
func unguarded(t dispatch.Tool) dispatch.Tool {
	switch g := t.(type) {
	case guarded:
		return g.Tool
	case guardedFinder:
		return g.Tool
	}
	return nil
}

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

// Project tells nothing of what could not be projected.
func (g guarded) Project(value ijson.Raw) (projected ijson.Raw) {
	defer func() {
		if recover() != nil {
			projected = ijson.Raw("null")
		}
	}()
	return g.Tool.Project(value)
}

func (g guarded) Run(ctx context.Context, call dispatch.Call) (outcome dispatch.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			def := g.Definition()
			// Effects of a tool in this process are values, so one that gave none had none.
			outcome = broken(errors.New(panicIn(def.Name, p)))
			if def.IsOutside() {
				outcome.Sent, outcome.Detail = true, panicOutside(def.Name, p)
			}
			if def.IsOutside() && def.Effect == dispatch.Write {
				outcome.Status, outcome.State = dispatch.StatusOutcomeUnknown, dispatch.Unknown
			}
		}
	}()
	return g.Tool.Run(ctx, call)
}

func panicIn(tool string, p any) string { return fmt.Sprintf("panic in %s: %v", tool, p) }

// panicOutside is panicIn of a tool outside, whose answers and credentials a text could hold: only Go's own is repeated.
func panicOutside(tool string, p any) string {
	if _, own := p.(runtime.Error); own {
		return panicIn(tool, p)
	}
	return fmt.Sprintf("panic in %s, of type %T", tool, p)
}
