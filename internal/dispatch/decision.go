package dispatch

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

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
	Simulate        Effect = "simulate"
	Resume          Effect = "resume"
)

// Effects are all of them.
var Effects = []Effect{Deny, Allow, RequireApproval, Replay, Simulate, Resume}

// Mode says whether effects are wanted.
type Mode string

// The modes. In a dry run everything up to the effect is real, and nothing runs but what changes nothing.
const (
	Enforce Mode = "enforce"
	DryRun  Mode = "dry_run"
)

// Status is the one word that a caller gets for a dispatch.
type Status string

// The statuses of the core. A policy may deny with a status of its own beside them.
const (
	StatusOK                  Status = "ok"
	StatusReplayed            Status = "replayed"
	StatusResumed             Status = "resumed"
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
	StatusDryRun              Status = "dry_run"
	StatusPolicyError         Status = "policy_error"
	// What only execution can know.
	StatusNotFound       Status = "not_found"
	StatusTimeout        Status = "timeout"
	StatusUnavailable    Status = "unavailable"
	StatusInvalidResult  Status = "invalid_result"
	StatusInternalError  Status = "internal_error"
	StatusRetryExhausted Status = "retry_exhausted"
	// StatusStarted is that of a call of an outside tool on record before its outcome is. No caller gets it.
	StatusStarted Status = "started"
)

// effectOf holds the statuses that the core gives with one effect only.
var effectOf = map[Status]Effect{
	StatusOK: Allow, StatusReplayed: Replay, StatusApprovalRequired: RequireApproval,
	StatusDryRun: Simulate, StatusResumed: Resume,
	StatusCancelled: Deny, StatusDeadlineExceeded: Deny, StatusBudgetExhausted: Deny, StatusInvalidProposal: Deny,
	StatusToolDenied: Deny, StatusInvalidArguments: Deny, StatusScopeDenied: Deny, StatusResourceDenied: Deny,
	StatusIdempotencyConflict: Deny, StatusInProgress: Deny, StatusOutcomeUnknown: Deny, StatusApprovalRejected: Deny,
	StatusApprovalExpired: Deny, StatusPendingLimit: Deny, StatusInvalidState: Deny, StatusTargetExists: Deny,
	StatusPolicyError: Deny,
}

// executionOnly are statuses that a policy may not give: only running a tool makes them.
var executionOnly = map[Status]bool{
	StatusNotFound: true, StatusTimeout: true, StatusUnavailable: true,
	StatusInvalidResult: true, StatusInternalError: true, StatusRetryExhausted: true,
	StatusStarted: true,
}

// CheckDenial says why no policy can deny with a status, or nil: those of the core go with one effect each, and some only
// running a call gives.
func CheckDenial(s Status) error {
	want, core := effectOf[s]
	switch {
	case !statusForm.MatchString(string(s)):
		return fmt.Errorf("the status is %q; it must be a word in lower case, such as outside_window", s)
	case executionOnly[s]:
		return fmt.Errorf("the status %s is given by running a call alone", s)
	case s == StatusPolicyError:
		return fmt.Errorf("the status %s says that the policy is broken", s)
	case core && want != Deny:
		return fmt.Errorf("the status %s goes with the effect %s", s, want)
	}
	return nil
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
	// Detail explains to people a denial that stands for a policy's failure. No policy can give it as such.
	Detail string `json:"-"`
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

// explained gives a policy's own word that it is broken the form of any other policy error.
func (d Decision) explained() Decision {
	if d.Status == StatusPolicyError {
		var said []string
		for _, r := range d.Reasons {
			said = append(said, r.Code+": "+r.Message)
		}
		d.Detail = strings.Join(said, "; ")
	}
	return d
}

var statusForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// answer is a decision as a policy writes it. What it leaves out is nil.
type answer struct {
	Effect        *Effect   `json:"effect"`
	Status        *Status   `json:"status"`
	Reasons       *[]Reason `json:"reasons"`
	PolicyVersion *string   `json:"policy_version"`
	Retryable     bool      `json:"retryable"`
	Approval      ijson.Raw `json:"approval"`
}

// parseDecision reads a policy's answer: exactly the documented members, nothing read kindly.
func parseDecision(raw ijson.Raw) (Decision, error) {
	if raw.Kind() != '{' {
		return Decision{}, malformed("the decision is not an object")
	}
	// A null would read as what is left out, and what is left out can mean a default.
	if hasNull(raw) {
		return Decision{}, malformed("the decision has a null in it")
	}
	var a answer
	err := ijson.Unmarshal(raw, &a)
	if err != nil || a.Effect == nil || a.Status == nil || a.Reasons == nil || a.PolicyVersion == nil {
		for _, name := range []string{"effect", "status", "reasons", "policy_version"} {
			if _, ok := ijson.Lookup(raw, "/"+name); !ok {
				return Decision{}, malformed("the decision has no %s", name)
			}
		}
		return Decision{}, malformed("%v", err)
	}
	d := Decision{Effect: *a.Effect, Status: *a.Status, Reasons: *a.Reasons, PolicyVersion: *a.PolicyVersion, Retryable: a.Retryable}
	for _, r := range d.Reasons {
		if r.Code == "" || r.Message == "" {
			return Decision{}, malformed("a reason has no code or no message")
		}
	}
	if a.Approval == nil {
		return d, nil
	}
	var terms Terms
	if err := ijson.Unmarshal(a.Approval, &terms); err != nil {
		return Decision{}, malformed("approval: %v", err)
	}
	terms = terms.inOrder()
	d.Approval = &terms
	return d, zeroTerms(a.Approval, len(terms.Stages))
}

// CheckTerms says what is wrong with terms as a policy states them, or nil.
func CheckTerms(raw ijson.Raw) error {
	if hasNull(raw) {
		return errors.New("a term is null; leave it out for its default")
	}
	var t Terms
	if err := ijson.Unmarshal(raw, &t); err != nil {
		return err
	}
	if err := zeroTerms(raw, len(t.Stages)); err != nil {
		return err
	}
	return t.check()
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
func zeroTerms(raw ijson.Raw, stages int) error {
	members, _ := ijson.Members(raw)
	for _, m := range members {
		if v := string(m.Value); v == "0" || v == `""` {
			return malformed("approval.%s is %s; leave it out for its default", m.Name, v)
		}
	}
	for i := range stages {
		if v, _ := ijson.Lookup(raw, fmt.Sprintf("/stages/%d/approvers", i)); string(v) == "0" {
			return malformed("approval.stages[%d].approvers is 0; leave it out for its default", i)
		}
	}
	return nil
}
