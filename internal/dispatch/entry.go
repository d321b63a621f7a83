package dispatch

import (
	"fmt"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Kind says what an entry records.
type Kind string

// The kinds of entries.
const (
	KindTask     Kind = "task"     // a task was created or given to another actor
	KindDecision Kind = "decision" // one for every judged dispatch
	KindAction   Kind = "action"   // one for every operation that ran
	KindReview   Kind = "review"   // a person's vote
	KindReopen   Kind = "reopen"   // a person asked for a new vote
	KindExpiry   Kind = "expiry"   // approvals passed their wall-clock limit unanswered
	KindCancel   Kind = "cancel"   // the task was cancelled
	// Of outside tools.
	KindOutcome    Kind = "outcome"    // what came of a call that a decision began
	KindSettlement Kind = "settlement" // what was found out of an operation whose outcome was not known
	// Of no task: tenant and task are empty.
	KindActivation Kind = "activation" // decisions are made under another policy from here on
	KindBaseline   Kind = "baseline"   // the entries before have leaves only since now
	KindKey        Kind = "key"        // other keys sign checkpoints of the log from here on
)

// Kinds are all that there are, in the order in which people read of them.
var Kinds = []Kind{KindTask, KindDecision, KindAction, KindReview, KindReopen, KindExpiry, KindCancel, KindOutcome, KindSettlement, KindActivation, KindBaseline, KindKey}

// Entry is one immutable line of the record: its key, its kind and its canonical bytes. The bytes repeat key
// and kind, and hold no number of any database, so that every store exports the same.
type Entry struct {
	Task TaskKey
	// Step is the dispatch that the entry belongs to, or the task's current step for what people do, and N
	// counts the entries at that step from 0.
	Step int
	N    int
	Kind Kind
	Body ijson.Raw
}

// EntryHeader begins the body of every entry.
type EntryHeader struct {
	Kind   Kind   `json:"kind"`
	Tenant string `json:"tenant"`
	Task   string `json:"task"`
	Step   int    `json:"step"`
	N      int    `json:"n"`
	Time   string `json:"time"`
}

// TaskEntry is the body of a KindTask entry: the task as it is from here on.
type TaskEntry struct {
	EntryHeader
	Profile  string `json:"profile"`
	Actor    string `json:"actor"`
	Deadline string `json:"deadline,omitzero"`
	By       string `json:"by"`
	// Approvals that the change of actor withdrew.
	Approvals []Stand `json:"approvals,omitzero"`
}

// DecisionEntry is the body of a KindDecision entry.
type DecisionEntry struct {
	EntryHeader
	CallID *string `json:"call_id"`
	Actor  string  `json:"actor"`
	Door   string  `json:"door"`
	// Attempt is above 1 if the task was changed by another while this dispatch was decided.
	Attempt int `json:"attempt"`
	// Length counts the bytes of a proposal that was none.
	Length int64 `json:"length,omitzero"`
	// Operation is the key that names the intended effect, if the call has one.
	Operation string `json:"operation,omitzero"`
	// Input is what the policy saw, with its digest, and Decision what it answered or what stands for its failure to.
	Input       ijson.Raw `json:"input"`
	InputDigest string    `json:"input_digest"`
	// Sealed says that seals stand in the input for what is sensitive.
	Sealed   bool     `json:"sealed,omitzero"`
	Decision Decision `json:"decision"`
	// Started says what was begun, of a call of an outside tool. Status is StatusStarted then, and an outcome entry follows.
	Started *Start `json:"started,omitzero"`
	// Status is what the caller got: the decision's, or for an allowed call that of its execution.
	Status    Status `json:"status"`
	Retryable bool   `json:"retryable,omitzero"`
	// Detail explains a policy error, a broken tool or a withheld result to people.
	Detail string `json:"detail,omitzero"`
	// Approval is the one that the call waits for, was refused under or has used; Reviewers are those of one that it used.
	Approval  string   `json:"approval,omitzero"`
	Reviewers []string `json:"reviewers,omitzero"`
	// Approvals are those that this dispatch changed.
	Approvals []Stand `json:"approvals,omitzero"`
}

// Start is what is on record of a call of an outside tool before its first byte is sent.
type Start struct {
	// Operation is the id of a write's, Run counts its calls and Effect is the digest of its effect; of a read they are absent.
	Operation string `json:"operation,omitzero"`
	Run       int    `json:"run,omitzero"`
	Effect    string `json:"effect,omitzero"`
	// Outward is the key that names the operation to the tool.
	Outward    string `json:"outward,omitzero"`
	Definition string `json:"definition"`
	// Deadline is when the call is given up, and Lease until when nobody else may touch the operation.
	Deadline string `json:"deadline"`
	Lease    string `json:"lease"`
	// Output is the number of bytes that are reserved for what the call may give.
	Output int64 `json:"output"`
}

// OutcomeEntry is the body of a KindOutcome entry: what came of a call that the decision of step Dispatch began. An action
// follows if it took place.
type OutcomeEntry struct {
	EntryHeader
	Dispatch int    `json:"dispatch"`
	CallID   string `json:"call_id"`
	Actor    string `json:"actor"`
	Tool     string `json:"tool"`
	Target   string `json:"target,omitzero"`
	// Operation is the id of a write's, Run says which of its calls this was, and State where the operation stands now.
	Operation string         `json:"operation,omitzero"`
	Run       int            `json:"run,omitzero"`
	State     OperationState `json:"state,omitzero"`
	// Status is what the caller got.
	Status    Status   `json:"status"`
	Retryable bool     `json:"retryable,omitzero"`
	Reasons   []Reason `json:"reasons,omitzero"`
	Detail    string   `json:"detail,omitzero"`
	// Late says that the operation was settled or called anew by the time of the outcome.
	Late bool `json:"late,omitzero"`
	// Approvals is the one that came back, since nothing was sent.
	Approvals []Stand `json:"approvals,omitzero"`
}

// SettlementEntry is the body of a KindSettlement entry: what was found out of an operation without calling it again. An
// action follows if it took place.
type SettlementEntry struct {
	EntryHeader
	Operation string `json:"operation"`
	// Dispatch is the step of its last call, CallID that of the first, and Run counts its calls.
	Dispatch int    `json:"dispatch"`
	Run      int    `json:"run"`
	CallID   string `json:"call_id"`
	Actor    string `json:"actor"`
	Tool     string `json:"tool"`
	Target   string `json:"target,omitzero"`
	// State is Committed, Absent or, of a look-up that found nothing out, Unknown.
	State OperationState `json:"state"`
	// By is the operator who says so; empty where the tool's look-up does.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	Detail string `json:"detail,omitzero"`
}

// ActionEntry is the body of a KindAction entry: an operation that ran.
type ActionEntry struct {
	EntryHeader
	// Dispatch is the step that called an outside tool; absent where it is the entry's own.
	Dispatch  int    `json:"dispatch,omitzero"`
	CallID    string `json:"call_id"`
	Actor     string `json:"actor"`
	Tool      string `json:"tool"`
	Target    string `json:"target,omitzero"`
	Operation string `json:"operation,omitzero"`
	Signature string `json:"signature"`
	// Value is what it gave; absent where an outside tool's answer could not be kept.
	Value ijson.Raw `json:"value,omitzero"`
	// ValueBytes is, where Value has seals, the length of what the caller got: that is what the budget of output counts.
	ValueBytes int       `json:"value_bytes,omitzero"`
	Record     ijson.Raw `json:"record,omitzero"`
	// Approval and Reviewers say under whose word a call ran that needed one.
	Approval      string   `json:"approval,omitzero"`
	Reviewers     []string `json:"reviewers,omitzero"`
	PolicyVersion string   `json:"policy_version"`
}

// ReviewEntry is the body of a KindReview or KindReopen entry.
type ReviewEntry struct {
	EntryHeader
	Reviewer string `json:"reviewer"`
	// Decision is "approved" or "rejected"; empty where the approval was reopened.
	Decision string `json:"decision,omitzero"`
	// CallID is the attempt that asked, and Actor on whose behalf.
	CallID   string `json:"call_id"`
	Actor    string `json:"actor"`
	Reason   string `json:"reason,omitzero"`
	Approval Stand  `json:"approval"`
}

// ClosingEntry is the body of a KindCancel or KindExpiry entry, with the approvals that it closed.
type ClosingEntry struct {
	EntryHeader
	By        string  `json:"by,omitzero"`
	Approvals []Stand `json:"approvals,omitzero"`
}

// ActivationEntry is the body of a KindActivation entry: a process decides under this policy from here on.
type ActivationEntry struct {
	EntryHeader
	PolicyVersion string `json:"policy_version"`
	// By is the operating-system user whose process it is.
	By string `json:"by,omitzero"`
	// Policy and Config are the digests under which the policy with its data and the configuration are kept.
	Policy string `json:"policy,omitzero"`
	Config string `json:"config,omitzero"`
}

// BaselineEntry is the body of a KindBaseline entry: the first Entries of this log are older than its tree.
type BaselineEntry struct {
	EntryHeader
	Entries int64 `json:"entries"`
}

// KeyEntry is the body of a KindKey entry: these keys sign checkpoints of the log from here on.
type KeyEntry struct {
	EntryHeader
	// Act is new, rotate or finish.
	Act string `json:"act"`
	// Keys are the public halves.
	Keys []string `json:"keys"`
	By   string   `json:"by"`
}

// Stand is where an approval stands after an entry: the whole of it but the proposal, which is the call of
// the decision that asked.
type Stand struct {
	ID            string        `json:"id"`
	Signature     string        `json:"signature"`
	Actor         string        `json:"actor"`
	Definition    string        `json:"definition"`
	Mode          Mode          `json:"mode"`
	Step          int           `json:"step"`
	State         ApprovalState `json:"state"`
	Terms         Terms         `json:"terms"`
	Votes         []Vote        `json:"votes"`
	ExpiresAtStep int           `json:"expires_at_step,omitzero"`
	ExpiresAt     string        `json:"expires_at"`
	PolicyVersion string        `json:"policy_version"`
}

func standOf(a Approval) Stand {
	return Stand{ID: a.ID, Signature: a.Signature, Actor: a.Actor, Definition: a.Definition, Mode: a.Mode, Step: a.Step,
		State: a.State, Terms: a.Terms, Votes: append([]Vote{}, a.Votes...), ExpiresAtStep: a.ExpiresAtStep,
		ExpiresAt: FormatTime(a.ExpiresAt), PolicyVersion: a.PolicyVersion}
}

func standsOf(changes []ApprovalChange) []Stand {
	var out []Stand
	for _, c := range changes {
		out = append(out, standOf(c.Approval))
	}
	return out
}

// record appends an entry to the commit, at the task's current step under the next number. It sets the
// header's key, so that body and key cannot differ.
func (c *Commit) record(kind Kind, now time.Time, header *EntryHeader, body any) error {
	*header = EntryHeader{Kind: kind, Tenant: c.Task.Tenant, Task: c.Task.ID, Step: c.Task.Steps, N: c.Task.Entries, Time: FormatTime(now)}
	raw, err := ijson.Marshal(body)
	if err != nil {
		return fmt.Errorf("the %s entry of task %s, step %d: %w", kind, c.Task.ID, c.Task.Steps, err)
	}
	c.Entries = append(c.Entries, Entry{Task: c.Task.TaskKey, Step: c.Task.Steps, N: c.Task.Entries, Kind: kind, Body: raw})
	c.Task.Entries++
	return nil
}
