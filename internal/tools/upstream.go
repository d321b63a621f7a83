package tools

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/outbound"
)

// Upstream stands in memory where tools outside are, for scenarios and tests: what it answers is read as any answer is, and
// nothing reaches a network. It outlives the tools, as what is outside does.
type Upstream struct {
	// Answers are what it answers, by tool. A tool that is not in it cannot be reached.
	Answers map[string]UpstreamAnswer

	mu      sync.Mutex
	effects []UpstreamEffect
}

// UpstreamAnswer is an answer that is stated.
type UpstreamAnswer struct {
	Status int
	// ContentType is application/json if it is left out.
	ContentType string
	Body        []byte
}

// UpstreamEffect is what one write brought about.
type UpstreamEffect struct {
	Tool, Key   string
	Method, URL string
	Body        ijson.Raw

	answer UpstreamAnswer
}

// Effects are all that took place, in their order.
func (u *Upstream) Effects() []UpstreamEffect {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.effects)
}

// Simulated gives the same tools, those outside at an upstream in memory.
func Simulated(tools map[string]dispatch.Tool, u *Upstream) map[string]dispatch.Tool {
	simulated := maps.Clone(tools)
	for name, t := range tools {
		switch t := unguarded(t).(type) {
		case outside:
			simulated[name] = Guarded(t.at(u, Lookup{}))
		case finder:
			t.outside = t.outside.at(u, t.lookup)
			simulated[name] = Guarded(t)
		}
	}
	return simulated
}

// at is the tool at an upstream in memory.
func (t outside) at(u *Upstream, lookup Lookup) outside {
	t.simulated = true
	t.send = func(ctx context.Context, r outbound.Request) (outbound.Answer, error) {
		switch {
		case ctx.Err() == context.DeadlineExceeded:
			return outbound.Answer{}, t.fault(outbound.Deadline)
		case ctx.Err() != nil:
			return outbound.Answer{}, t.fault(outbound.Cancelled)
		case r.Fence != nil && r.Fence() != nil:
			return outbound.Answer{}, t.fault(outbound.Fenced)
		}
		answer, reached := u.answer(t, r, lookup)
		if !reached {
			return outbound.Answer{}, t.fault(outbound.Unreached)
		}
		out := outbound.Answer{Sent: true, Status: answer.Status}
		if !r.Wanted(answer.Status) {
			return out, nil
		}
		if len(answer.Body) > r.MostBytes {
			return out, t.fault(outbound.Unreadable)
		}
		out.ContentType, out.Body = answer.ContentType, answer.Body
		if out.ContentType == "" {
			out.ContentType = jsonType
		}
		return out, nil
	}
	return t
}

// answer lets a request take place. A key that the tool remembers has no second effect, and is answered as it was at first.
func (u *Upstream) answer(t outside, r outbound.Request, lookup Lookup) (answer UpstreamAnswer, reached bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	name, key := t.definition.Name, ""
	if len(t.keyHeaders) > 0 {
		key = r.Header.Get(t.keyHeaders[0])
	}
	answer, reached = u.Answers[name]
	if !reached || t.definition.Effect != dispatch.Write {
		return answer, reached
	}
	before := slices.IndexFunc(u.effects, func(e UpstreamEffect) bool { return key != "" && e.Tool == name && e.Key == key })
	switch {
	case r.Method == http.MethodGet && before < 0:
		return UpstreamAnswer{Status: http.StatusNotFound}, true
	case r.Method == http.MethodGet:
		found := u.effects[before].answer
		found.Status = http.StatusOK
		if lookup.State != "" {
			found.Body = argument(lookup.State, lookup.Committed[0])
		}
		return found, true
	case before >= 0 && t.definition.Recovery.Retention > 0:
		return u.effects[before].answer, true
	case slices.Contains(t.http.Success, answer.Status):
		u.effects = append(u.effects, UpstreamEffect{Tool: name, Key: key, Method: r.Method, URL: r.URL.String(), Body: bytes.Clone(r.Body), answer: answer})
	}
	return answer, true
}

func (t outside) fault(kind outbound.Fault) *outbound.Error {
	return &outbound.Error{Fault: kind, Host: t.url.host}
}
