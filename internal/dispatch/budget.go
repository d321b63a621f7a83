package dispatch

import (
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Budgets bound what the runs of a task may take in all. A nil one bounds nothing.
type Budgets struct {
	// Cost bounds the sum of what the tools' definitions say that a run costs.
	Cost *int64 `json:"cost,omitzero"`
	// Attempts bounds the runs.
	Attempts *int64 `json:"attempts,omitzero"`
	// Output bounds the bytes that the runs gave: nothing runs once it is reached.
	Output *int64 `json:"output,omitzero"`
}

// Spent is what the runs of a task took so far, whether or not a budget bounds it.
type Spent struct {
	Cost     int64
	Attempts int64
	Output   int64
}

// InputBudgets is input.state.budgets: the budgets that the profile states, and no other.
type InputBudgets struct {
	Cost     *InputBudget `json:"cost,omitzero"`
	Attempts *InputBudget `json:"attempts,omitzero"`
	Output   *InputBudget `json:"output,omitzero"`
}

// InputBudget is one member of input.state.budgets.
type InputBudget struct {
	Limit int64 `json:"limit"`
	Spent int64 `json:"spent"`
	// Reserved is what calls under way may still take.
	Reserved int64 `json:"reserved"`
}

// After compares the budgets with what a task spent, and has reserved at a moment.
func (b Budgets) After(t Task, now time.Time) InputBudgets {
	after := func(limit *int64, spent, reserved int64) *InputBudget {
		if limit == nil {
			return nil
		}
		return &InputBudget{Limit: *limit, Spent: spent, Reserved: reserved}
	}
	// Cost and attempts are spent as a call begins, and never reserved: what was tried was paid for.
	s := t.Spent
	return InputBudgets{Cost: after(b.Cost, s.Cost, 0), Attempts: after(b.Attempts, s.Attempts, 0), Output: after(b.Output, s.Output, t.reserved(now))}
}

// reserved is what the calls that are under way may still give. A call whose lease has ended gives nothing more.
func (t *Task) reserved(now time.Time) int64 {
	sum, at := int64(0), FormatTime(now)
	for _, f := range t.InFlight {
		if at <= f.Lease {
			sum += f.Output
		}
	}
	return sum
}

// run adds one allowed run, whatever came of it: what was tried was paid for. The value is nil if nothing took place.
func (s *Spent) run(cost int64, value ijson.Raw) {
	s.Cost += cost
	s.Attempts++
	s.Output += int64(len(value))
}

// affordable says whether the budgets have room for the call, beside those under way. How much it will give is not known before.
func (in Input) affordable() error {
	b := in.State.Budgets
	switch {
	case b.Cost != nil && b.Cost.Spent+b.Cost.Reserved+in.Tool.Cost > b.Cost.Limit:
		return malformed("the budget of cost is spent")
	case b.Attempts != nil && b.Attempts.Spent+b.Attempts.Reserved >= b.Attempts.Limit:
		return malformed("the budget of attempts is spent")
	case b.Output != nil && b.Output.Spent+b.Output.Reserved >= b.Output.Limit:
		return malformed("the budget of output is spent")
	}
	return nil
}
