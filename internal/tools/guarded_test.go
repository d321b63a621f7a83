package tools

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// panics is a tool that panics.
type panics struct{ how func() }

func (panics) Definition() dispatch.Definition {
	return dispatch.Definition{Name: "panics", Local: "panics"}
}
func (p panics) Check(ijson.Raw) []dispatch.Violation {
	p.how()
	return nil
}
func (p panics) CheckOutput(ijson.Raw) []dispatch.Violation {
	p.how()
	return nil
}
func (p panics) Project(ijson.Raw) ijson.Raw {
	p.how()
	return nil
}
func (p panics) Run(context.Context, dispatch.Call) dispatch.Outcome {
	p.how()
	return dispatch.Outcome{Status: dispatch.StatusOK, Ran: true}
}

func TestGuarded(t *testing.T) {
	var none []int
	tests := []struct {
		name string
		how  func()
		want string
	}{
		{"text", func() { panic("out of paper") }, "panic in panics: out of paper"},
		{"error", func() { panic(context.Canceled) }, "panic in panics: context canceled"},
		{"nothing", func() { panic(nil) }, "panic in panics: panic called with nil argument"},
		{"mistake", func() { none[len(none)]++ }, "panic in panics: runtime error: index out of range [0] with length 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Guarded(panics{tt.how}).Run(t.Context(), dispatch.Call{})
			assert.Equal(t, dispatch.Outcome{Status: dispatch.StatusInternalError, Detail: tt.want}, got)
			assert.Equal(t, []dispatch.Violation{{Message: "cannot be checked"}}, Guarded(panics{tt.how}).Check(nil))
			assert.Equal(t, []dispatch.Violation{{Message: "cannot be checked"}}, Guarded(panics{tt.how}).CheckOutput(nil))
			assert.Equal(t, ijson.Raw("null"), Guarded(panics{tt.how}).Project(ijson.Raw(`"secret"`)))
		})
	}
}

func TestGuardedChangesNothingElse(t *testing.T) {
	for name, tool := range lab(t) {
		inner := tool.(guarded).Tool
		assert.Equal(t, inner.Definition(), tool.Definition(), name)
		call := dispatch.Call{ID: "c1", Tool: name, Arguments: arguments(t, `{}`)}
		assert.Equal(t, inner.Check(call.Arguments), tool.Check(call.Arguments), name)
		assert.Equal(t, inner.CheckOutput(call.Arguments), tool.CheckOutput(call.Arguments), name)
		assert.Equal(t, inner.Run(t.Context(), call), tool.Run(t.Context(), call), name)
	}
}
