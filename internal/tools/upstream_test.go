package tools

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// sent is the outcome without what it says to people.
func sent(t *testing.T, tools map[string]dispatch.Tool, call dispatch.Call) dispatch.Outcome {
	t.Helper()
	o := tools["pay"].Run(t.Context(), call)
	o.Detail = ""
	return o
}

func under(key string) dispatch.Call {
	call := pay("o1")
	call.Sending.Key = key
	return call
}

func TestAnUpstreamRemembersKeys(t *testing.T) {
	u := &Upstream{Answers: map[string]UpstreamAnswer{"pay": {Status: 201, Body: []byte(`{"id":"p1"}`)}}}
	registered := map[string]dispatch.Tool{"pay": one(t, payment(t, "https://pay.example.com", nil))}
	tools := Simulated(registered, u)
	first := sent(t, tools, under("out-1"))
	assert.Equal(t, dispatch.StatusOK, first.Status)
	value, _ := ijson.Lookup(first.Value, "/value")
	assert.Equal(t, `{"id":"p1"}`, string(value))

	u.Answers["pay"] = UpstreamAnswer{Status: 201, Body: []byte(`{"id":"p2"}`)}
	tools = Simulated(registered, u) // the upstream outlives the tools
	assert.Equal(t, first, sent(t, tools, under("out-1")), "the first answer is given again")
	assert.NotEqual(t, first, sent(t, tools, under("out-2")))
	u.Answers["pay"] = UpstreamAnswer{Status: 422}
	assert.Equal(t, dispatch.Absent, sent(t, tools, under("out-3")).State)
	effects := u.Effects()
	require.Len(t, effects, 2)
	effects[0].answer = UpstreamAnswer{}
	assert.Equal(t, UpstreamEffect{Tool: "pay", Key: "out-1", Method: "POST", URL: "https://pay.example.com/orders/o1/payments?note=a%26b", Body: ijson.Raw(`{"amount":5}`)}, effects[0])
}

// A tool that promises to remember no keys brings about what it is told to, each time.
func TestAnUpstreamThatRemembersNothing(t *testing.T) {
	u := &Upstream{Answers: map[string]UpstreamAnswer{"pay": {Status: 201}}}
	tools := Simulated(map[string]dispatch.Tool{"pay": one(t, payment(t, "https://pay.example.com", func(def *dispatch.Definition, o *Outside) {
		def.Recovery, o.Recovery = dispatch.Recovery{}, OutsideRecovery{Operator: true}
	}))}, u)
	sent(t, tools, under("out-1"))
	sent(t, tools, under("out-1"))
	assert.Len(t, u.Effects(), 2)
}

func TestAnUpstreamThatIsLookedUp(t *testing.T) {
	for name, edit := range map[string]func(*Lookup){
		"by status": func(*Lookup) {},
		"by a word": func(l *Lookup) { l.State, l.Committed = "/payment/state", []string{"done"} },
	} {
		t.Run(name, func(t *testing.T) {
			u := &Upstream{Answers: map[string]UpstreamAnswer{"pay": {Status: 201, Body: []byte(`{"id":"p1"}`)}}}
			tools := WithFaults(Simulated(map[string]dispatch.Tool{"pay": one(t, payment(t, "https://pay.example.com", func(def *dispatch.Definition, o *Outside) {
				lookedUp("/lookup/{key}")(def, o)
				edit(o.Recovery.Lookup)
			}))}, u), &Faults{Tools: []ToolFault{{"pay", LostReply, 1}}})
			find := tools["pay"].(dispatch.Finder)
			assert.Equal(t, dispatch.Absent, find.Find(t.Context(), under("out-1")).State)
			assert.Equal(t, dispatch.Unknown, sent(t, tools, under("out-1")).State)
			assert.Equal(t, dispatch.Committed, find.Find(t.Context(), under("out-1")).State)
			assert.Equal(t, dispatch.Absent, find.Find(t.Context(), under("out-2")).State)
		})
	}
}

func TestFaultsOfToolsOutside(t *testing.T) {
	u := &Upstream{Answers: map[string]UpstreamAnswer{"pay": {Status: 200, Body: []byte(`{}`)}}}
	all := &Faults{Tools: []ToolFault{{"pay", Timeout, 1}, {"pay", Unavailable, 1}, {"pay", LostReply, 1}, {"pay", BadResult, 1}, {"pay", Panic, 1}}}
	writes := map[string]dispatch.Tool{"pay": one(t, payment(t, "https://pay.example.com", nil))}
	require.NoError(t, all.Check(writes))
	tools := WithFaults(Simulated(writes, u), all)
	for i, want := range []struct {
		status  dispatch.Status
		state   dispatch.OperationState
		effects int
	}{{dispatch.StatusTimeout, dispatch.Absent, 0}, {dispatch.StatusUnavailable, dispatch.Absent, 0}, {dispatch.StatusOutcomeUnknown, dispatch.Unknown, 1},
		{dispatch.StatusInvalidResult, dispatch.Committed, 2}, {dispatch.StatusOutcomeUnknown, dispatch.Unknown, 2}, {dispatch.StatusOK, dispatch.Committed, 3}} {
		got := sent(t, tools, under(string(rune('a'+i))))
		assert.Equal(t, want.status, got.Status)
		assert.Equal(t, want.state, got.State)
		assert.Len(t, u.Effects(), want.effects)
	}

	reads := map[string]dispatch.Tool{"pay": one(t, order(t, "https://pay.example.com", nil))}
	tools = WithFaults(Simulated(reads, u), &Faults{Tools: []ToolFault{{"pay", Timeout, 1}, {"pay", Unavailable, 1}, {"pay", LostReply, 1}, {"pay", BadResult, 1}, {"pay", Panic, 1}}})
	for _, want := range []dispatch.Status{dispatch.StatusTimeout, dispatch.StatusUnavailable, dispatch.StatusUnavailable, dispatch.StatusInvalidResult, dispatch.StatusInternalError, dispatch.StatusOK} {
		assert.Equal(t, want, sent(t, tools, reading("o1")).Status)
	}
	assert.Len(t, u.Effects(), 3, "a read has none")
}

// What is made to fail never reaches a network, whether or not anybody said what is there instead.
func TestNoNetworkBehindFaults(t *testing.T) {
	real := serving(t, gives(200, `{}`))
	for name, def := range map[string]dispatch.Definition{"a write": payment(t, real.URL, nil), "a read": order(t, real.URL, nil), "a look-up": payment(t, real.URL, lookedUp("/{key}"))} {
		t.Run(name, func(t *testing.T) {
			call := pay("o1")
			if def.Effect == dispatch.Read {
				call = reading("o1")
			}
			for _, tools := range []map[string]dispatch.Tool{
				WithFaults(map[string]dispatch.Tool{"pay": one(t, def)}, &Faults{}),
				Simulated(map[string]dispatch.Tool{"pay": one(t, def)}, &Upstream{}),
			} {
				assert.Equal(t, dispatch.StatusUnavailable, sent(t, tools, call).Status)
				if f, ok := tools["pay"].(dispatch.Finder); ok {
					assert.Equal(t, dispatch.Unknown, f.Find(t.Context(), call).State)
				}
			}
		})
	}
	assert.Empty(t, real.asked)
}

func TestAnUpstreamIsHeldBackAsAnyOther(t *testing.T) {
	u := &Upstream{Answers: map[string]UpstreamAnswer{"pay": {Status: 200, Body: make([]byte, 70_000)}}}
	tools := Simulated(map[string]dispatch.Tool{"pay": one(t, payment(t, "https://pay.example.com", nil))}, u)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, dispatch.StatusUnavailable, tools["pay"].Run(cancelled, pay("o1")).Status)
	call := pay("o1")
	call.Sending.Fence = func() error { return errors.New("too late") }
	assert.Equal(t, dispatch.StatusTimeout, sent(t, tools, call).Status)
	assert.Empty(t, u.Effects())
	assert.Equal(t, dispatch.StatusInvalidResult, sent(t, tools, pay("o1")).Status)
	assert.Len(t, u.Effects(), 1)
}
