package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestShippedDefinitions(t *testing.T) {
	tools := newLab(t).tools
	want := map[string]dispatch.Definition{
		"read_document": {Local: "document", Effect: dispatch.Read, Approval: dispatch.ByRule, Scopes: []string{"read:document"},
			Target: "/path", Resource: "readable"},
		"calculate": {Local: "arithmetic", Effect: dispatch.Pure, Approval: dispatch.ByRule, Scopes: []string{}},
		"record_draft": {Local: "record", Effect: dispatch.Write, Approval: dispatch.Always, Scopes: []string{"write:draft"},
			Target: "/draft_id", Key: "/idempotency_key"},
	}
	assert.Len(t, tools, len(want))
	for name, w := range want {
		require.Contains(t, tools, name)
		got := tools[name].Definition()
		assert.Equal(t, name, got.Name)
		assert.NotEmpty(t, got.Version)
		assert.NotEmpty(t, got.Description)
		assert.Contains(t, string(got.Schema), `"additionalProperties":false`)
		got.Name, got.Version, got.Description, got.Schema = "", "", "", nil
		assert.Equal(t, w, got)
	}
}

// Every key of a configured tool reaches its definition: one that was lost on the way would be a limit that does not hold.
func TestEveryKeyOfADefinition(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
tools:
  file_note:
    version: v2
    description: Files a note.
    local: record
    schema: {type: object, properties: {note: {type: string}, key: {type: string}, trace: {}, pin: {}}, required: [note, key, pin]}
    output: {type: object, properties: {token: {}}, required: [token]}
    effect: write
    approval: by_rule
    scopes: [write:note]
    cost: 7
    target: /note
    key: /key
    drop: [/trace]
    sensitive: [/pin]
    sensitive_output: [/token]
    resource: writable
    labels: [clerical]
    limits: {output_bytes: 64}
`), 0o600))
	c, err := parseConfig(file)
	require.NoError(t, err)
	g, err := assemble(t.Context(), c)
	require.NoError(t, err)
	got := g.tools["file_note"].Definition()
	assert.Equal(t, dispatch.Definition{Name: "file_note", Version: "v2", Description: "Files a note.", Local: "record",
		Schema: ijson.Raw(`{"properties":{"key":{"type":"string"},"note":{"type":"string"},"pin":{},"trace":{}},"required":["note","key","pin"],"type":"object"}`),
		Output: ijson.Raw(`{"properties":{"token":{}},"required":["token"],"type":"object"}`), Effect: dispatch.Write, Approval: dispatch.ByRule, Scopes: []string{"write:note"},
		Target: "/note", Key: "/key", Drop: []string{"/trace"}, Sensitive: []string{"/pin"}, SensitiveOutput: []string{"/token"}, Resource: "writable", Cost: 7, Labels: []string{"clerical"},
		Limits: dispatch.ToolLimits{OutputBytes: 64}}, got)
	for i, v := 0, reflect.ValueOf(got); i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; name != "Outside" && name != "Recovery" { // which internal/tools has a test of
			assert.False(t, v.Field(i).IsZero(), "%s is not stated above", name)
		}
	}
}

// A digest that changes withdraws every approval that waits. If that is meant, raise the tool's version and write
// the new digest here.
func TestDefinitionDigests(t *testing.T) {
	want := map[string]string{
		"read_document": "5c6502d348ec20a60013060108d8197538169fb482f8936568196b57b8aa9b34",
		"calculate":     "1bfe389111eaff602294fa2ee4e7c11613e4d0298c7a92af04f123689fa3b423",
		"record_draft":  "3ae25ef7a6fa7ac3c5c35578908976dcbca0f856e6f682414c14a6b0bb6db1e9",
	}
	got := map[string]string{}
	for name, tool := range newLab(t).tools {
		digest, err := tool.Definition().Digest()
		require.NoError(t, err)
		got[name] = digest
	}
	assert.Equal(t, want, got)
}
