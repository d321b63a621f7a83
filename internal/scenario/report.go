package scenario

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/journal"
)

// Report is what came of one scenario.
type Report struct {
	Name     string      `json:"name"`
	Category string      `json:"-"` // of the scenario: it groups what people and CI systems are shown
	Passed   bool        `json:"passed"`
	Failures []string    `json:"failures"`
	Steps    []ijson.Raw `json:"steps"`
	Final    Final       `json:"final"`
}

// Final is the end state of a scenario, over all of its tasks.
type Final struct {
	// Statuses has one member a dispatch, in order.
	Statuses []dispatch.Status `json:"statuses"`
	Actions  []FinalAction     `json:"actions"`
	// Drafts are the records of record_draft by their id, with seals for what is sensitive.
	Drafts    map[string]ijson.Raw `json:"drafts"`
	Approvals []FinalApproval      `json:"approvals"`

	// exact are the drafts as they are, which is what expectations are about.
	exact map[string]ijson.Raw
}

// FinalAction is an operation that ran.
type FinalAction struct {
	Tool   string `json:"tool"`
	Target string `json:"target,omitzero"`
}

// FinalApproval is where an approval stands at the end.
type FinalApproval struct {
	CallID string                 `json:"call_id"`
	Tool   string                 `json:"tool"`
	State  dispatch.ApprovalState `json:"state"`
}

func (r *Report) fail(place string, problems ...string) {
	for _, p := range problems {
		r.Failures = append(r.Failures, place+": "+p)
	}
}

func (s Scenario) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.dir, path)
}

// growth counts what has taken place, and what was allowed to.
type growth struct {
	actions, records, ran int
}

// grown counts from the record itself, not from the answers that the runner got.
func (r *runner) grown(ctx context.Context) (growth, error) {
	var g growth
	for _, err := range journal.Actions(ctx, r.store, r.store.Entries(ctx, r.principal.Tenant, "")) {
		if err != nil {
			return g, err
		}
		g.actions++
	}
	for e, err := range r.store.Entries(ctx, r.principal.Tenant, "") {
		if err == nil {
			var did bool
			if did, err = tookPlace(e); did {
				g.ran++
			}
		}
		if err != nil {
			return g, err
		}
	}
	records, err := r.store.Records(ctx, r.principal.Tenant, "")
	g.records = len(records)
	return g, err
}

// tookPlace says whether an entry is the word that a call took place: of a tool outside that of its outcome, or of a settlement.
func tookPlace(e dispatch.Entry) (bool, error) {
	switch e.Kind {
	case dispatch.KindDecision:
		var d dispatch.DecisionEntry
		err := ijson.Unmarshal(e.Body, &d)
		return d.Decision.Effect == dispatch.Allow && (d.Status == dispatch.StatusOK || d.Status == dispatch.StatusOutcomeUnknown), err
	case dispatch.KindOutcome:
		var o dispatch.OutcomeEntry
		err := ijson.Unmarshal(e.Body, &o)
		return o.State == dispatch.Committed || o.Operation == "" && o.Status == dispatch.StatusOK, err
	case dispatch.KindSettlement:
		var t dispatch.SettlementEntry
		err := ijson.Unmarshal(e.Body, &t)
		return t.State == dispatch.Committed, err
	}
	return false, nil
}

// unexplained says whether actions or records grew by more than was allowed and ran. It holds in every
// scenario, whatever that expects.
func (g growth) unexplained(before growth) []string {
	var out []string
	ran := g.ran - before.ran
	if n := g.actions - before.actions; n != ran {
		out = append(out, fmt.Sprintf("%d action(s) were recorded, and %d call(s) were allowed and ran", n, ran))
	}
	if n := g.records - before.records; n > ran || n < 0 {
		out = append(out, fmt.Sprintf("the number of records changed by %d, and %d call(s) were allowed and ran", n, ran))
	}
	return out
}

func (r *runner) final(ctx context.Context) (Final, error) {
	f := Final{Statuses: []dispatch.Status{}, Actions: []FinalAction{}, Drafts: map[string]ijson.Raw{}, Approvals: []FinalApproval{},
		exact: map[string]ijson.Raw{}}
	tenant := r.principal.Tenant
	for d, err := range journal.Decisions(ctx, r.store, r.store.Entries(ctx, tenant, "")) {
		if err != nil {
			return f, err
		}
		f.Statuses = append(f.Statuses, d.Status)
	}
	for a, err := range journal.Actions(ctx, r.store, r.store.Entries(ctx, tenant, "")) {
		if err != nil {
			return f, err
		}
		f.Actions = append(f.Actions, FinalAction{Tool: a.Tool, Target: a.Target})
	}
	records, err := r.store.Records(ctx, tenant, "")
	if err != nil {
		return f, err
	}
	for _, rec := range records {
		if rec.Tool == "record_draft" {
			f.Drafts[rec.Target], f.exact[rec.Target] = rec.Value, rec.Value
			if rec.Exact != nil {
				f.exact[rec.Target] = rec.Exact
			}
		}
	}
	approvals, err := r.store.Approvals(ctx, tenant, "")
	for _, a := range approvals {
		f.Approvals = append(f.Approvals, FinalApproval{CallID: a.CallID(), Tool: a.Tool(), State: a.State})
	}
	return f, err
}

func (f Final) compare(want *Expect) []string {
	if want == nil {
		return nil
	}
	var out []string
	for _, c := range []struct {
		name string
		want ijson.Raw
		got  any
		show any
	}{
		{"statuses", want.Statuses, f.Statuses, f.Statuses}, {"actions", want.Actions, f.Actions, f.Actions},
		{"drafts", want.Drafts, f.exact, f.Drafts}, {"approvals", want.Approvals, f.Approvals, f.Approvals},
	} {
		if c.want == nil {
			continue
		}
		got, err := ijson.Marshal(c.got)
		if err != nil {
			return []string{err.Error()}
		}
		shown, err := ijson.Marshal(c.show)
		if err != nil {
			return []string{err.Error()}
		}
		want, err := ijson.Canonical(c.want, unlimited)
		if err != nil {
			return []string{err.Error()}
		}
		switch {
		case slices.Equal(want, got):
		case !slices.Equal(got, shown):
			out = append(out, hidden(c.name))
		default:
			out = append(out, fmt.Sprintf("%s: want %s, got %s", c.name, want, got))
		}
	}
	return out
}
