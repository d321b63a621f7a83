package main

import (
	"context"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// whole compares whole dispatches, from a proposal's bytes to a durable result, of many callers with those of one. Each is on
// a task of its own.
var whole = subject{
	specs: []spec{
		{"dispatch-read-64/1", "dispatches a second of 64 callers, over those of one, where a document is read", 7, atLeast, ""},
		{"dispatch-draft-64/1", "dispatches a second of 64 callers, over those of one, where an approved draft is recorded", 7, atLeast, ""},
	},
	open: func(ctx context.Context, e *env) ([]duel, error) {
		t, err := sample()
		if err != nil {
			return nil, err
		}
		one, callers, each := e.size(200, 3), e.size(64, 3), e.size(40, 1)
		var reads, drafts []work
		for range max(one, callers*each) + 2*callers {
			reads = append(reads, work{name('t'), read(readable), dispatch.StatusOK})
			drafts = append(drafts, work{name('t'), draft(name('d')), dispatch.StatusOK})
		}
		s, err := newState(ctx, e, "state", func(store *sqlite.Store) error {
			g := newGate(store, t.made.Snapshot)
			return prepare(len(reads), func(i int) error {
				d := drafts[i]
				for _, err := range []error{
					g.create(ctx, reads[i].task),
					g.create(ctx, d.task),
					g.propose(ctx, d.task, d.proposal, dispatch.StatusApprovalRequired),
					g.approve(ctx, d.task, d.proposal),
				} {
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
		of := func(all []work) func(caller, n int) []work {
			return func(caller, n int) []work { return all[caller*n : (caller+1)*n] }
		}
		return []duel{
			{s.dispatches(t.made.Snapshot, 1, one, of(reads)), s.dispatches(t.made.Snapshot, callers, each, of(reads))},
			{s.dispatches(t.made.Snapshot, 1, one, of(drafts)), s.dispatches(t.made.Snapshot, callers, each, of(drafts))},
		}, nil
	},
}
