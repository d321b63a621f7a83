package dispatch

import (
	"context"
	"iter"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Decider evaluates the policy's one rule, data.policy.decision, over one input.
// It returns the rule's value as JSON, or a *PolicyError when there is not exactly one.
type Decider interface {
	Decide(ctx context.Context, input ijson.Raw) (ijson.Raw, error)
}

// Store keeps the state and the entries. Implementations must be safe for concurrent use, also by other
// processes on the same state. Times are kept to the millisecond, in UTC.
type Store interface {
	// Hold waits until no other dispatch or review holds the task, here or, where the store can tell, in another
	// process, and holds it until release is called. It gives ErrUnavailable when that takes unreasonably long. It keeps callers from deciding in vain; what makes a change safe is the guard
	// in Apply.
	Hold(ctx context.Context, task TaskKey) (release func(), err error)
	// Load reads a task and the rows that a call depends on, as of one revision. The operation comes with its exact bytes.
	// The approval comes without, and is the latest that was asked for of this call, whatever its state or definition. It
	// gives ErrUnknownTask for a task that does not exist.
	Load(ctx context.Context, task TaskKey, lookup Lookup) (State, error)
	// Apply makes a commit durable, all of it or none, before it returns nil. It gives ErrMoved, and changes
	// nothing, if the task's revision is not commit.Revision any more or a row of the commit was changed or
	// created by another. A commit that is not about one task and its next revision, or that changes what an approval
	// is of, is refused: a fault of the program. After any other error it is not known whether the commit is durable, until the state is read again.
	Apply(ctx context.Context, commit Commit) error
	Reader
}

// Reader is what listings and exports read.
type Reader interface {
	// Task gives ErrUnknownTask for a task that does not exist.
	Task(ctx context.Context, key TaskKey) (Task, error)
	// Tasks lists a tenant's tasks by id.
	Tasks(ctx context.Context, tenant string) ([]Task, error)
	// TasksIn lists a part of a tenant's tasks by id, by which they are named too. It reads like Entries.
	TasksIn(ctx context.Context, tenant string, span Span[string]) iter.Seq2[Task, error]
	// Approval finds an approval by its id, with its exact call, and gives ErrUnknownApproval if there is none.
	Approval(ctx context.Context, tenant, id string) (Approval, error)
	// Approvals lists a tenant's approvals in the order in which they were asked for, without their exact calls: closing
	// them has to work also if those are damaged. An empty task means every task, no states every state.
	Approvals(ctx context.Context, tenant, task string, states ...ApprovalState) ([]Approval, error)
	// ApprovalsIn lists a part of a tenant's approvals, or of those that wait for a person, in the order in which they were
	// asked for, without their exact calls. They are named by their ids. An empty task means every task. It reads like
	// Entries.
	ApprovalsIn(ctx context.Context, tenant, task string, waiting bool, span Span[string]) iter.Seq2[Approval, error]
	// Records lists what the local writes of a tenant's tasks created, by task, tool and target, and Operations a tenant's
	// operations, by task, step and key; no states means every state. An empty task means every task. Exact bytes come with them to who has the
	// store's key.
	Records(ctx context.Context, tenant, task string) ([]Record, error)
	Operations(ctx context.Context, tenant, task string, states ...OperationState) ([]Operation, error)
	// Operation finds an operation by its id, with its exact bytes, and gives ErrUnknownOperation if there is none.
	Operation(ctx context.Context, tenant, id string) (Operation, error)
	// Entries gives entries in the order of their commits, which within a task is that of step and number. It reads in
	// short transactions, so that a slow consumer holds nothing up. An empty task means every task of the tenant.
	Entries(ctx context.Context, tenant, task string) iter.Seq2[Entry, error]
	// EntriesIn gives a part of the entries of one kind, in the same order and in the same way. Its ends are entries of
	// the task, if there is one. What it costs does not depend on how many entries there are before and behind that part.
	EntriesIn(ctx context.Context, tenant, task string, kind Kind, span Span[Place]) iter.Seq2[Entry, error]
	// EntriesFrom gives the entries of every tenant and task, and those of none, in the order of the log, from the one of
	// that number on; the first is 0. It reads like Entries.
	EntriesFrom(ctx context.Context, n int64) iter.Seq2[Entry, error]
	// Content gives what is kept under a digest, and ErrUnknownContent if nothing is.
	Content(ctx context.Context, digest string) ([]byte, error)
	// LastEntry gives that entry of a kind which was committed last, of all tasks of the tenant, if there is one.
	LastEntry(ctx context.Context, tenant string, kind Kind) (e Entry, found bool, err error)
}

// Lookup names the rows beside its task that a call depends on. Empty fields look for nothing.
type Lookup struct {
	// Signature and Mode find the latest approval of this exact call.
	Signature string
	Mode      Mode
	// Actor and Key find the operation, or Actor and Dispatch where it has no key.
	Actor    string
	Key      string
	Dispatch int
	// Tool and Target find out whether a record exists.
	Tool   string
	Target string
}

// State is what a store holds of a task and a call, read at Task.Revision.
type State struct {
	Task         Task
	Approval     *Approval
	Operation    *Operation
	Pending      int
	TargetExists bool
	// Open are the operations of the task that are started or unknown, without their exact bytes, by the step of their last call.
	Open []Operation
}

// Commit is every row of one change, as one value. The store applies it whole or not at all.
type Commit struct {
	// Revision is what the change was computed from; 0 creates the task.
	Revision int64
	// Task is the task's row after the change; its Revision is Revision + 1.
	Task      Task
	Approvals []ApprovalChange
	Operation *OperationChange
	// Record is created; that another exists already fails the commit.
	Record *Record
	// Contents are kept for good, unless they are already.
	Contents []Content
	Entries  []Entry
}

// Content is what entries name by a digest alone: the policy and the configuration of an activation.
type Content struct {
	// Digest is the lower-case hex SHA-256 of Bytes.
	Digest string
	Bytes  []byte
}

// OperationChange is an operation's row after a change, and the state and run that the row must have had before. An empty
// From creates the row. At most one started or unknown operation of a task has one effect.
//
// ExactProposal is written where the row is created, and where the next run begins after one of which nothing took place.
// Every other change keeps the exact call that the row has, until the operation is committed and it goes. Result and Exact
// come with Committed alone.
type OperationChange struct {
	Operation
	From    OperationState
	FromRun int
}

// ApprovalChange is an approval's row after a change, and the state that the row must have had before.
// An empty From creates the row.
type ApprovalChange struct {
	Approval
	From ApprovalState
}
