package opa

import (
	"context"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Decide evaluates data.policy.decision over one input. Anything but exactly one value is a *dispatch.PolicyError; if
// ctx ended, the error is the context's.
func (p *Policy) Decide(ctx context.Context, input ijson.Raw) (ijson.Raw, error) {
	return p.ask(ctx, p.decision, input)
}

// ask asks one question about one input.
func (p *Policy) ask(ctx context.Context, q *question, input ijson.Raw) (ijson.Raw, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	value, err := termsOf(input)
	if err != nil {
		return nil, err
	}
	found, err := q.within(ctx, p.timeout, value)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, p.policyError(err)
	}
	answer, err := toJSON(found)
	if err != nil {
		return nil, malformed("the value of %s: %v", q.rule, err)
	}
	if len(answer) > maxAnswer {
		return nil, malformed("the value of %s is %d bytes long; the limit is %d", q.rule, len(answer), maxAnswer)
	}
	return answer, nil
}

// maxAnswer bounds a decision, which is answered and recorded whole.
const maxAnswer = 64 << 10
