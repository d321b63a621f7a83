package opa

import (
	"context"
	"errors"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// gateRule is the rule that answers a tool's name alone.
const gateRule = "data.policy.gate"

// ErrNoGate says that a policy does not have the rule data.policy.gate.
var ErrNoGate = errors.New("the policy has no rule " + gateRule)

// Answer is what the gate says of a tool's name.
type Answer string

// The answers of the gate.
const (
	GateAllow   Answer = "allow"
	GateConfirm Answer = "confirm"
	GateDeny    Answer = "deny"
)

// Question is what the gate is asked: may the tool of that name run, given the names that are allowed, the names of
// tools that change something, and whether a person has confirmed this call?
type Question struct {
	Name      string   `json:"name"`
	Allowed   []string `json:"allowed"`
	Writes    []string `json:"writes"`
	Confirmed bool     `json:"confirmed"`
}

// Gate asks the policy's gate. Any answer but one of the three is an error, which lets nothing through.
func (p *Policy) Gate(ctx context.Context, q Question) (Answer, error) {
	if p.gate == nil {
		return GateDeny, ErrNoGate
	}
	input, err := ijson.Marshal(map[string]Question{"gate": q})
	if err != nil {
		return GateDeny, err
	}
	raw, err := p.ask(ctx, p.gate, input)
	if err != nil {
		return GateDeny, err
	}
	word, _ := ijson.String(raw)
	switch a := Answer(word); a {
	case GateAllow, GateConfirm, GateDeny:
		return a, nil
	}
	return GateDeny, malformed("the value of %s is none of allow, confirm and deny", gateRule)
}
