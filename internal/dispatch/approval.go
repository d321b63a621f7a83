package dispatch

import (
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// ApprovalState is where an approval stands.
type ApprovalState string

// The states of an approval. Only a person moves one out of Rejected or Expired; Consumed and Withdrawn are final.
const (
	Pending   ApprovalState = "pending"
	Approved  ApprovalState = "approved"
	Rejected  ApprovalState = "rejected"
	Consumed  ApprovalState = "consumed"
	Expired   ApprovalState = "expired"
	Withdrawn ApprovalState = "withdrawn"
)

// Approval is a stored snapshot of one exact call, and what people have said of it.
type Approval struct {
	// ID names the approval to people. It is derived, not random, and gives no authority.
	ID string
	// Task, Actor and Signature say which call it covers, and for whom.
	Task      TaskKey
	Actor     string
	Signature string
	// Definition is the digest of the tool's definition that the reviewer was shown.
	Definition string
	Mode       Mode
	// Step is the dispatch that asked.
	Step int
	// Proposal is the call's canonical form, with seals for what is sensitive: what is listed and recorded.
	Proposal ijson.Raw
	// Exact is, where Proposal has seals, the call itself: what a reviewer is shown and what runs. It is nil where nothing
	// is sensitive, in lists of approvals, and once the approval is consumed or withdrawn.
	Exact ijson.Raw
	State ApprovalState
	// Terms are what the policy demanded when it was last asked.
	Terms Terms
	Votes []Vote
	// ExpiresAtStep is the last step at which an approved approval can be used; 0 until it is complete.
	ExpiresAtStep int
	// ExpiresAt is the wall-clock limit, counted from when the approval became pending.
	ExpiresAt time.Time
	// PolicyVersion asked for it.
	PolicyVersion string
}

// Open says whether the approval still waits or can still be used.
func (a *Approval) Open() bool {
	return a != nil && (a.State == Pending || a.State == Approved)
}

// lapsed says whether an open approval is past its limits for a call at that step and moment.
func (a *Approval) lapsed(step int, now time.Time) bool {
	return a.Open() && (now.After(a.ExpiresAt) || a.State == Approved && step > a.ExpiresAtStep)
}

// Call is the canonical form of the very call that the approval covers, as far as it is kept.
func (a *Approval) Call() ijson.Raw { return or(a.Exact, a.Proposal) }

// final says that an approval in that state stays in it.
func (s ApprovalState) final() bool { return s == Consumed || s == Withdrawn }

// CallID is the id of the attempt that asked for the approval.
func (a *Approval) CallID() string { return stringAt(a.Proposal, "/call_id") }

// Tool names the tool of the call that the approval covers.
func (a *Approval) Tool() string { return stringAt(a.Proposal, "/tool") }

// Vote is one person's word on one approval.
type Vote struct {
	Reviewer string `json:"reviewer"`
	// Roles are those that the reviewer held at the time.
	Roles    []string `json:"roles,omitzero"`
	Decision string   `json:"decision"`
	Lifetime int      `json:"lifetime,omitzero"`
	Reason   string   `json:"reason,omitzero"`
	// Stage of the approval that the vote was given for.
	Stage string `json:"stage,omitzero"`
	// Time is RFC 3339 in UTC, like every time in an entry.
	Time string `json:"time"`
}

// Operation is one intended effect that was committed, under the key that names it across attempts.
// Its identity is (tenant, task, actor, key).
type Operation struct {
	Task      TaskKey
	Actor     string
	Key       string
	Signature string
	Tool      string
	// Step is the dispatch that committed it.
	Step int
	// Result is what the call gave, with seals for what is sensitive.
	Result ijson.Raw
	// Exact is, where Result has seals, what a replay answers; else it is Result.
	Exact ijson.Raw
}

// Record is the effect of a local write: created once, never overwritten.
type Record struct {
	Task TaskKey
	// Tool and Target name the record within its task.
	Tool   string
	Target string
	// Value is the record with seals for what is sensitive, and Exact, if there are any, the record itself.
	Value ijson.Raw
	Exact ijson.Raw
}
