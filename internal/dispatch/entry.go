package dispatch

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
)
