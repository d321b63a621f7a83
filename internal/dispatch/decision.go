package dispatch

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Effect is what a policy wants done with a proposal. The zero value denies.
type Effect string

// The effects that this version carries out. Anything else in a policy's answer is a policy error.
const (
	Deny            Effect = "deny"
	Allow           Effect = "allow"
	RequireApproval Effect = "require_approval"
	Replay          Effect = "replay"
)

// Mode says whether effects are wanted.
type Mode string

// Enforce is the only mode of this version.
const Enforce Mode = "enforce"

// Status is the one word that a caller gets for a dispatch.
type Status string

// The statuses of the core. A policy may deny with a status of its own beside them.
const (
	StatusOK                  Status = "ok"
	StatusReplayed            Status = "replayed"
	StatusCancelled           Status = "cancelled"
	StatusDeadlineExceeded    Status = "deadline_exceeded"
	StatusBudgetExhausted     Status = "budget_exhausted"
	StatusInvalidProposal     Status = "invalid_proposal"
	StatusToolDenied          Status = "tool_denied"
	StatusInvalidArguments    Status = "invalid_arguments"
	StatusScopeDenied         Status = "scope_denied"
	StatusResourceDenied      Status = "resource_denied"
	StatusIdempotencyConflict Status = "idempotency_conflict"
	StatusInProgress          Status = "in_progress"
	StatusOutcomeUnknown      Status = "outcome_unknown"
	StatusApprovalRequired    Status = "approval_required"
	StatusApprovalRejected    Status = "approval_rejected"
	StatusApprovalExpired     Status = "approval_expired"
	StatusPendingLimit        Status = "pending_limit"
	StatusInvalidState        Status = "invalid_state"
	StatusTargetExists        Status = "target_exists"
	StatusPolicyError         Status = "policy_error"
	// What only execution can know.
	StatusNotFound       Status = "not_found"
	StatusTimeout        Status = "timeout"
	StatusUnavailable    Status = "unavailable"
	StatusInternalError  Status = "internal_error"
	StatusRetryExhausted Status = "retry_exhausted"
)

// effectOf holds the statuses that the core gives with one effect only.
var effectOf = map[Status]Effect{
	StatusOK: Allow, StatusReplayed: Replay, StatusApprovalRequired: RequireApproval,
	StatusCancelled: Deny, StatusDeadlineExceeded: Deny, StatusBudgetExhausted: Deny, StatusInvalidProposal: Deny,
	StatusToolDenied: Deny, StatusInvalidArguments: Deny, StatusScopeDenied: Deny, StatusResourceDenied: Deny,
	StatusIdempotencyConflict: Deny, StatusInProgress: Deny, StatusOutcomeUnknown: Deny, StatusApprovalRejected: Deny,
	StatusApprovalExpired: Deny, StatusPendingLimit: Deny, StatusInvalidState: Deny, StatusTargetExists: Deny,
}

// executionOnly are statuses that a policy may not give: only running a tool, or failing to decide, makes them.
var executionOnly = map[Status]bool{
	StatusPolicyError: true, StatusNotFound: true, StatusTimeout: true, StatusUnavailable: true,
	StatusInternalError: true, StatusRetryExhausted: true,
}

// Reason is one finding that led to a decision.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Decision is the value of data.policy.decision. The zero value denies.
type Decision struct {
	Effect        Effect   `json:"effect"`
	Status        Status   `json:"status"`
	Reasons       []Reason `json:"reasons"`
	PolicyVersion string   `json:"policy_version"`
	Retryable     bool     `json:"retryable,omitzero"`
	// Approval holds the terms wherever an approval was demanded, also when it was found.
	Approval *Terms `json:"approval,omitzero"`
	// Detail explains to people a denial that stands for a policy's failure. No policy can give it.
	Detail string `json:"-"`
}

// Terms are what an approval must meet. The zero value asks for one person, within the default limits.
type Terms struct {
	// Approvers is the number of distinct people; 0 means 1.
	Approvers int `json:"approvers,omitzero"`
	// DistinctFromActor refuses the vote of the actor on whose behalf the call was proposed.
	DistinctFromActor bool `json:"distinct_from_actor,omitzero"`
	// Lifetime is the most steps that a vote may grant, 1 to MaxLifetime; 0 means MaxLifetime.
	Lifetime int `json:"lifetime,omitzero"`
	// TTL is how long the approval can wait and be used, as a Go duration with its unit, at most MaxTTL; empty means DefaultTTL.
	TTL string `json:"ttl,omitzero"`
	// ReasonRequired refuses a vote that does not say why.
	ReasonRequired bool `json:"reason_required,omitzero"`
}

// Limits of approvals.
const (
	DefaultLifetime = 3
	MaxLifetime     = 10
	DefaultTTL      = 24 * time.Hour
	MaxTTL          = 30 * 24 * time.Hour
	MaxApprovers    = 10
)

func (t Terms) approvers() int { return max(t.Approvers, 1) }

func (t Terms) lifetime() int {
	if t.Lifetime == 0 {
		return MaxLifetime
	}
	return t.Lifetime
}

func (t Terms) ttl() time.Duration {
	if t.TTL == "" {
		return DefaultTTL
	}
	d, _ := time.ParseDuration(t.TTL) // check has parsed it
	return d
}

func (t Terms) check() error {
	if t.Approvers < 0 || t.Approvers > MaxApprovers {
		return fmt.Errorf("approval.approvers is %d; it must be 1 to %d", t.Approvers, MaxApprovers)
	}
	if t.Lifetime < 0 || t.Lifetime > MaxLifetime {
		return fmt.Errorf("approval.lifetime is %d; it must be 1 to %d steps", t.Lifetime, MaxLifetime)
	}
	if t.TTL != "" {
		d, err := time.ParseDuration(t.TTL)
		if err != nil || d <= 0 || d > MaxTTL {
			return fmt.Errorf("approval.ttl is %q; it must be a duration with its unit, above zero and at most %s", t.TTL, MaxTTL)
		}
	}
	return nil
}

// PolicyError says why a policy gave no usable answer. It is always a denial.
type PolicyError struct {
	// Code is policy_undefined, policy_conflict, policy_timeout, policy_failed or policy_malformed.
	Code string
	// Detail is for people; the caller gets the code alone.
	Detail string
}

func (e *PolicyError) Error() string { return e.Code + ": " + e.Detail }

func malformed(format string, args ...any) error {
	return &PolicyError{Code: "policy_malformed", Detail: fmt.Sprintf(format, args...)}
}

// deny turns a failure to decide into the decision that stands for it.
func deny(err error, version string) Decision {
	code := "policy_failed"
	var p *PolicyError
	if errors.As(err, &p) {
		code = p.Code
	}
	return Decision{Effect: Deny, Status: StatusPolicyError, PolicyVersion: version, Detail: err.Error(),
		Reasons: []Reason{{Code: code, Message: "the policy gave no usable decision"}}}
}

var statusForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// parseDecision reads a policy's answer: exactly the documented members, nothing read kindly.
func parseDecision(raw ijson.Raw) (Decision, error) {
	var present map[string]ijson.Raw
	if err := ijson.Unmarshal(raw, &present); err != nil {
		return Decision{}, malformed("the decision is not an object: %v", err)
	}
	for _, name := range []string{"effect", "status", "reasons", "policy_version"} {
		if _, ok := present[name]; !ok {
			return Decision{}, malformed("the decision has no %s", name)
		}
	}
	// A null would read as what is left out, and what is left out can mean a default.
	if hasNull(raw) {
		return Decision{}, malformed("the decision has a null in it")
	}
	var d Decision
	if err := ijson.Unmarshal(raw, &d); err != nil {
		return Decision{}, malformed("%v", err)
	}
	for _, r := range d.Reasons {
		if r.Code == "" || r.Message == "" {
			return Decision{}, malformed("a reason has no code or no message")
		}
	}
	return d, zeroTerms(present["approval"])
}

func hasNull(raw ijson.Raw) bool {
	if !bytes.Contains(raw, []byte("null")) {
		return false
	}
	var v any
	if ijson.Unmarshal(raw, &v) != nil {
		return true
	}
	return containsNil(v)
}

func containsNil(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(v, containsNil)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), containsNil)
	}
	return false
}

// zeroTerms refuses terms that are stated as what only leaving them out may mean.
func zeroTerms(raw ijson.Raw) error {
	if raw == nil {
		return nil
	}
	members, _ := ijson.Members(raw)
	for _, m := range members {
		if v := string(m.Value); v == "0" || v == `""` {
			return malformed("approval.%s is %s; leave it out for its default", m.Name, v)
		}
	}
	return nil
}

// check refuses a decision that its own facts forbid. A wrong policy can then allow too much, but never twice,
// never unrecorded, and never what a person had to see.
func (d Decision) check(in Input, version string) error {
	if d.PolicyVersion != version {
		return malformed("the decision carries policy version %q, not %q", d.PolicyVersion, version)
	}
	if !statusForm.MatchString(string(d.Status)) {
		return malformed("the status is not lower-case letters, digits and underscores")
	}
	if executionOnly[d.Status] {
		return malformed("a policy cannot give the status %s", d.Status)
	}
	want, core := effectOf[d.Status]
	if !core {
		want = Deny
	}
	if d.Effect != want {
		return malformed("the status %s goes with the effect %s, not %q", d.Status, want, d.Effect)
	}
	if d.Approval != nil {
		if err := d.Approval.check(); err != nil {
			return malformed("%v", err)
		}
	}
	switch d.Effect {
	case Allow:
		return d.checkAllow(in)
	case Replay:
		if err := in.runnable(); err != nil {
			return err
		}
		if !in.State.Operation.replayable() {
			return malformed("replay needs a committed operation of this very call, with its result")
		}
	case RequireApproval:
		if d.Approval == nil {
			return malformed("require_approval needs its terms in approval")
		}
		if err := in.runnable(); err != nil {
			return err
		}
		if a := in.State.Approval; a != nil && (a.State == Rejected || a.State == Expired) {
			return malformed("require_approval cannot ask again for a call that is %s", a.State)
		}
		if in.State.Operation != nil {
			return malformed("require_approval for an operation that is committed")
		}
	}
	return nil
}

func (d Decision) checkAllow(in Input) error {
	if err := in.runnable(); err != nil {
		return err
	}
	if in.State.Operation != nil {
		return malformed("allow for an operation that is committed")
	}
	if in.Tool.Effect == Write && in.State.TargetExists {
		return malformed("allow for a target that exists")
	}
	if d.Approval == nil && in.Tool.Approval == ByRule {
		return nil
	}
	a := in.State.Approval
	switch {
	case a == nil || a.State != Approved:
		return malformed("allow without the approval that %s demands", in.Call.Tool)
	case in.State.Step > a.ExpiresAtStep || in.Now.Epoch > a.ExpiresAt.Epoch:
		return malformed("allow under an approval that has expired")
	case d.Approval != nil && !d.Approval.met(a.Votes, in.Task.Actor):
		return malformed("allow under an approval whose votes do not meet the terms")
	}
	return nil
}

// runnable says whether there is anything at all that could run or be asked for.
func (in Input) runnable() error {
	switch {
	case in.Mode != Enforce:
		return malformed("unknown mode %q", in.Mode)
	case in.State.Cancelled:
		return malformed("the task is cancelled")
	case in.State.Step > in.State.MaxSteps:
		return malformed("the step budget is spent")
	case in.Call.Malformed != nil || in.Tool == nil || len(in.Call.Violations) > 0:
		return malformed("there is no well-formed call of a known tool")
	}
	return nil
}

func (o *InputOperation) replayable() bool {
	return o != nil && o.State == "committed" && o.SameSignature && o.HasResult
}

// met says whether votes meet the terms: enough distinct people, none of them barred, and no rejection.
func (t Terms) met(votes []Vote, actor string) bool {
	people := map[string]bool{}
	for _, v := range votes {
		if v.Decision != string(Approved) {
			return false
		}
		if t.DistinctFromActor && v.Reviewer == actor {
			continue
		}
		people[v.Reviewer] = true
	}
	return len(people) >= t.approvers()
}
