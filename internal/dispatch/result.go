package dispatch

import "github.com/policy-dispatch/govern/internal/ijson"

// Result is what a caller gets for a dispatch. It is answered only once everything that it says is durable.
type Result struct {
	Task string `json:"task"`
	// Step is the number of the judged dispatch.
	Step int `json:"step"`
	// CallID is the proposal's own, null if it had none that could be kept.
	CallID *string `json:"call_id"`
	Status Status  `json:"status"`
	// Value is the observation, for ok and replayed.
	Value ijson.Raw `json:"value,omitzero"`
	// SealedValue is what others than the caller may see of Value; nil if nothing in it is sensitive.
	SealedValue ijson.Raw `json:"-"`
	// ResultKnown is false where a call was carried out and its result cannot be told; it is absent otherwise.
	ResultKnown *bool `json:"result_known,omitzero"`
	// Retryable says that the same call may be proposed again.
	Retryable bool `json:"retryable,omitzero"`
	// Reasons say why the call did not run.
	Reasons  []Reason        `json:"reasons,omitzero"`
	Approval *ResultApproval `json:"approval,omitzero"`
	// PolicyVersion gave the decision.
	PolicyVersion string `json:"policy_version"`
	// Last is the last attempt's result, for retry_exhausted alone.
	Last *Result `json:"last,omitzero"`
}

// Sealed is the result as others than its caller may see it.
func (r Result) Sealed() Result {
	r.Value, r.SealedValue = or(r.SealedValue, r.Value), nil
	if r.Last != nil {
		last := r.Last.Sealed()
		r.Last = &last
	}
	return r
}

// ResultApproval is the approval that the call waits for, or stands under.
type ResultApproval struct {
	ID            string        `json:"id"`
	Signature     string        `json:"signature"`
	State         ApprovalState `json:"state"`
	ExpiresAtStep int           `json:"expires_at_step,omitzero"`
	ExpiresAt     string        `json:"expires_at,omitzero"`
	Progress
}

func resultApproval(a Approval) *ResultApproval {
	return &ResultApproval{ID: a.ID, Signature: a.Signature, State: a.State, ExpiresAtStep: a.ExpiresAtStep,
		ExpiresAt: FormatTime(a.ExpiresAt), Progress: a.Progress()}
}
