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
	// output is nil for a tool that promises nothing of what it gives.
	output *schema
	// prepare settles what is known before anything is tried, such as that there is no such document. It gives
	// the operation that is left to run, or nil and the outcome.
	prepare func(dispatch.Call) (operation, dispatch.Outcome)
	// faults is nil outside scenarios and tests.
	faults *Faults
}

// operation is the part of a call that takes place or does not.
type operation func() dispatch.Outcome

var _ dispatch.Tool = local{}

func (t local) Definition() dispatch.Definition { return t.definition }

func (t local) Check(arguments ijson.Raw) []dispatch.Violation { return t.arguments.check(arguments) }

func (t local) CheckOutput(value ijson.Raw) []dispatch.Violation {
	if t.output == nil {
		return nil
	}
	return t.output.check(value)
}

// compile compiles the schemas of the definition, once for all calls.
func (t *local) compile() (err error) {
	if t.arguments, err = compile(t.definition.Name, t.definition.Schema); err != nil {
		return fmt.Errorf("tool %s: schema: %w", t.definition.Name, err)
	}
	if t.definition.Output == nil {
		return nil
	}
	if t.output, err = compile(t.definition.Name, t.definition.Output); err != nil {
		return fmt.Errorf("tool %s: output: %w", t.definition.Name, err)
	}
	return nil
}

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
