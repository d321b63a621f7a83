package journal

import (
	"context"
	"slices"
	"time"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Filter chooses entries. Each list that is not empty must have the entry's word, and the time must lie within its bounds;
// what an entry of its kind does not have is in no list. The zero value chooses all.
type Filter struct {
	Tenants, Tasks, Kinds []string
	Actors, Tools, Calls  []string
	Effects, Statuses     []string
	PolicyVersions        []string
	// Since and Until are the first moment and the first one after the last.
	Since, Until time.Time
}

// Where the entries of the kinds that have such a member have it.
var (
	actorAt    = []string{"/actor"}
	toolAt     = []string{"/tool", "/input/call/tool"}
	callAt     = []string{"/call_id"}
	effectAt   = []string{"/decision/effect"}
	statusAt   = []string{"/status"}
	versionsAt = []string{"/policy_version", "/decision/policy_version"}
)

// Match says whether the filter chooses an entry. The status of a decision is what the caller got, which of a call of an
// outside tool is found in the source.
func (f *Filter) Match(ctx context.Context, s Source, e dispatch.Entry) (bool, error) {
	if others := f.matchOthers(e); !others || len(f.Statuses) == 0 {
		return others, nil
	}
	status, _ := Member(e, statusAt...)
	if e.Kind == dispatch.KindDecision && status == string(dispatch.StatusStarted) {
		o, err := outcomeOf(ctx, s, dispatch.EntryHeader{Tenant: e.Task.Tenant, Task: e.Task.ID, Step: e.Step, N: e.N})
		if err != nil {
			return false, err
		}
		if o != nil {
			status = string(o.Status)
		}
	}
	return slices.Contains(f.Statuses, status), nil
}

// matchOthers is Match for everything but the status.
func (f *Filter) matchOthers(e dispatch.Entry) bool {
	return among(f.Kinds, string(e.Kind)) && among(f.Tenants, e.Task.Tenant) && among(f.Tasks, e.Task.ID) &&
		has(f.Actors, e, actorAt) && has(f.Calls, e, callAt) && has(f.Effects, e, effectAt) &&
		has(f.Tools, e, toolAt) && has(f.PolicyVersions, e, versionsAt) && f.within(e)
}

func among(list []string, word string) bool { return len(list) == 0 || slices.Contains(list, word) }

// has looks into the bytes, and reads no more of them than it must: a log is long.
func has(list []string, e dispatch.Entry, at []string) bool {
	if len(list) == 0 {
		return true
	}
	word, ok := Member(e, at...)
	return ok && slices.Contains(list, word)
}

// Member gives the text that an entry has at one of some JSON Pointers.
func Member(e dispatch.Entry, at ...string) (string, bool) {
	for _, pointer := range at {
		if value, ok := ijson.Lookup(e.Body, pointer); ok {
			if text, ok := ijson.String(value); ok {
				return text, true
			}
		}
	}
	return "", false
}

func (f *Filter) within(e dispatch.Entry) bool {
	if f.Since.IsZero() && f.Until.IsZero() {
		return true
	}
	text, _ := Member(e, "/time")
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && !at.Before(f.Since) && (f.Until.IsZero() || at.Before(f.Until))
}
