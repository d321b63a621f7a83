package dispatch

import (
	"regexp"
	"time"
)

// DefaultTenant is the tenant of every task on a single-tenant installation, such as the command line's.
const DefaultTenant = "default"

// Principal is an authenticated actor. It comes from the transport's credentials, never from a proposal.
type Principal struct {
	Tenant string
	Actor  string
}

// Origin says how a proposal reached the dispatcher.
type Origin struct {
	// Door names the way in, such as "cli". It is recorded with the decision.
	Door string
	// Mode says whether effects are wanted; empty means Enforce.
	Mode Mode
	// Length is the number of bytes that arrived when the door kept only the first of them, because they
	// exceed the limit; 0 means that the bytes given are all of them.
	Length int64
}

// TaskKey names a task. It comes from the command line or a URL, never from a proposal.
type TaskKey struct {
	Tenant string
	ID     string
}

// Task is one piece of delegated work and the unit of ordering: every change of it raises Revision by one,
// and a change is applied only to the revision that it was computed from.
type Task struct {
	TaskKey
	// Profile names what this kind of work may do. A task whose profile is gone has no permitted tool.
	Profile string
	// Actor is on whose behalf the task's proposals come.
	Actor string
	// Steps counts the judged dispatches so far, whatever their outcome.
	Steps int
	// Spent is what the runs so far took.
	Spent Spent
	// InFlight are the calls of outside tools whose outcome is not on record, by step. Each reserves what it may give.
	InFlight []InFlight
	// Cancelled is terminal.
	Cancelled bool
	// Deadline is when the task's time is up; zero means never.
	Deadline time.Time
	// Updated is the latest moment that this task has seen. A task's time never runs back, even if a clock does.
	Updated time.Time
	// Entries counts the entries recorded at step Steps, and so is the next entry's number there.
	Entries int
	// Revision guards changes; 0 means that the task does not exist yet.
	Revision int64
}

// InFlight is a call of an outside tool that was begun.
type InFlight struct {
	// Step is the dispatch that began it.
	Step int `json:"step"`
	// Lease is when it ends at the latest, whatever becomes of this process: an RFC 3339 time as FormatTime writes it.
	Lease string `json:"lease"`
	// Output is the number of bytes that it may give, which are reserved until the lease ends.
	Output int64 `json:"output,omitzero"`
}

// Profile is what the dispatcher itself needs of a profile; the tools and resource sets that it permits are
// data for the policy.
type Profile struct {
	// Scopes that the profile grants. None means none.
	Scopes []string
	// MaxSteps bounds the judged dispatches of a task.
	MaxSteps int
	// MaxPending bounds the approvals of a task that wait for a person at one time.
	MaxPending int
	// Budgets bound the runs of a task. Without the budget of cost the costs of tools bound nothing.
	Budgets Budgets
}

var taskIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ValidName says whether a tenant, task, actor or profile can have that name.
func ValidName(name string) bool { return taskIDForm.MatchString(name) }

// checkTask refuses names that could not be typed, shown or logged without doubt.
func checkTask(t Task) error {
	for _, field := range []struct{ name, value string }{
		{"tenant", t.Tenant}, {"task", t.ID}, {"actor", t.Actor}, {"profile", t.Profile},
	} {
		if t.Deadline.UTC().Year() > 9999 {
			return &Error{Misuse, "deadline", "the deadline is after the year 9999, which RFC 3339 cannot write"}
		}
		if !ValidName(field.value) {
			return &Error{Misuse, "name", "the " + field.name + "'s name is not 1 to 64 letters, digits, dots, underscores or hyphens, beginning with a letter or digit"}
		}
	}
	return nil
}
