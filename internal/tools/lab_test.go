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
			Effect: dispatch.Read, Approval: dispatch.ByRule, Scopes: []string{"read:document"}, Target: "/path", Resource: "readable",
		}},
		{Calculate, dispatch.Definition{
			Effect: dispatch.Pure, Approval: dispatch.ByRule, Scopes: []string{},
		}},
		{RecordDraft, dispatch.Definition{
			Effect: dispatch.Write, Approval: dispatch.Always, Scopes: []string{"write:draft"}, Target: "/draft_id", Key: "/idempotency_key",
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
		ReadDocument: "2b8b3b529084cd4b9b64b18d3c48eb44bcc29cb67fb4b573adc33571df4d94a9",
		Calculate:    "358200c38d585a07fe85b14958034129837e847b4c57275405544fd8387c35af",
		RecordDraft:  "e0601372d72ebc2a310c4b8a7540f4f69947a2d22525023f84c790e5116e8366",
	}
	got := map[string]string{}
	for name, tool := range lab(t) {
		digest, err := tool.Definition().Digest()
		require.NoError(t, err)
		got[name] = digest
	}
	assert.Equal(t, want, got)
}
