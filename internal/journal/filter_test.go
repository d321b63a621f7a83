package journal

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// entryOf makes an entry of a body whose header says what it is.
func entryOf(t *testing.T, h dispatch.EntryHeader, body any) dispatch.Entry {
	t.Helper()
	raw, err := ijson.Marshal(body)
	require.NoError(t, err)
	return dispatch.Entry{Task: dispatch.TaskKey{Tenant: h.Tenant, ID: h.Task}, Step: h.Step, N: h.N, Kind: h.Kind, Body: raw}
}

func header(kind dispatch.Kind) dispatch.EntryHeader {
	h := dispatch.EntryHeader{Kind: kind, Tenant: "default", Task: "labels-1", Step: 2, Time: "2026-03-01T12:00:00.500Z"}
	if slices.Contains([]dispatch.Kind{dispatch.KindActivation, dispatch.KindBaseline, dispatch.KindKey}, kind) {
		h.Tenant, h.Task = "", ""
	}
	return h
}

// specimens has an entry of each kind.
func specimens(t *testing.T) map[dispatch.Kind]dispatch.Entry {
	t.Helper()
	id := "c1"
	bodies := map[dispatch.Kind]any{
		dispatch.KindTask: dispatch.TaskEntry{EntryHeader: header(dispatch.KindTask), Actor: "learner", By: "root"},
		dispatch.KindDecision: dispatch.DecisionEntry{EntryHeader: header(dispatch.KindDecision), CallID: &id, Actor: "learner", Status: "timeout",
			Input:    ijson.Raw(`{"call":{"tool":"calculate"},"tool":{"effect":"pure"},"task":{"actor":"nobody"}}`),
			Decision: dispatch.Decision{Effect: dispatch.Allow, Status: "ok", PolicyVersion: "v1"}},
		dispatch.KindAction: dispatch.ActionEntry{EntryHeader: header(dispatch.KindAction), CallID: id, Actor: "learner", Tool: "calculate",
			PolicyVersion: "v1", Value: ijson.Raw(`{"status":"refused"}`)},
		dispatch.KindReview: dispatch.ReviewEntry{EntryHeader: header(dispatch.KindReview), CallID: id, Actor: "learner", Reviewer: "ann", Decision: "approved"},
		dispatch.KindReopen: dispatch.ReviewEntry{EntryHeader: header(dispatch.KindReopen), CallID: id, Actor: "learner", Reviewer: "ann"},
		dispatch.KindExpiry: dispatch.ClosingEntry{EntryHeader: header(dispatch.KindExpiry)},
		dispatch.KindCancel: dispatch.ClosingEntry{EntryHeader: header(dispatch.KindCancel), By: "root"},
		dispatch.KindOutcome: dispatch.OutcomeEntry{EntryHeader: header(dispatch.KindOutcome), Dispatch: 1, CallID: id, Actor: "learner", Tool: "calculate",
			Status: "unavailable"},
		dispatch.KindSettlement: dispatch.SettlementEntry{EntryHeader: header(dispatch.KindSettlement), Operation: "op-1", CallID: id, Actor: "learner",
			Tool: "calculate", State: dispatch.Absent},
		dispatch.KindActivation: dispatch.ActivationEntry{EntryHeader: header(dispatch.KindActivation), PolicyVersion: "v1", By: "root"},
		dispatch.KindBaseline:   dispatch.BaselineEntry{EntryHeader: header(dispatch.KindBaseline), Entries: 7},
		dispatch.KindKey:        dispatch.KeyEntry{EntryHeader: header(dispatch.KindKey), Act: "new", By: "root"},
	}
	all := map[dispatch.Kind]dispatch.Entry{}
	for _, kind := range dispatch.Kinds {
		require.Contains(t, bodies, kind)
		all[kind] = entryOf(t, header(kind), bodies[kind])
	}
	return all
}

// Each filter chooses the kinds that have its member with that value, and no other.
func TestFilter(t *testing.T) {
	const (
		task, decision, action, review, reopen = dispatch.KindTask, dispatch.KindDecision, dispatch.KindAction, dispatch.KindReview, dispatch.KindReopen
		expiry, cancel, activation, baseline   = dispatch.KindExpiry, dispatch.KindCancel, dispatch.KindActivation, dispatch.KindBaseline
		key, outcome, settlement               = dispatch.KindKey, dispatch.KindOutcome, dispatch.KindSettlement
	)
	of := func(kinds ...dispatch.Kind) []dispatch.Kind { return kinds }
	at := func(s string) time.Time {
		moment, err := time.Parse(time.RFC3339Nano, s)
		require.NoError(t, err)
		return moment
	}
	everywhere := of(task, decision, action, review, reopen, expiry, cancel, outcome, settlement)
	for name, c := range map[string]struct {
		filter Filter
		want   []dispatch.Kind
	}{
		"none":              {Filter{}, dispatch.Kinds},
		"tenant":            {Filter{Tenants: []string{"default"}}, everywhere},
		"no tenant":         {Filter{Tenants: []string{""}}, of(activation, baseline, key)},
		"task":              {Filter{Tasks: []string{"labels-1"}}, everywhere},
		"another task":      {Filter{Tasks: []string{"labels-2"}}, nil},
		"one of two tasks":  {Filter{Tasks: []string{"labels-2", "labels-1"}}, everywhere},
		"no task":           {Filter{Tasks: []string{""}}, of(activation, baseline, key)},
		"kind":              {Filter{Kinds: []string{"review"}}, of(review)},
		"one of two kinds":  {Filter{Kinds: []string{"review", "baseline"}}, of(review, baseline)},
		"actor":             {Filter{Actors: []string{"learner"}}, of(task, decision, action, review, reopen, outcome, settlement)},
		"actor of an input": {Filter{Actors: []string{"nobody"}}, nil},
		"tool":              {Filter{Tools: []string{"calculate"}}, of(decision, action, outcome, settlement)},
		"call":              {Filter{Calls: []string{"c1"}}, of(decision, action, review, reopen, outcome, settlement)},
		"effect":            {Filter{Effects: []string{"allow"}}, of(decision)},
		"effect of a tool":  {Filter{Effects: []string{"pure"}}, nil},
		"status":            {Filter{Statuses: []string{"timeout"}}, of(decision)},
		"status of a call":  {Filter{Statuses: []string{"unavailable"}}, of(outcome)},
		"status decided":    {Filter{Statuses: []string{"ok"}}, nil},
		"status of a value": {Filter{Statuses: []string{"refused"}}, nil},
		"version":           {Filter{PolicyVersions: []string{"v1"}}, of(decision, action, activation)},
		"both":              {Filter{Kinds: []string{"decision"}, Actors: []string{"learner"}}, of(decision)},
		"both, one not":     {Filter{Kinds: []string{"cancel"}, Actors: []string{"learner"}}, nil},
		"since":             {Filter{Since: at("2026-03-01T12:00:00.5Z")}, dispatch.Kinds},
		"since later":       {Filter{Since: at("2026-03-01T12:00:00.501Z")}, nil},
		"until":             {Filter{Until: at("2026-03-01T12:00:00.5Z")}, nil},
		"until later":       {Filter{Until: at("2026-03-01T13:00:00.501+01:00")}, dispatch.Kinds},
		"between":           {Filter{Since: at("2026-03-01T00:00:00Z"), Until: at("2026-03-02T00:00:00Z"), Kinds: []string{"task"}}, of(task)},
	} {
		t.Run(name, func(t *testing.T) {
			var got []dispatch.Kind
			for kind, e := range specimens(t) {
				wanted, err := c.filter.Match(t.Context(), record{}, e)
				require.NoError(t, err)
				if wanted {
					got = append(got, kind)
				}
			}
			assert.ElementsMatch(t, c.want, got)
		})
	}
}

// What is no entry of govern's matches nothing that looks into it.
func TestFilterOnForeignBytes(t *testing.T) {
	for _, body := range []string{``, `{`, `null`, `[]`, `{"actor":7,"time":null}`} {
		e := dispatch.Entry{Body: ijson.Raw(body)}
		for _, f := range []Filter{{Actors: []string{""}}, {Actors: []string{"7"}}, {Since: time.Unix(0, 0)}, {Until: time.Now()}} {
			wanted, err := f.Match(t.Context(), record{}, e)
			require.NoError(t, err)
			assert.False(t, wanted, body)
		}
	}
}
