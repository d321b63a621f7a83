package tools

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// A tool that does not say what it can do to the world is a write, and a write asks for a person.
func TestDefaultsAreTheNarrowOnes(t *testing.T) {
	defs := definitions(t)
	draft := defs[RecordDraft]
	require.Empty(t, draft.Effect)
	require.Empty(t, draft.Approval)
	tools := lab(t)
	assert.Equal(t, dispatch.Write, tools[RecordDraft].Definition().Effect)
	assert.Equal(t, dispatch.Always, tools[RecordDraft].Definition().Approval)
	assert.Equal(t, dispatch.ByRule, tools[ReadDocument].Definition().Approval)
	assert.Equal(t, dispatch.ByRule, tools[Calculate].Definition().Approval)

	delete(defs, RecordDraft)
	read := defs[ReadDocument]
	read.Effect = ""
	defs[ReadDocument] = read
	_, err := New(defs, nil, nil)
	assert.ErrorContains(t, err, "tool read_document: effect: the operation document is a read, and the definition says write (left out, it is a write)")
}

func TestDefinitionsThatAreRefused(t *testing.T) {
	closed := ijson.Raw(`{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"},"in":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}},"required":["id","n","in"]}`)
	good := dispatch.Definition{Version: "v1", Description: "Files.", Local: "record", Schema: closed, Target: "/id"}
	read := dispatch.Definition{Version: "v1", Description: "Reads.", Local: "document", Schema: closed, Target: "/id", Effect: dispatch.Read}
	sum := dispatch.Definition{Version: "v1", Description: "Adds.", Local: "arithmetic", Schema: closed, Effect: dispatch.Pure}
	short := good
	short.Drop, short.Cost = []string{"/i"}, 1_000_000_000 // the name begins as the target's does
	secret := good
	secret.Sensitive, secret.Output, secret.SensitiveOutput = []string{"/n", "/in/id"}, ijson.Raw(`{"type":"object","properties":{"i":{}},"additionalProperties":false}`), []string{"/i"}
	_, err := New(map[string]dispatch.Definition{"file_note": good, "read_note": read, "sum": sum, "keep": secret, strings.Repeat("n", 64): short}, nil, nil)
	require.NoError(t, err)

	for name, c := range map[string]struct {
		edit func(*dispatch.Definition)
		want string // the field, and a part of the problem
	}{
		"no version":                  {func(d *dispatch.Definition) { d.Version = "" }, "version: a definition needs a version"},
		"a version with a space":      {func(d *dispatch.Definition) { d.Version = "v 1" }, "version: "},
		"no description":              {func(d *dispatch.Definition) { d.Description = " \n" }, "description: a definition needs a description"},
		"no operation":                {func(d *dispatch.Definition) { d.Local = "" }, `local: it is missing; say what the tool runs: arithmetic, document or record`},
		"an unknown operation":        {func(d *dispatch.Definition) { d.Local = "Record" }, `local: "Record" is no operation; did you mean record?`},
		"another effect":              {func(d *dispatch.Definition) { d.Effect = dispatch.Read }, "effect: the operation record is a write, and the definition says read"},
		"an unknown effect":           {func(d *dispatch.Definition) { d.Effect = "Write" }, `effect: "Write" is no effect`},
		"an unknown approval":         {func(d *dispatch.Definition) { d.Approval = "never" }, `approval: "never" says not when a person is asked; there is always and by_rule`},
		"no target":                   {func(d *dispatch.Definition) { d.Target = "" }, "target: the operation record needs a target"},
		"a target that is no pointer": {func(d *dispatch.Definition) { d.Target = "id" }, `target: "id" is no JSON Pointer to an argument`},
		"a target with a bad escape":  {func(d *dispatch.Definition) { d.Target = "/i~2d" }, "is no JSON Pointer"},
		"a target of everything":      {func(d *dispatch.Definition) { d.Target = "/" }, "is no JSON Pointer"},
		"a misspelt target":           {func(d *dispatch.Definition) { d.Target = "/Id" }, "target: the schema has no property /Id; did you mean id?"},
		"a target that is a number":   {func(d *dispatch.Definition) { d.Target = "/n" }, "target: the schema must say that /n is of type string"},
		"a target that may be missing": {func(d *dispatch.Definition) {
			d.Schema = ijson.Raw(`{"type":"object","properties":{"id":{"type":"string"}}}`)
		}, "target: the schema does not require /id, so a call could come without it"},
		"a target inside what may be missing": {func(d *dispatch.Definition) {
			d.Target = "/in/id"
			d.Schema = ijson.Raw(`{"type":"object","properties":{"in":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}}`)
		}, "target: the schema does not require /in/id"},
		"a target of any type": {func(d *dispatch.Definition) {
			d.Schema = ijson.Raw(`{"type":"object","properties":{"id":{}},"required":["id"]}`)
		}, "target: the schema must say that /id is of type string"},
		"a document without a target": {func(d *dispatch.Definition) { *d = read; d.Target = "" }, "target: the operation document needs a target"},
		"a resource without a target": {func(d *dispatch.Definition) { *d = sum; d.Resource = "readable" }, "resource: a resource guards the target, and the definition points at none"},
		"too great a cost":            {func(d *dispatch.Definition) { d.Cost = 1_000_000_001 }, "cost: a cost is 0 to 1000000000"},
		"a drop of the key":           {func(d *dispatch.Definition) { d.Key, d.Drop = "/in/id", []string{"/in/id"} }, "drop/0: it would take away the target or the key"},
		"a target inside what need be no object": {func(d *dispatch.Definition) {
			d.Target = "/in/id"
			d.Schema = ijson.Raw(`{"type":"object","properties":{"in":{"properties":{"id":{"type":"string"}},"required":["id"]}},"required":["in"]}`)
		}, "target: the schema must say that what is around /in/id is of type object"},
		"a misspelt key":                    {func(d *dispatch.Definition) { d.Key = "/idempotency_key" }, "key: the schema has no property /idempotency_key"},
		"the target as the key":             {func(d *dispatch.Definition) { d.Key = "/id" }, "key: target and key are the same argument"},
		"an unknown resource":               {func(d *dispatch.Definition) { d.Resource = "Writable" }, `resource: "Writable" is no kind of resource`},
		"a write that is read":              {func(d *dispatch.Definition) { d.Resource = "readable" }, "resource: a write's target is guarded by writable sets"},
		"a negative cost":                   {func(d *dispatch.Definition) { d.Cost = -1 }, "cost: a cost is 0 to 1000000000"},
		"a negative limit":                  {func(d *dispatch.Definition) { d.Limits.OutputBytes = -1 }, "limits/output_bytes: "},
		"a scope twice":                     {func(d *dispatch.Definition) { d.Scopes = []string{"a", "A", "a"} }, "scopes/2: a is named twice"},
		"an empty scope":                    {func(d *dispatch.Definition) { d.Scopes = []string{""} }, "scopes/0: it is empty"},
		"a label that hides":                {func(d *dispatch.Definition) { d.Labels = []string{"x", "private\u200b"} }, "labels/1: it is empty, or holds what cannot be seen"},
		"a drop that is required":           {func(d *dispatch.Definition) { d.Drop = []string{"/n"} }, "drop/0: the schema requires the argument"},
		"a drop inside what is required":    {func(d *dispatch.Definition) { d.Drop = []string{"/in/id"} }, "drop/0: the schema requires the argument"},
		"a drop of the target":              {func(d *dispatch.Definition) { d.Drop = []string{"/id"} }, "drop/0: it would take away the target or the key"},
		"a drop around the target":          {func(d *dispatch.Definition) { d.Target, d.Drop = "/in/id", []string{"/in"} }, "drop/0: it would take away the target or the key"},
		"a drop that is no pointer":         {func(d *dispatch.Definition) { d.Drop = []string{"timeout"} }, `drop/0: "timeout" is no JSON Pointer`},
		"a drop twice":                      {func(d *dispatch.Definition) { d.Drop = []string{"/t", "/t"} }, "drop/1: /t is named twice"},
		"a sensitive target":                {func(d *dispatch.Definition) { d.Sensitive = []string{"/id"} }, "sensitive/0: the target is what rules, records and people know the call by"},
		"a target inside what is sensitive": {func(d *dispatch.Definition) { d.Target, d.Sensitive = "/in/id", []string{"/in"} }, "sensitive/0: the target is what"},
		"a sensitive key":                   {func(d *dispatch.Definition) { d.Key, d.Sensitive = "/in/id", []string{"/n", "/in/id"} }, "sensitive/1: the key is what operations are known by"},
		"a key inside what is sensitive":    {func(d *dispatch.Definition) { d.Key, d.Sensitive = "/in/id", []string{"/in"} }, "sensitive/0: the key is what"},
		"what is sensitive and dropped":     {func(d *dispatch.Definition) { d.Drop, d.Sensitive = []string{"/n/t"}, []string{"/n"} }, "sensitive/0: it is dropped"},
		"what is sensitive inside a drop":   {func(d *dispatch.Definition) { d.Drop, d.Sensitive = []string{"/t"}, []string{"/t/u"} }, "sensitive/0: it is dropped"},
		"what is sensitive twice":           {func(d *dispatch.Definition) { d.Sensitive = []string{"/n", "/n"} }, "sensitive/1: /n is named twice"},
		"what is sensitive in what is":      {func(d *dispatch.Definition) { d.Sensitive = []string{"/in", "/in/id"} }, "sensitive/1: /in/id is named twice, or lies in another"},
		"what is sensitive around what is":  {func(d *dispatch.Definition) { d.Sensitive = []string{"/in/id", "/in"} }, "sensitive/1: /in is named twice, or lies in another"},
		"what is sensitive and no pointer":  {func(d *dispatch.Definition) { d.Sensitive = []string{"n"} }, `sensitive/0: "n" is no JSON Pointer`},
		"sensitive arguments":               {func(d *dispatch.Definition) { d.Sensitive = []string{""} }, `sensitive/0: "" is no JSON Pointer`},
		"what is sensitive and misspelt":    {func(d *dispatch.Definition) { d.Sensitive = []string{"/N"} }, "sensitive/0: the schema has no property /N; did you mean n?"},
		"what is sensitive in an array":     {func(d *dispatch.Definition) { d.Sensitive = []string{"/n/0"} }, "sensitive/0: the schema must say that what is around /n/0 is of type object"},
		"what is sensitive and may be mistyped": {func(d *dispatch.Definition) {
			d.Schema, d.Sensitive = ijson.Raw(`{"type":"object","properties":{"id":{"type":"string"},"pin":{}},"required":["id"]}`), []string{"/pin"}
		}, "sensitive/0: it could come under a mistyped name"},
		"what is sensitive and may match a pattern": {func(d *dispatch.Definition) {
			d.Schema, d.Sensitive = ijson.Raw(`{"type":"object","properties":{"id":{"type":"string"},"pin":{}},"required":["id"],"additionalProperties":false,"patternProperties":{"^p":{}}}`), []string{"/pin"}
		}, "sensitive/0: it could come under a mistyped name"},
		"sensitive output and no schema": {func(d *dispatch.Definition) { d.SensitiveOutput = []string{"/id"} }, "sensitive_output/0: add output"},
		"sensitive output that is no object": {func(d *dispatch.Definition) {
			d.Output, d.SensitiveOutput = ijson.Raw(`{"properties":{"id":{}},"required":["id"]}`), []string{"/id"}
		}, "sensitive_output/0: output must say that what the tool gives is of type object"},
		"sensitive output and misspelt":       {func(d *dispatch.Definition) { d.Output, d.SensitiveOutput = closed, []string{"/ids"} }, "sensitive_output/0: the schema has no property /ids; did you mean id?"},
		"sensitive output twice":              {func(d *dispatch.Definition) { d.Output, d.SensitiveOutput = closed, []string{"/in/id", "/in"} }, "sensitive_output/1: /in is named twice"},
		"sensitive output that is no pointer": {func(d *dispatch.Definition) { d.Output, d.SensitiveOutput = closed, []string{"/"} }, `sensitive_output/0: "/" is no JSON Pointer`},
		"sensitive output under a mistyped name": {func(d *dispatch.Definition) {
			d.Output, d.SensitiveOutput = ijson.Raw(`{"type":"object","properties":{"t":{}}}`), []string{"/t"}
		}, "sensitive_output/0: it could come under a mistyped name"},
		"a schema that is none": {func(d *dispatch.Definition) { d.Schema = ijson.Raw(`{"type":"integral"}`) }, "schema: "},
		"a schema of a file":    {func(d *dispatch.Definition) { d.Schema = ijson.Raw(`{"$ref":"file:///etc/passwd"}`) }, "schema: "},
	} {
		t.Run(name, func(t *testing.T) {
			def := good
			c.edit(&def)
			made, err := New(map[string]dispatch.Definition{"file_note": def, "read_note": read}, nil, nil)
			require.Nil(t, made)
			require.IsType(t, DefinitionErrors{}, err)
			assert.ErrorContains(t, err, "tool file_note: ")
			assert.ErrorContains(t, err, c.want)
		})
	}

	for _, name := range []string{"", "a b", "a\x00", "-a", "delete_file ", "./delete_file", "%64elete", strings.Repeat("n", 65)} {
		_, err := New(map[string]dispatch.Definition{name: good}, nil, nil)
		assert.ErrorContains(t, err, "a tool's name is", "%q", name)
	}
	_, err = New(map[string]dispatch.Definition{"read_note": {Version: "v1", Description: "x", Local: "document", Schema: closed, Target: "/id",
		Effect: dispatch.Read, Resource: "writable", Key: "/n"}}, nil, nil)
	assert.ErrorContains(t, err, "resource: a write's target is guarded by writable sets, and any other by readable ones")
	assert.ErrorContains(t, err, "key: only a write has an idempotency key")
}

// A misspelt keyword of a schema narrows nothing, and the standard lets it pass.
func TestMisspeltKeywordsAreRefused(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","additionalproperties":false}`, "schema/additionalproperties: additionalproperties is no keyword of JSON Schema, and would hold nothing back; did you mean additionalProperties?"},
		{`{"properties":{"a":{"maxLenght":3}}}`, "schema/properties/a/maxLenght: maxLenght is no keyword"},
		{`{"allOf":[{},{"requird":["a"]}]}`, "schema/allOf/1/requird: requird is no keyword"},
		{`{"$defs":{"x/y":{"items":{"enumm":[1]}}}}`, "schema/$defs/x~1y/items/enumm: enumm is no keyword"},
		{`{"$schema":"https://json-schema.org/draft/2020-12/meta/core","type":"object"}`, "schema/$schema: another dialect could know fewer keywords"},
		{`{"$defs":{"x":{"$id":"urn:x","$schema":"https://json-schema.org/draft/2020-12/schema"}}}`, "schema/$defs/x/$schema: another dialect"},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, ""},
		{`{"unevaluatedProperties":{"patern":"a"}}`, "schema/unevaluatedProperties/patern: patern is no keyword"},
		{`{"properties":{"maxLenght":{"type":"string"}},"x-maxLenght":1,"example":1,"description":"maxLenght","const":{"maxLenght":1},"default":{"requird":1},"examples":[{"requird":1}]}`, ""},
	} {
		_, err := New(map[string]dispatch.Definition{"sum": {Version: "v1", Description: "Adds.", Local: "arithmetic", Effect: dispatch.Pure, Schema: ijson.Raw(c.schema)}}, nil, nil)
		if c.want == "" {
			assert.NoError(t, err, c.schema)
		} else {
			assert.ErrorContains(t, err, c.want)
		}
		_, err = New(map[string]dispatch.Definition{"sum": {Version: "v1", Description: "Adds.", Local: "arithmetic", Effect: dispatch.Pure, Schema: ijson.Raw(`{}`), Output: ijson.Raw(c.schema)}}, nil, nil)
		assert.Equal(t, c.want == "", err == nil, c.schema)
	}
}

// What has no order changes no digest, however it is written.
func TestOrderChangesNoDigest(t *testing.T) {
	digest := func(def dispatch.Definition) string {
		tools, err := New(map[string]dispatch.Definition{"sum": def}, nil, nil)
		require.NoError(t, err)
		d, err := tools["sum"].Definition().Digest()
		require.NoError(t, err)
		return d
	}
	one := dispatch.Definition{Version: "v1", Description: "Adds.", Local: "arithmetic", Effect: dispatch.Pure, Schema: ijson.Raw(`{"type":"object"}`),
		Scopes: []string{"a", "b"}, Labels: []string{"x", "y"}, Drop: []string{"/p", "/q"}}
	other := one
	other.Scopes, other.Labels, other.Drop = []string{"b", "a"}, []string{"y", "x"}, []string{"/q", "/p"}
	other.Schema = ijson.Raw(" {\"type\" : \"object\"}\n")
	assert.Equal(t, digest(one), digest(other))
	other.Scopes = []string{"b"}
	assert.NotEqual(t, digest(one), digest(other))
}

// Everything that is wrong is said at once, in the order of the names.
func TestAllThatIsWrongIsSaid(t *testing.T) {
	_, err := New(map[string]dispatch.Definition{"b": {}, "a": {Cost: -1}}, nil, nil)
	wrong, ok := err.(DefinitionErrors)
	require.True(t, ok)
	var tools []string
	for _, w := range wrong {
		tools = append(tools, w.Tool)
	}
	assert.True(t, slices.IsSorted(tools))
	assert.Contains(t, tools, "b")
	assert.Greater(t, len(wrong), 6)
}

// Any number of tools can run one operation, each under its own contract, with names that are told apart by their case.
func TestToolsOfOneOperation(t *testing.T) {
	schema := ijson.Raw(`{"type":"object","properties":{"note":{"type":"object","properties":{"a/b":{"type":"string"}},"required":["a/b"]},"text":{"type":"string"},"key":{"type":"string"}},"required":["note","text","key"],"additionalProperties":false}`)
	note := dispatch.Definition{Version: "v1", Description: "Files.", Local: "record", Schema: schema, Target: "/note/a~1b", Key: "/key"}
	loose := note
	loose.Approval = dispatch.ByRule
	tools, err := New(map[string]dispatch.Definition{"file_note": note, "File_Note": loose}, nil, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"File_Note", "file_note"}, slices.Sorted(maps.Keys(tools)))
	assert.Equal(t, dispatch.Always, tools["file_note"].Definition().Approval)
	assert.Equal(t, dispatch.ByRule, tools["File_Note"].Definition().Approval)

	got := run(t, tools, "file_note", `{"note":{"a/b":"n-1"},"text":"hello","key":"k1"}`)
	assert.Equal(t, dispatch.StatusOK, got.Status)
	assert.JSONEq(t, `{"a/b":"n-1"}`, string(got.Value))
	assert.JSONEq(t, `{"note":{},"text":"hello"}`, string(got.Record))
}

// A definition can take less than its operation does, and never more.
func TestOperationsKeepTheirOwnNeeds(t *testing.T) {
	wide := dispatch.Definition{Version: "v1", Description: "Adds.", Local: "arithmetic", Schema: ijson.Raw(`{"type":"object"}`), Effect: dispatch.Pure}
	tools, err := New(map[string]dispatch.Definition{"sum": wide}, nil, nil)
	require.NoError(t, err)
	for _, text := range []string{`{}`, `{"op":"divide","a":1,"b":0}`, `{"op":"add","a":1e15,"b":0}`, `{"op":"add","a":1,"b":1,"c":1}`, `{"op":"add","a":0.5,"b":1}`} {
		assert.NotEmpty(t, tools["sum"].Check(arguments(t, text)), text)
	}
	assert.Equal(t, "1000000000000", string(run(t, tools, "sum", `{"op":"multiply","a":1000000,"b":1000000}`).Value))
}
