// Package dispatch is the domain of govern and the path of a call: decode, number the step, load the facts,
// ask the policy, run at most one operation, and commit everything as one value before anything is answered.
//
// It knows calls, tasks, approvals, operations and entries. It does not know SQL, YAML, OPA or terminals; it
// declares the few interfaces that it needs of them (Decider, Tool, Store).
package dispatch
