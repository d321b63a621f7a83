package dispatch

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// MaxAttempts is the most attempts that DispatchRetry makes.
const MaxAttempts = 2

// ErrRetryLimit refuses another number of attempts.
var ErrRetryLimit = &Error{Misuse, "retry_limit", fmt.Sprintf("a call is attempted 1 to %d times", MaxAttempts)}

// ErrRetryCallID refuses a call id that has no room for the attempt's suffix.
var ErrRetryCallID = &Error{Misuse, "retry_call_id", "a retried call needs a call_id of 1 to 37 letters, digits or hyphens; each attempt appends -a1 or -a2"}

var baseCallIDForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,37}$`)

// DispatchRetry dispatches a call, and once more if the first attempt was transient: a timeout, or an outcome
// that nobody knows of a call that can be repeated. Each attempt is a dispatch and a step of its own, under the
// call's id with -a1 or -a2 after it; everything else of the proposal stays as it is. When the last attempt is
// transient too, or cannot be made, the answer is retry_exhausted with the last result; it is no step of its own.
func (d *Dispatcher) DispatchRetry(ctx context.Context, p Principal, task string, o Origin, proposal []byte, limit int) (Result, error) {
	if limit < 1 || limit > MaxAttempts {
		return Result{}, ErrRetryLimit
	}
	call := decode(proposal, o.Length, d.snapshot.Load().Limits)
	if !baseCallIDForm.MatchString(call.ID) {
		return Result{}, ErrRetryCallID
	}
	var last Result
	for attempt := 1; attempt <= limit; attempt++ {
		b, err := call.withID(proposal, fmt.Sprintf("%s-a%d", call.ID, attempt))
		if err != nil {
			return Result{}, err
		}
		result, err := d.Dispatch(ctx, p, task, o, b)
		if err != nil && (attempt == 1 || errors.Is(err, errNotOnRecord)) {
			return Result{}, err
		}
		if err != nil {
			break // what the first attempt came to is on record, and must be told
		}
		last = result
		if !last.Retryable || last.Status != StatusTimeout && last.Status != StatusOutcomeUnknown {
			return last, nil
		}
	}
	id := call.ID
	return Result{Task: task, Step: last.Step, CallID: &id, Status: StatusRetryExhausted, PolicyVersion: last.PolicyVersion, Last: &last}, nil
}

// withID is the proposal under another call id. What is no proposal has nothing else to keep, and stays as it is.
func (c *Call) withID(proposal []byte, id string) ([]byte, error) {
	if c.Malformed != "" {
		return proposal, nil
	}
	return ijson.Marshal(struct {
		CallID    string    `json:"call_id"`
		Tool      string    `json:"tool"`
		Arguments ijson.Raw `json:"arguments"`
	}{id, c.Tool, c.Arguments})
}
