package tools

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// lab gives the three tools over the documents that govern ships.
func lab(t testing.TB) map[string]dispatch.Tool {
	t.Helper()
	b, err := os.ReadFile("../../data/documents.json")
	require.NoError(t, err)
	docs, err := ReadDocuments(b)
	require.NoError(t, err)
	tools, err := Lab(docs)
	require.NoError(t, err)
	return tools
}

// arguments gives a value's canonical form, as a tool gets it.
func arguments(t testing.TB, text string) ijson.Raw {
	t.Helper()
	raw, err := ijson.Canonical([]byte(text), ijson.DefaultLimits)
	require.NoError(t, err)
	return raw
}

func TestLabDefinitions(t *testing.T) {
	tools := lab(t)
	assert.Equal(t, []string{Calculate, ReadDocument, RecordDraft}, slices.Sorted(maps.Keys(tools)))

	tests := []struct {
		name string
		want dispatch.Definition
	}{
		{ReadDocument, dispatch.Definition{
			Local: "document", Effect: dispatch.Read, Approval: dispatch.ByRule, Scopes: []string{"read:document"}, Target: "/path", Resource: "readable",
		}},
		{Calculate, dispatch.Definition{
			Local: "arithmetic", Effect: dispatch.Pure, Approval: dispatch.ByRule, Scopes: []string{},
		}},
		{RecordDraft, dispatch.Definition{
			Local: "record", Effect: dispatch.Write, Approval: dispatch.Always, Scopes: []string{"write:draft"}, Target: "/draft_id", Key: "/idempotency_key",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tools[tt.name].Definition()
			assert.Equal(t, tt.name, got.Name)
			assert.NotEmpty(t, got.Version)
			assert.NotEmpty(t, got.Description)
			assert.Contains(t, string(got.Schema), `"additionalProperties":false`)
			got.Name, got.Version, got.Description, got.Schema = "", "", "", nil
			assert.Equal(t, tt.want, got)
		})
	}
}

// A digest that changes withdraws every approval that waits. If that is meant, raise the tool's version and write
// the new digest here.
func TestDefinitionDigests(t *testing.T) {
	want := map[string]string{
		ReadDocument: "5c6502d348ec20a60013060108d8197538169fb482f8936568196b57b8aa9b34",
		Calculate:    "1bfe389111eaff602294fa2ee4e7c11613e4d0298c7a92af04f123689fa3b423",
		RecordDraft:  "3ae25ef7a6fa7ac3c5c35578908976dcbca0f856e6f682414c14a6b0bb6db1e9",
	}
	got := map[string]string{}
	for name, tool := range lab(t) {
		digest, err := tool.Definition().Digest()
		require.NoError(t, err)
		got[name] = digest
	}
	assert.Equal(t, want, got)
}
