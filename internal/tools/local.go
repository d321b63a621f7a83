package tools

import (
	"context"
	"fmt"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// local is a tool that runs inside this process.
type local struct {
	definition dispatch.Definition
	arguments  *schema
	// needs is what the operation itself demands of arguments; nil is nothing.
	needs *schema
	// output is nil for a tool that promises nothing of what it gives.
	output  *schema
	prepare prepare
	// faults is nil outside scenarios and tests.
	faults *Faults
}

// operation is the part of a call that takes place or does not.
type operation func() dispatch.Outcome

var _ dispatch.Tool = local{}

func (t local) Definition() dispatch.Definition { return t.definition }

func (t local) Check(arguments ijson.Raw) []dispatch.Violation {
	if broken := t.arguments.check(arguments); broken != nil || t.needs == nil {
		return broken
	}
	return t.needs.check(arguments)
}

func (t local) CheckOutput(value ijson.Raw) []dispatch.Violation {
	if t.output == nil {
		return nil
	}
	return t.output.check(value)
}

// Project gives all of it: a local tool gives nothing that is not to be told.
func (t local) Project(value ijson.Raw) ijson.Raw { return value }

func (t local) Run(_ context.Context, call dispatch.Call) dispatch.Outcome {
	run, settled := t.prepare(call)
	if run == nil {
		return settled
	}
	return t.faults.around(t, run)()
}

// broken is the outcome of a call that this package failed to carry out: nothing took place.
func broken(err error) dispatch.Outcome {
	return dispatch.Outcome{Status: dispatch.StatusInternalError, Detail: err.Error()}
}

// done is the outcome of an operation that took place with this observation.
func done(value any) dispatch.Outcome {
	raw, err := ijson.Marshal(value)
	if err != nil {
		return broken(fmt.Errorf("value: %w", err))
	}
	return dispatch.Outcome{Status: dispatch.StatusOK, Ran: true, Value: raw}
}
