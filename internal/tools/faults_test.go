package tools

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// timedOut is a call that was not begun.
var timedOut = dispatch.Outcome{Status: dispatch.StatusTimeout, Retryable: true}

func TestReadFailures(t *testing.T) {
	f := &Faults{ReadFailures: 2}
	require.NoError(t, f.Check(lab(t)))
	tools := WithFaults(lab(t), f)

	// A document that does not exist is not found before anything is tried, so no fault is spent on it.
	assert.Equal(t, dispatch.StatusNotFound, run(t, tools, ReadDocument, `{"path":"/none.txt"}`).Status)
	assert.Equal(t, 2, f.ReadFailures)
	// Other tools are not touched.
	assert.Equal(t, dispatch.StatusOK, run(t, tools, Calculate, `{"op":"add","a":1,"b":1}`).Status)

	assert.Equal(t, timedOut, run(t, tools, ReadDocument, readLabels))
	// The counters outlive the tools, such as when a scenario configures them anew.
	tools = WithFaults(lab(t), f)
	assert.Equal(t, timedOut, run(t, tools, ReadDocument, readLabels))
	assert.Equal(t, dispatch.StatusOK, run(t, tools, ReadDocument, readLabels).Status)
	assert.Zero(t, f.ReadFailures)
}

func TestLoseDraftReply(t *testing.T) {
	f := &Faults{LoseDraftReply: true}
	require.NoError(t, f.Check(lab(t)))
	tools := WithFaults(lab(t), f)
	want := run(t, lab(t), RecordDraft, recordLabel)

	got := run(t, tools, RecordDraft, recordLabel)
	assert.Equal(t, dispatch.StatusOutcomeUnknown, got.Status)
	assert.True(t, got.Retryable)
	assert.True(t, got.Ran, "the draft was created, whatever the caller is told")
	assert.Equal(t, want.Record, got.Record)
	assert.Equal(t, want.Value, got.Value)
	assert.False(t, f.LoseDraftReply)

	assert.Equal(t, want, run(t, tools, RecordDraft, recordLabel))
}

func TestToolFaults(t *testing.T) {
	calls := map[string]string{ReadDocument: readLabels, Calculate: `{"op":"add","a":1,"b":1}`, RecordDraft: recordLabel}
	for tool, call := range calls {
		t.Run(tool, func(t *testing.T) {
			f := &Faults{Tools: []ToolFault{{tool, Timeout, 2}, {tool, Panic, 1}, {tool, LostReply, 1}}}
			require.NoError(t, f.Check(lab(t)))
			tools := WithFaults(lab(t), f)
			ok := run(t, lab(t), tool, call)
			require.Equal(t, dispatch.StatusOK, ok.Status)
			lost := ok
			lost.Status, lost.Retryable = dispatch.StatusOutcomeUnknown, true

			assert.Equal(t, timedOut, run(t, tools, tool, call))
			assert.Equal(t, timedOut, run(t, tools, tool, call))
			panicked := run(t, tools, tool, call)
			assert.Equal(t, dispatch.StatusInternalError, panicked.Status)
			assert.False(t, panicked.Ran)
			assert.Nil(t, panicked.Record)
			assert.Contains(t, panicked.Detail, "panic in "+tool)
			assert.Equal(t, lost, run(t, tools, tool, call))
			assert.Equal(t, ok, run(t, tools, tool, call))
		})
	}
}

// promising is a tool that does sums, with what its definition says beside its name.
func promising(t *testing.T, def dispatch.Definition) map[string]dispatch.Tool {
	t.Helper()
	def.Version, def.Description, def.Local, def.Effect, def.Schema = "v1", "Adds.", "arithmetic", dispatch.Pure, ijson.Raw(`{"type":"object"}`)
	tools, err := New(map[string]dispatch.Definition{"promising": def}, nil, nil)
	require.NoError(t, err)
	return tools
}

// A bad result is one that the tool's own promise refuses, of an operation that took place.
func TestBadResult(t *testing.T) {
	for _, row := range []struct{ name, output, want string }{
		{"a number is promised", `{"type":"integer"}`, `null`},
		{"anything but an object is promised", `{"type":["null","boolean","number","string","array"]}`, `{}`},
		{"whatever is short", `{}`, `"xxxx"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			sound := promising(t, dispatch.Definition{Output: ijson.Raw(row.output), Limits: dispatch.ToolLimits{OutputBytes: 4}})
			tools := WithFaults(sound, &Faults{Tools: []ToolFault{{"promising", BadResult, 1}}})
			bad := run(t, tools, "promising", `{"op":"multiply","a":7,"b":12}`)
			assert.Equal(t, dispatch.Outcome{Status: dispatch.StatusOK, Ran: true, Value: ijson.Raw(row.want)}, bad)
			assert.True(t, len(bad.Value) > 4 || len(tools["promising"].CheckOutput(bad.Value)) > 0)
			good := run(t, tools, "promising", `{"op":"multiply","a":7,"b":12}`)
			assert.Equal(t, `84`, string(good.Value))
			assert.Nil(t, tools["promising"].CheckOutput(good.Value))
		})
	}
}

// There is no reply to lose of an operation that did not take place.
func TestLostReplyOfAFailedOperation(t *testing.T) {
	failed := dispatch.Outcome{Status: dispatch.StatusInternalError, Detail: "broken"}
	f := &Faults{LoseDraftReply: true}
	assert.Equal(t, failed, f.around(local{definition: dispatch.Definition{Local: "record"}}, func() dispatch.Outcome { return failed })())
}

func TestFaultsLeaveTheGivenToolsAlone(t *testing.T) {
	tools := lab(t)
	WithFaults(tools, &Faults{ReadFailures: 1})
	assert.Equal(t, dispatch.StatusOK, run(t, tools, ReadDocument, readLabels).Status)
}

func TestFaultsOfConcurrentCalls(t *testing.T) {
	const failures, calls = 10, 50
	tools := WithFaults(lab(t), &Faults{ReadFailures: failures})
	call := callOf(tools[ReadDocument], arguments(t, readLabels))
	var timeouts atomic.Int64
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			if tools[ReadDocument].Run(t.Context(), call).Status == dispatch.StatusTimeout {
				timeouts.Add(1)
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, failures, timeouts.Load())
}

func TestFaultsCheck(t *testing.T) {
	only := func(names ...string) map[string]dispatch.Tool {
		tools := map[string]dispatch.Tool{}
		for _, name := range names {
			tools[name] = lab(t)[name]
		}
		return tools
	}
	one := func(tool string, fail Failure, times int) *Faults {
		return &Faults{Tools: []ToolFault{{tool, fail, times}}}
	}
	tests := []struct {
		name   string
		tools  map[string]dispatch.Tool
		faults *Faults
		want   string // empty for none
	}{
		{"none", lab(t), &Faults{}, ""},
		{"none of no tools", nil, &Faults{}, ""},
		{"negative", lab(t), &Faults{ReadFailures: -1}, "read_failures is -1"},
		{"no tool to read with", only(Calculate), &Faults{ReadFailures: 1}, "needs a tool that reads documents"},
		{"no tool to draft with", only(Calculate), &Faults{LoseDraftReply: true}, "needs a tool that creates records"},
		{"unknown tool", only(Calculate, ReadDocument), one("send_email", Timeout, 1),
			`no tool "send_email"; the tools are calculate, read_document`},
		{"unknown fault", lab(t), one(Calculate, "explode", 1), `no fault "explode"`},
		{"no fault", lab(t), one(Calculate, "", 1), `no fault ""`},
		{"unavailable", lab(t), one(Calculate, Unavailable, 1), "calculate: the fault unavailable comes with outside tools"},
		{"bad result", lab(t), one(ReadDocument, BadResult, 1), "read_document: the fault bad_result needs a tool that can break a promise"},
		{"bad result of a tool whose schema takes everything", promising(t, dispatch.Definition{Output: ijson.Raw(`{}`)}), one("promising", BadResult, 1),
			"promising: the fault bad_result needs a tool that can break a promise"},
		{"bad result of a tool with an output schema", promising(t, dispatch.Definition{Output: ijson.Raw(`{"type":"string"}`)}), one("promising", BadResult, 1), ""},
		{"bad result of a tool with an output limit", promising(t, dispatch.Definition{Limits: dispatch.ToolLimits{OutputBytes: 1}}), one("promising", BadResult, 1), ""},
		{"never", lab(t), one(Calculate, Timeout, 0), "times is 0"},
		{"a tool of another kind", map[string]dispatch.Tool{"panics": panics{}}, one("panics", Timeout, 1), "cannot be made to fail"},
		{"a guarded tool of another kind", map[string]dispatch.Tool{"panics": Guarded(panics{})}, one("panics", Timeout, 1), "cannot be made to fail"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.faults.Check(tt.tools)
			if tt.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, tt.want)
			}
		})
	}
}
