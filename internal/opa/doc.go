// Package opa is the policy as a decider: it loads one bundle of Rego with its data, and the layers over it, compiles them
// once, and asks one rule, data.policy.decision, about each proposal. It is the only importer of OPA.
//
// OPA's sharp edges are blunted here. A policy that could answer differently next time (clock, network, chance), that
// lacks its entrypoint, whose data could stand in for its rules, or that asks for what is never there does not load; an
// answer that is not exactly one value is a *dispatch.PolicyError, which is a denial. A program that imports this package
// has no zone but UTC.
package opa
