package dispatch

import (
	"context"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Judge asks the policy of the given version about one input, and turns anything but one well-formed decision
// that fits the input into a denial. Its only error is that of a context that ended; there is no decision then.
//
// A recorded input judged by the same policy gives the recorded decision.
func Judge(ctx context.Context, decider Decider, version string, input ijson.Raw) (Decision, error) {
	var in Input
	if err := ijson.Unmarshal(input, &in); err != nil {
		if ctx.Err() != nil {
			return Decision{}, ctx.Err()
		}
		return deny(err, version), nil
	}
	return judge(ctx, decider, version, input, in)
}

// judge is Judge for who has the input's value already: what its bytes say, and nothing else.
func judge(ctx context.Context, decider Decider, version string, input ijson.Raw, in Input) (Decision, error) {
	d, err := ask(ctx, decider, version, input, in)
	if err == nil {
		return d, nil
	}
	if ctx.Err() != nil {
		return Decision{}, ctx.Err()
	}
	return deny(err, version), nil
}

func ask(ctx context.Context, decider Decider, version string, input ijson.Raw, in Input) (Decision, error) {
	raw, err := decider.Decide(ctx, input)
	if err != nil {
		return Decision{}, err
	}
	d, err := parseDecision(raw)
	if err != nil {
		return Decision{}, err
	}
	return d.explained(), d.check(in, version)
}
