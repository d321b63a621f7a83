package journal

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// EventV1 is OPA's own type of an event, as far as JSON shows it. A copy, since the package that has it would bring OPA's
// server with it; TestEventV1IsOPAs compares the two.
type EventV1 struct {
	Labels              map[string]string       `json:"labels"`
	DecisionID          string                  `json:"decision_id"`
	BatchDecisionID     string                  `json:"batch_decision_id,omitempty"`
	TraceID             string                  `json:"trace_id,omitempty"`
	SpanID              string                  `json:"span_id,omitempty"`
	Revision            string                  `json:"revision,omitempty"`
	Bundles             map[string]BundleInfoV1 `json:"bundles,omitempty"`
	Path                string                  `json:"path,omitempty"`
	Query               string                  `json:"query,omitempty"`
	Input               *any                    `json:"input,omitempty"`
	Result              *any                    `json:"result,omitempty"`
	IntermediateResults map[string]any          `json:"intermediate_results,omitempty"`
	MappedResult        *any                    `json:"mapped_result,omitempty"`
	NDBuiltinCache      *any                    `json:"nd_builtin_cache,omitempty"`
	Erased              []string                `json:"erased,omitempty"`
	Masked              []string                `json:"masked,omitempty"`
	Error               error                   `json:"error,omitempty"`
	RequestedBy         string                  `json:"requested_by,omitempty"`
	Timestamp           time.Time               `json:"timestamp"`
	Metrics             map[string]any          `json:"metrics,omitempty"`
	RequestID           uint64                  `json:"req_id,omitempty"`
	RuleLabels          []map[string]any        `json:"rule_labels,omitempty"`
	RequestContext      *RequestContext         `json:"request_context,omitempty"`
	Custom              map[string]any          `json:"custom,omitempty"`
}

type BundleInfoV1 struct {
	Revision string `json:"revision,omitempty"`
}

type RequestContext struct {
	HTTPRequest *HTTPRequestContext `json:"http,omitempty"`
}

type HTTPRequestContext struct {
	Headers map[string][]string `json:"headers,omitempty"`
}

func TestEventV1IsOPAs(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/open-policy-agent/opa").Output()
	require.NoError(t, err)
	theirs := structs(t, filepath.Join(strings.TrimSpace(string(dir)), "v1", "plugins", "logs", "plugin.go"))
	ours := structs(t, "opalog_test.go")
	for _, name := range []string{"EventV1", "BundleInfoV1", "RequestContext", "HTTPRequestContext"} {
		require.NotEmpty(t, ours[name])
		assert.Equal(t, theirs[name], ours[name], name)
	}
}

// structs gives the exported fields of each struct in a file, as they are written.
func structs(t *testing.T, file string) map[string][]string {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, 0)
	require.NoError(t, err)
	out := map[string][]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				if len(field.Names) != 1 || !field.Names[0].IsExported() {
					continue
				}
				var kind bytes.Buffer
				require.NoError(t, format.Node(&kind, set, field.Type))
				out[spec.Name.Name] = append(out[spec.Name.Name], field.Names[0].Name+" "+kind.String()+" "+field.Tag.Value)
			}
		}
		return true
	})
	return out
}

// eventOf makes the event of a decision and reads it as strictly as its type allows.
func eventOf(t *testing.T, l *OPALog, e dispatch.Entry) (raw ijson.Raw, event EventV1) {
	t.Helper()
	made, err := l.Event(t.Context(), e)
	require.NoError(t, err)
	raw, err = ijson.Marshal(made)
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&event))
	return raw, event
}

func TestOPAEvent(t *testing.T) {
	log := &memoryLog{}
	l := NewOPALog(log, record{}, "v1.2.3")
	log.append(1) // a follower may be there before the first entry
	e := specimens(t)[dispatch.KindDecision]
	raw, event := eventOf(t, l, e)
	assert.Equal(t, "policy/decision", event.Path)
	assert.Equal(t, "learner", event.RequestedBy)
	assert.Equal(t, map[string]BundleInfoV1{"govern": {Revision: "v1"}}, event.Bundles)
	assert.True(t, time.Date(2026, 3, 1, 12, 0, 0, 500e6, time.UTC).Equal(event.Timestamp))
	assert.Equal(t, map[string]string{"app": "govern", "version": "v1.2.3", "id": event.Labels["id"]}, event.Labels)
	for name, pointer := range map[string]string{"input": "/input", "result": "/decision"} {
		want, ok := ijson.Lookup(e.Body, pointer)
		require.True(t, ok)
		got, ok := ijson.Lookup(raw, "/"+name)
		require.True(t, ok)
		assert.Equal(t, string(want), string(got), name)
	}
	assert.Equal(t, map[string]any{"tenant": "default", "task": "labels-1", "step": 2.0, "call_id": "c1", "door": "", "status": "timeout", "input_digest": ""}, event.Custom)
}

// The ids are UUIDs, the same every time, and another for each decision and for each log.
func TestOPADecisionIDs(t *testing.T) {
	log := (&memoryLog{}).append(1)
	other := &memoryLog{entries: []dispatch.Entry{{Body: ijson.Raw(`{"another":1}`)}}}
	regrow(other)
	form := `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`
	seen := map[string]bool{}
	id := func(log *memoryLog, tenant, task string, step, n int) string {
		l := NewOPALog(log, record{}, "")
		h := dispatch.EntryHeader{Kind: dispatch.KindDecision, Tenant: tenant, Task: task, Step: step, N: n, Time: "2026-03-01T12:00:00Z"}
		_, event := eventOf(t, l, entryOf(t, h, dispatch.DecisionEntry{EntryHeader: h, Input: ijson.Raw("{}")}))
		require.Regexp(t, form, event.DecisionID)
		require.Regexp(t, form, event.Labels["id"])
		return event.DecisionID
	}
	for _, log := range []*memoryLog{log, other} {
		for _, tenant := range []string{"default", "another"} {
			for _, task := range []string{"labels-1", "labels-11"} {
				for step := range 12 {
					for n := range 2 {
						one := id(log, tenant, task, step, n)
						require.False(t, seen[one])
						seen[one] = true
						require.Equal(t, one, id(log, tenant, task, step, n))
					}
				}
			}
		}
		log.append(3)
	}
	require.True(t, seen[id(log, "default", "labels-1", 1, 1)], "the log has grown, and it is the same decision")
}
