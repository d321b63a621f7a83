package dispatch

import "errors"

// ErrorKind groups errors by what the caller can do about them.
type ErrorKind int

// The kinds. An error that is none of ours is broken.
const (
	Broken  ErrorKind = iota // a fault of govern or of its machine
	Misuse                   // the request is not one that can be judged
	Refused                  // the request is well formed, and the present state forbids it
)

// Error is an error that a person can do something about.
type Error struct {
	Kind ErrorKind
	// Code is stable; programs compare it.
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Message }

// Is makes errors with one code equal, so that a message can name the thing.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// KindOf says what kind of error err is.
func KindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Broken
}

// Errors of dispatch and review. Compare them with errors.Is.
var (
	// ErrUnknownTask is also the answer to an actor other than the task's.
	ErrUnknownTask = &Error{Misuse, "unknown_task", "there is no such task for this actor"}
	ErrTaskExists  = &Error{Refused, "task_exists", "a task of this name exists already"}
	// ErrNoProposal says that what a person named a call by is none.
	ErrNoProposal      = &Error{Misuse, "invalid_proposal", "this is not a proposal"}
	ErrUnknownApproval = &Error{Misuse, "unknown_approval", "there is no such approval"}
	// ErrUnknownOperation says that there is no operation of an id.
	ErrUnknownOperation = &Error{Misuse, "unknown_operation", "there is no such operation; list them with govern operations list"}
	// ErrUnknownContent says that nothing is kept under a digest.
	ErrUnknownContent = &Error{Misuse, "unknown_content", "nothing is kept under this digest"}
	// ErrUnknownRow says that a listing was to begin or to end at a row that the store does not have.
	ErrUnknownRow = &Error{Misuse, "unknown_row", "there is no such row"}
	// ErrMoved says that the state changed between reading and writing; the caller decides again.
	ErrMoved = &Error{Refused, "moved", "the task was changed at the same time"}
	// ErrUnavailable says that nothing was judged, and no step was counted; the same call can be sent again.
	ErrUnavailable = &Error{Refused, "unavailable", "the task or the state is too busy; nothing was judged and no step was counted; try again"}
)
