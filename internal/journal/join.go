package journal

import (
	"context"
	"iter"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// What is on record of a call of an outside tool stands apart: the decision that began it, and behind other entries of its
// task what came of it. Here the two are found for each other.

// Source gives parts of the entries, as a dispatch.Reader does.
type Source interface {
	EntriesIn(ctx context.Context, tenant, task string, kind dispatch.Kind, span dispatch.Span[dispatch.Place]) iter.Seq2[dispatch.Entry, error]
}

// outcomeOf finds what came of the call that a decision began; nil if that is not on record.
func outcomeOf(ctx context.Context, s Source, d dispatch.EntryHeader) (*dispatch.OutcomeEntry, error) {
	after := dispatch.Place{Task: d.Task, Step: d.Step, N: d.N}
	for e, err := range s.EntriesIn(ctx, d.Tenant, d.Task, dispatch.KindOutcome, dispatch.Span[dispatch.Place]{After: &after}) {
		if err != nil {
			return nil, err
		}
		o, err := decode(e, itself[dispatch.OutcomeEntry])
		if err != nil || o.Dispatch == d.Step {
			return &o, err
		}
	}
	return nil, nil
}

// settlementOf finds the settlement that an action is of, which is the entry before it; nil if an outcome is.
func settlementOf(ctx context.Context, s Source, a dispatch.EntryHeader) (*dispatch.SettlementEntry, error) {
	// A step begins with a decision, so that before what precedes an action is another entry.
	after, before := dispatch.Place{Task: a.Task, Step: a.Step, N: a.N - 2}, dispatch.Place{Task: a.Task, Step: a.Step, N: a.N}
	for e, err := range s.EntriesIn(ctx, a.Tenant, a.Task, dispatch.KindSettlement, dispatch.Span[dispatch.Place]{After: &after, Before: &before}) {
		if err != nil {
			return nil, err
		}
		found, err := decode(e, itself[dispatch.SettlementEntry])
		return &found, err
	}
	return nil, nil
}

func itself[Body any](b Body) (Body, error) { return b, nil }
