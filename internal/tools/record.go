package tools

import (
	"errors"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// createRecord creates one record under the target: the arguments without the target and the idempotency key. The
// caller is told the target, under the name that it has in the arguments.
func createRecord(def dispatch.Definition, _ Documents) prepare {
	tokens := ijson.Tokens(def.Target)
	name := tokens[len(tokens)-1]
	return func(call dispatch.Call) (operation, dispatch.Outcome) {
		if call.Target == "" {
			return nil, broken(errors.New("the call names no record"))
		}
		return func() dispatch.Outcome {
			outcome := done(map[string]string{name: call.Target})
			outcome.Record = without(call.Arguments, def.Target, def.Key)
			return outcome
		}, dispatch.Outcome{}
	}
}
