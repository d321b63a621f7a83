// Package stock keeps OPA's built-ins as they are in a program that does nothing to them. govern's own package of OPA may
// register others in their place, for the whole program; what govern is compared with must not pay for that.
//
// A package is initialised as soon as those that it imports are, and the first by its path before others. So this one comes
// before internal/opa.
package stock

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// builtins are the registered built-ins, and what the evaluator needs to know of them.
type builtins map[string]builtin

type builtin struct {
	run         topdown.BuiltinFunc
	withContext bool
}

var own, governs = registered(), builtins(nil)

func registered() builtins {
	all := builtins{}
	for name, b := range ast.BuiltinMap {
		if f := topdown.GetBuiltin(name); f != nil {
			all[name] = builtin{f, !b.CanSkipBctx}
		}
	}
	return all
}

func (all builtins) register() {
	for name, b := range all {
		topdown.RegisterBuiltinFunc(name, b.run)
		ast.BuiltinMap[name].CanSkipBctx = !b.withContext
	}
}

// Use puts OPA's own built-ins in place until back is called. Nothing may be evaluated meanwhile that is not to have them.
func Use() (back func()) {
	if governs == nil {
		governs = registered()
	}
	own.register()
	return governs.register
}
