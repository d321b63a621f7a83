package tools

import (
	"errors"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// calculate adds, subtracts or multiplies two whole numbers: op, a and b. It takes no expressions.
func calculate(dispatch.Definition, Documents) prepare {
	return func(call dispatch.Call) (operation, dispatch.Outcome) {
		var in struct {
			Op string `json:"op"`
			A  int64  `json:"a"`
			B  int64  `json:"b"`
		}
		if err := ijson.Unmarshal(call.Arguments, &in); err != nil {
			return nil, broken(err)
		}
		return func() dispatch.Outcome {
			switch in.Op {
			case "add":
				return done(in.A + in.B)
			case "subtract":
				return done(in.A - in.B)
			case "multiply":
				return done(in.A * in.B)
			}
			return broken(errors.New("there is no such operation on numbers"))
		}, dispatch.Outcome{}
	}
}
