// Package tools holds the tools that can be run, and runs them. It never decides whether a call is allowed.
//
// Nothing here reaches a file, a process or a network. No tool keeps an effect of its own: a write gives the
// record to create as a value, and the store commits it together with the decision.
package tools

import (
	"embed"
	"fmt"
	"maps"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

//go:embed schemas/*.json
var schemas embed.FS

// Lab gives the three tools of the Lab by name, reading from docs.
func Lab(docs Documents) (map[string]dispatch.Tool, error) {
	docs = maps.Clone(docs)
	tools := map[string]dispatch.Tool{}
	for _, t := range []local{readDocument(docs), calculate(), recordDraft()} {
		name := t.definition.Name
		source, err := schemas.ReadFile("schemas/" + name + ".json")
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
		// The canonical bytes are advertised and compiled alike, so that how the file is laid out changes nothing.
		if t.definition.Schema, err = ijson.Canonical(source, ijson.DefaultLimits); err != nil {
			return nil, fmt.Errorf("tool %s: schema: %w", name, err)
		}
		if err = t.compile(); err != nil {
			return nil, err
		}
		tools[name] = Guarded(t)
	}
	if err := docs.reachable(tools[ReadDocument]); err != nil {
		return nil, err
	}
	return tools, nil
}
