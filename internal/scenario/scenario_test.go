package scenario

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/strictyaml"
)

// A bare key is an event like any other; a step without one is not.
func TestBareEvent(t *testing.T) {
	list, err := Parse("a.yaml", []byte("name: a\nsteps:\n  - cancel:\n  - restart: {}\n  - propose: null\n"))
	require.NoError(t, err)
	var events []string
	for _, s := range list[0].Steps {
		event, err := s.event()
		require.NoError(t, err)
		events = append(events, event)
	}
	assert.Equal(t, []string{"cancel", "restart", "propose"}, events)

	_, err = Parse("a.yaml", []byte("name: a\nsteps: [{}]\n"))
	assert.ErrorContains(t, err, "step 1: the step does nothing")
}

// FuzzParse: whatever a file holds, Parse says what is wrong with it and where, or gives scenarios that can be begun, and
// the same ones when they are written in the other form.
func FuzzParse(f *testing.F) {
	// Short ones: the fuzzer would spend its time on making a whole file smaller.
	f.Add(".yaml", []byte("name: a\ncategory: b\ntask: {id: t, max_steps: 1}\nsteps:\n  - propose: {call_id: c}\n    expect: {status: ok}\nexpect: {actions: []}\n---\nname: b\nsteps: [{cancel: {}}]"))
	f.Add(".yaml", []byte("name: a\nsteps: [{retry: {proposal: 1, limit: 2}}, {reopen: {proposal: 1, reason: r}}]"))
	f.Add(".yaml", []byte("name: a\nsteps: [{propose: 1, cancel: {}}]"))
	f.Add(".yaml", []byte("name: a\nfaults: {tools: [{tool: calculate, fail: panic, times: 2}]}\nsteps: [{policy: p}, {configure: {now: 2026-01-01T00:00:00Z, tools: []}}]"))
	f.Add(".json", []byte(`{"name":"a","steps":[{"review":{"proposal":{},"lifetime":"3"}}]}`))
	f.Add(".yaml", []byte("name: \"\\e\\u202e\"\nsteps: [{propose: \"\\0\", expect: {a: [1e3, .5, -0]}}]"))
	f.Add(".yaml", []byte("name: a\nsteps: [{policy: p}, {configure: {now: 9999-01-01T00:00:00Z}}]"))
	f.Add(".jsonl", []byte("{\"name\":\"a\",\"steps\":[{\"restart\":null}]}\n\n"))
	f.Fuzz(func(t *testing.T, ending string, b []byte) {
		file := "fuzzed" + ending
		list, err := Parse(file, b)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), file+":"), "%v", err)
			return
		}
		require.NotEmpty(t, list, "neither a scenario nor an error")
		for _, s := range list {
			require.NoError(t, s.check())
		}
		if strings.HasSuffix(file, ".json") || strings.HasSuffix(file, ".jsonl") {
			return
		}
		documents, err := strictyaml.Documents(file, b)
		require.NoError(t, err)
		var lines [][]byte
		for _, d := range documents {
			lines = append(lines, d.JSON())
		}
		again, err := Parse("again.jsonl", bytes.Join(lines, []byte("\n")))
		require.NoError(t, err)
		require.Equal(t, list, again)
	})
}
