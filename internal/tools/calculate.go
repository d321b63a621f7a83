package tools

import (
	"errors"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Calculate names the tool for arithmetic.
const Calculate = "calculate"

func calculate() local {
	return local{
		definition: dispatch.Definition{
			Name:        Calculate,
			Version:     "v1",
			Local:       "arithmetic",
			Description: "Adds, subtracts or multiplies two whole numbers between -1000 and 1000, and returns the number. It takes no expressions.",
			Effect:      dispatch.Pure,
			Approval:    dispatch.ByRule,
			Scopes:      []string{},
		},
		prepare: func(call dispatch.Call) (operation, dispatch.Outcome) {
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
				return broken(errors.New("the schema lets an operation pass that the tool does not have"))
			}, dispatch.Outcome{}
		},
	}
}
