package tools

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Three tools, one of each operation, as the built-in configuration defines them.
const (
	ReadDocument = "read_document"
	Calculate    = "calculate"
	RecordDraft  = "record_draft"
)

func definitions(t testing.TB) map[string]dispatch.Definition {
	t.Helper()
	schema := func(name string) ijson.Raw {
		b, err := os.ReadFile("../../schemas/" + name + ".json")
		require.NoError(t, err)
		return b
	}
	return map[string]dispatch.Definition{
		ReadDocument: {Version: "v1", Description: "Reads.", Local: "document", Schema: schema(ReadDocument), Effect: dispatch.Read,
			Scopes: []string{"read:document"}, Target: "/path", Resource: "readable"},
		Calculate: {Version: "v1", Description: "Adds.", Local: "arithmetic", Schema: schema(Calculate), Effect: dispatch.Pure},
		RecordDraft: {Version: "v1", Description: "Drafts.", Local: "record", Schema: schema(RecordDraft),
			Scopes: []string{"write:draft"}, Target: "/draft_id", Key: "/idempotency_key"},
	}
}

func documents(t testing.TB) Documents {
	t.Helper()
	b, err := os.ReadFile("../../data/documents.json")
	require.NoError(t, err)
	docs, err := ReadDocuments(b)
	require.NoError(t, err)
	return docs
}

// lab gives the three tools over the documents that govern ships.
func lab(t testing.TB) map[string]dispatch.Tool {
	t.Helper()
	tools, err := New(definitions(t), documents(t), nil)
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
