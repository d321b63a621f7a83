package tools

import (
	"errors"
	"strings"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// createRecord creates one record under the target: the arguments without the target and the idempotency key. The
// caller is told the target, under the name that it has in the arguments.
func createRecord(def dispatch.Definition, _ Documents) prepare {
	name := lastToken(def.Target)
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

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// lastToken is the name of the member that a JSON Pointer ends at.
func lastToken(pointer string) string {
	return unescape.Replace(pointer[strings.LastIndexByte(pointer, '/')+1:])
}
