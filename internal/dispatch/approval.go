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

// OperationState is where an operation stands.
type OperationState string

// The states of an operation. Only Committed is final.
const (
	Started   OperationState = "started"   // a call is under way, until its lease ends
	Committed OperationState = "committed" // it took place
	Unknown   OperationState = "unknown"   // a call was made, and nobody knows what came of it
	Absent    OperationState = "absent"    // nothing of it took place
)

// Operation is one intended effect. Its identity is (tenant, task, actor, key), or, of a call of an outside tool without a
// key, the dispatch itself. That of a local tool comes to be as it is committed.
type Operation struct {
	// ID names it to people. It is derived from the identity.
	ID    string
	Task  TaskKey
	Actor string
	Key   string
	// Dispatch is the step that intended it, where there is no key, and else 0.
	Dispatch  int
	Signature string
	Tool      string
	State     OperationState
	// Step is the dispatch that committed it or, outside, called last, and Run counts its calls from 1.
	Step int
	Run  int

	// What follows is of outside tools alone.

	// Effect is the keyed digest of the effect, whatever its key, and Definition that of the tool's definition.
	Effect     string
	Definition string
	// Outward is the key that names the operation to the tool.
	Outward string
	// Since is when its first call was begun, which is when the tool's memory of its key begins, and Lease until when the last
	// call is its owner's alone. After it a started operation counts as unknown.
	Since time.Time
	Lease time.Time
	// Target is what the call acts on.
	Target string
	// Approval is the id of the approval that the call consumed, and PolicyVersion allowed the last call.
	Approval      string
	PolicyVersion string
	// Lookups counts how often the tool was asked what became of the last call, to no avail.
	Lookups int
	// Proposal is the call, with seals for what is sensitive, and ExactProposal, where there are any, the call itself; it goes
	// once the operation is committed.
	Proposal      ijson.Raw
	ExactProposal ijson.Raw

	// Result is what the call gave, with seals for what is sensitive.
	Result ijson.Raw
	// Exact is, where Result has seals, what a replay answers; else it is Result.
	Exact ijson.Raw
}

// OperationID derives the name of an operation from its identity. The key is empty where the dispatch is the identity, and
// the dispatch is 0 where the key is.
func OperationID(task TaskKey, actor, key string, dispatch int) string {
	identity, err := ijson.Marshal([]any{task.Tenant, task.ID, actor, key, dispatch})
	if err != nil {
		panic(err) // texts that came through a strict decoder
	}
	return "op-" + ijson.Digest("govern operation v1", identity)[:16]
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
