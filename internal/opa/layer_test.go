package opa

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// told is METADATA for a contribution of that code.
func told(code string) string {
	return "# METADATA\n# custom:\n#   code: " + code + "\n#   message: not now\n#   remedy: wait\n"
}

const closed = "deny contains {\"code\": \"closed\", \"message\": \"not now\", \"status\": \"outside_window\"} if input.now.epoch < 0\n"

// hours is a layer that is as it should be.
var hours = files{"site.rego": "package site\n\n" + told("closed") + closed}

// layer reads files as a layer from a new folder.
func layer(tb testing.TB, name Layer, f files) (Source, error) {
	tb.Helper()
	return ReadLayer(name, []string{f.write(tb)})
}

// asking is a policy that asks its layers.
var asking = files{"a.rego": "package policy\n\ndecision := _asked\n\n_asked contains data.org.forbid\n\n_asked contains data.org.deny\n\n_asked contains data.org.require_approval\n\n" +
	"_asked contains data.site.forbid\n\n_asked contains data.site.deny\n\n_asked contains data.site.require_approval\n"}

// over loads a policy that asks its layers.
func over(tb testing.TB, layers ...Source) (*Policy, error) {
	tb.Helper()
	return New(tb.Context(), Options{Source: mustSource(tb, asking).With(layers...)})
}

// A layer holds three sets and nothing else. Whatever the core would pass over in silence is refused with its place.
func TestLayerRefuses(t *testing.T) {
	helper := "package site.lib\n\nopen := true\n"
	for name, c := range map[string]struct {
		files files
		want  string
	}{
		"the core's package":        {files{"a.rego": "package policy\n\n_x := 1\n"}, "/a.rego:1: the file is package policy, in the layer site; make it package site"},
		"the other layer":           {files{"a.rego": "package org\n\n" + closed}, "the file is package org, in the layer site"},
		"a package that begins so":  {files{"a.rego": "package site_x\n\nx := 1\n"}, "the file is package site_x, in the layer site"},
		"another case":              {files{"a.rego": "package Site\n\nx := 1\n"}, "the file is package Site, in the layer site"},
		"below, and no library":     {files{"a.rego": "package site.hours\n\nx := 1\n"}, "or package site.lib for helpers"},
		"a library that begins so":  {files{"a.rego": "package site.library\n\nx := 1\n"}, "the file is package site.library"},
		"a value":                   {files{"a.rego": "package site\n\ndeny := \"no\"\n"}, "/a.rego:3: deny is a single value, and must be a set; write deny contains {"},
		"true":                      {files{"a.rego": "package site\n\ndeny if input.now.epoch < 0\n"}, "deny is a single value"},
		"an object in parts":        {files{"a.rego": "package site\n\ndeny[x] := 1 if some x in [\"a\"]\n"}, "deny is a part of an object"},
		"a set below":               {files{"a.rego": "package site\n\ndeny.now contains 1\n"}, "deny is a part of an object"},
		"a function":                {files{"a.rego": "package site\n\ndeny(x) := x\n"}, "deny is a function"},
		"a default":                 {files{"a.rego": "package site\n\ndefault forbid := true\n"}, "forbid is a default"},
		"a misspelt name":           {files{"a.rego": "package site\n\ndenny contains {} if true\n"}, "/a.rego:3: package site has the rule denny, and may have forbid, deny and require_approval alone; did you mean deny? Helpers belong in package site.lib"},
		"a helper":                  {files{"a.rego": "package site\n\nweekend := true\n"}, "package site has the rule weekend, and may have forbid, deny and require_approval alone; helpers belong in package site.lib"},
		"an allowance":              {files{"a.rego": "package site\n\nallow contains {} if true\n"}, "package site has the rule allow"},
		"no METADATA":               {files{"a.rego": "package site\n\n" + closed}, "/a.rego:3: deny has no METADATA that says what it means"},
		"METADATA without remedy":   {files{"a.rego": "package site\n\n# METADATA\n# custom:\n#   code: closed\n#   message: m\n" + closed}, "custom.remedy must say something"},
		"another effect":            {files{"a.rego": "package site\n\n# METADATA\n# custom:\n#   code: closed\n#   message: m\n#   remedy: r\n#   effect: allow\n" + closed}, `custom.effect is "allow", and the rule's name says "deny"`},
		"another code":              {files{"a.rego": "package site\n\n" + told("shut") + closed}, `custom.code is "shut", and the member's code "closed"; make them one`},
		"another status":            {files{"a.rego": "package site\n\n" + told("closed") + "#   status: shut\n" + closed}, `custom.status is "shut", and the member's status "outside_window"; make them one`},
		"a code twice":              {files{"a.rego": "package site\n\n" + told("closed") + closed + "\n" + told("closed") + closed}, "the code closed is taken by the rule at"},
		"no status":                 {files{"a.rego": "package site\n\n" + told("c") + "deny contains {\"code\": \"c\", \"message\": \"m\"} if true\n"}, `a member of deny lacks "status"; it needs code, message, status`},
		"no message":                {files{"a.rego": "package site\n\n" + told("c") + "require_approval contains {\"code\": \"c\"} if true\n"}, `a member of require_approval lacks "message"`},
		"a misspelt member":         {files{"a.rego": "package site\n\n" + told("c") + "deny contains {\n\t\"code\": \"c\",\n\t\"mesage\": \"m\",\n\t\"message\": \"m\",\n\t\"status\": \"s\",\n} if true\n"}, "/a.rego:10: a member of deny has no \"mesage\"; did you mean message?"},
		"through a variable":        {files{"a.rego": "package site\n\n" + told("c") + "deny contains m if {\n\tm := {\"code\": \"c\", \"mesage\": \"m\", \"message\": \"m\", \"status\": \"s\"}\n}\n"}, "did you mean message?"},
		"terms in a denial":         {files{"a.rego": "package site\n\n" + told("c") + "deny contains {\"code\": \"c\", \"message\": \"m\", \"status\": \"s\", \"approval\": {}} if true\n"}, `a member of deny has no "approval"`},
		"a misspelt term (B104)":    {files{"a.rego": "package site\n\n" + told("c") + "require_approval contains {\"code\": \"c\", \"message\": \"m\", \"approval\": {\"aprovers\": 2}} if true\n"}, `approval has no "aprovers"; did you mean approvers?`},
		"a misspelt stage (B104)":   {files{"a.rego": "package site\n\n" + told("c") + "require_approval contains {\"code\": \"c\", \"message\": \"m\", \"approval\": {\"stages\": [{\"name\": \"a\", \"role\": [\"b\"]}]}} if true\n"}, `a stage has no "role"; did you mean roles?`},
		"a code that is no word":    {files{"a.rego": "package site\n\n" + told("Not-Now") + "deny contains {\"code\": \"Not-Now\", \"message\": \"m\", \"status\": \"s\"} if true\n"}, `custom.code is "Not-Now"; it must be a word in lower case`},
		"a status that is no word":  {files{"a.rego": "package site\n\n" + told("c") + "deny contains {\"code\": \"c\", \"message\": \"m\", \"status\": \"Closed\"} if true\n"}, `the status is "Closed"; it must be a word in lower case`},
		"a status of execution":     {files{"a.rego": "package site\n\n" + told("c") + "deny contains {\"code\": \"c\", \"message\": \"m\", \"status\": \"timeout\"} if true\n"}, `the status timeout is given by running a call alone`},
		"a status that allows":      {files{"a.rego": "package site\n\n" + told("c") + "deny contains {\"code\": \"c\", \"message\": \"m\", \"status\": \"ok\"} if true\n"}, `the status ok goes with the effect allow`},
		"a broken policy's status":  {files{"a.rego": "package site\n\n" + told("c") + "forbid contains {\"code\": \"c\", \"message\": \"m\", \"status\": \"policy_error\"} if true\n"}, `the status policy_error says that the policy is broken`},
		"a ttl of nothing":          {files{"a.rego": "package site\n\n" + told("c") + "require_approval contains {\"code\": \"c\", \"message\": \"m\", \"approval\": {\"ttl\": \"0s\"}} if true\n"}, `the terms of the approval: approval.ttl is "0s"`},
		"too many approvers":        {files{"a.rego": "package site\n\n" + told("c") + "require_approval contains {\"code\": \"c\", \"message\": \"m\", \"approval\": {\"approvers\": 99, \"ttl\": input.now.rfc3339}} if true\n"}, `approval.approvers is 99; it must be 1 to 10`},
		"no role at all":            {files{"a.rego": "package site\n\n" + told("c") + "require_approval contains {\"code\": \"c\", \"message\": \"m\", \"approval\": {\"roles\": []}} if true\n"}, `the terms of the approval: approval.roles`},
		"a lifetime in words":       {files{"a.rego": "package site\n\n" + told("c") + "require_approval contains {\"code\": \"c\", \"message\": \"m\", \"approval\": {\"lifetime\": \"3\"}} if true\n"}, `wants a whole number, not a string`},
		"a denial to repeat":        {files{"a.rego": "package site\n\n" + strings.Replace(told("closed"), "#   code: closed\n", "#   code: closed\n#   retryable: true\n", 1) + closed}, `custom.retryable is true, and a layer's denial cannot say it`},
		"an empty code":             {files{"a.rego": "package site\n\n" + told("c") + "deny contains {\"code\": \" \", \"message\": \"m\", \"status\": \"s\"} if true\n"}, `the code of a member of deny is " "`},
		"a word":                    {files{"a.rego": "package site\n\n" + told("c") + "deny contains \"closed\" if true\n"}, "its members are objects"},
		"a schema":                  {files{"a.rego": "package site\n\n# METADATA\n# schemas:\n#   - input: {type: object}\n# custom:\n#   code: closed\n#   message: m\n#   remedy: r\n" + closed}, "the METADATA has schemas"},
		"a schema in the library":   {hours.with("lib.rego", "# METADATA\n# scope: subpackages\n# schemas:\n#   - input: {type: object}\n"+helper), "/lib.rego:1: the METADATA has schemas"},
		"a misspelt field (B018)":   {hours.with("lib.rego", "package site.lib\n\nopen if input.now.epoc > 1\n"), "/lib.rego:3: input.now has no \"epoc\"; did you mean epoch?"},
		"the gate (B018)":           {hours.with("lib.rego", "package site.lib\n\nopen if input.gate.confirmed\n"), "input.gate is there for data.policy.gate alone"},
		"a misspelt helper":         {hours.with("lib.rego", helper).with("more.rego", "package site.lib.more\n\nx if data.site.lib.opne\n"), `data.site.lib has no "opne": no rule and no data gives it; did you mean open?`},
		"a rule in the library":     {hours.with("lib.rego", "package site.lib\n\ndeny contains 1\n"), "/lib.rego:3: package site.lib has the rule deny, and nothing asks for it there; move the rule to package site"},
		"a value in the library":    {hours.with("lib.rego", "package site.lib.night\n\nforbid if input.now.epoch < 0\n"), "/lib.rego:3: package site.lib.night has the rule forbid, and nothing asks for it there; move the rule to package site"},
		"a code in the library":     {hours.with("lib.rego", "package site.lib\n\n"+told("c")+"open := true\n"), "/lib.rego:3: the METADATA has custom.code, and no rule of package site.lib is an outcome; move the rule to package site, or remove custom.code"},
		"a pack without a version":  {hours.with("lib.rego", "# METADATA\n# custom:\n#   pack: shop_v1\n"+helper), "/lib.rego:1: the METADATA names a pack without a version"},
		"data of the policy":        {hours.with("d.json", `{"policy": {"decision": {}}}`), `/d.json: data conflict: the file gives data.policy, but a layer's data stands under its own name; put it under "site"`},
		"data of the profiles":      {hours.with("d.json", `{"profiles": {}}`), "data conflict: the file gives data.profiles"},
		"data of the targets":       {hours.with("d.json", `{"readable": {}}`), "data conflict: the file gives data.readable"},
		"data of the other layer":   {hours.with("d.json", `{"org": {"a": 1}}`), "data conflict: the file gives data.org"},
		"data that begins so":       {hours.with("d.json", `{"site_x": {"a": 1}}`), "data conflict: the file gives data.site_x, but a layer's data stands under its own name"},
		"data for a rule":           {hours.with("d.json", `{"site": {"deny": [1]}}`), "/d.json: data conflict at /site/deny: the rule at"},
		"data for a rule to come":   {hours.with("d.json", `{"site": {"forbid": []}}`), "data conflict at /site/forbid: its rules alone may give data.site.forbid"},
		"data for a helper":         {hours.with("lib.rego", helper).with("d.json", `{"site": {"lib": {"open": false}}}`), "data conflict at /site/lib/open: the rule at"},
		"data above a helper":       {hours.with("lib.rego", helper).with("d.json", `{"site": {"lib": 7}}`), "data conflict at /site/lib: the rule at"},
		"such a test with a remark": {hours.with("a_test.rego", "# why\n\npackage site # no test\n\ntest_x if true\n"), "/a_test.rego: a file named …_test.rego is no part of the policy; make it package site_test"},
		"such a test, quoted":       {hours.with("a_test.rego", "package site[\"lib\"]\n\ntest_x if true\n"), "/a_test.rego: a file named …_test.rego is no part of the policy"},
		"such a test, over lines":   {hours.with("a_test.rego", "package\n\tsite\n\ntest_x if true\n"), "/a_test.rego: "},
		"a test among the rules":    {hours.with("a_test.rego", "package site\n\ntest_x if true\n"), "/a_test.rego: a file named …_test.rego is no part of the policy; make it package site_test"},
		"a test in the library":     {hours.with("a_test.rego", "package site.lib\n\ntest_x if true\n"), "make it package site_test"},
		"a test in the core":        {hours.with("a_test.rego", "package policy\n\n_x := 1\n"), "make it package policy_test"},
		"another root":              {hours.with(".manifest", `{"roots": ["site", "policy"]}`), `/.manifest: roots name "policy", in the layer site`},
		"a root that begins so":     {hours.with(".manifest", `{"roots": ["sites"]}`), `roots name "sites"`},
		"old Rego":                  {hours.with(".manifest", `{"rego_version": 0}`), "rego_version is 0"},
		"no rule at all":            {files{"d.json": `{"site": {}}`}, "there is no .rego file in it; give one that holds rules of package site"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := layer(t, Site, c.files)
			if err == nil {
				_, err = over(t, l)
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A rule of the wrong shape is refused for its shape, whatever its METADATA says.
func TestLayerRefusesShapes(t *testing.T) {
	const value = "a single value"
	for rule, is := range map[string]string{
		`deny := {"code": "c", "message": "m", "status": "s"}`:                     value,
		`deny = {"code": "c"} if input.mode == "enforce"`:                          value,
		`deny if input.now.epoch < 0`:                                              value,
		`forbid if true`:                                                           value,
		`require_approval := true`:                                                 value,
		`deny := {m | m := {"code": "c", "message": "m", "status": "s"}}`:          value,
		`forbid := {"code": "c"} if input.mode == "enforce" else := {"code": "c"}`: value,
		`default deny := false`:                                                    "a default",
		`deny(x) := x`:                                                             "a function",
		`deny[x] := 1 if some x in ["a"]`:                                          "a part of an object",
		`deny.now contains 1`:                                                      "a part of an object",
	} {
		t.Run(rule, func(t *testing.T) {
			l, err := layer(t, Site, files{"site.rego": "package site\n\n" + told("c") + rule + "\n"})
			require.NoError(t, err)
			_, err = over(t, l)
			var found Findings
			require.ErrorAs(t, err, &found)
			assert.Contains(t, err.Error(), "/site.rego:8: ")
			assert.Contains(t, err.Error(), " is "+is+", and must be a set; write ")
			assert.NotContains(t, err.Error(), "METADATA")
		})
	}
}

// A layer that reads the policy would make every rule on the way recursive; it is the one thing that is said.
func TestLayerCannotReadThePolicy(t *testing.T) {
	for name, rule := range map[string]string{
		"directly": "deny contains {\"code\": \"c\", \"message\": \"m\", \"status\": \"s\"} if data.policy.decision\n",
		"imported": "import data.policy\n\ndeny contains {\"code\": \"c\", \"message\": \"m\", \"status\": \"s\"} if policy.decision\n",
	} {
		t.Run(name, func(t *testing.T) {
			imports, rule, ok := strings.Cut(rule, "\n\n")
			if !ok {
				imports, rule = "", imports
			}
			l, err := layer(t, Site, files{"site.rego": "package site\n\n" + imports + "\n\n" + told("c") + rule})
			require.NoError(t, err)
			_, err = over(t, l)
			var found Findings
			require.ErrorAs(t, err, &found)
			require.Len(t, found, 1, err)
			assert.Regexp(t, `/site.rego:(3|10): a layer cannot read data.policy, which asks the layer; read the input, or put what it needs into package site.lib$`, found[0].String())
		})
	}
}

// Rules that the compiler gives up on early are refused by what it says.
func TestLoadRefusesHalfCompiled(t *testing.T) {
	for rule, want := range map[string]string{
		"_x := print(1)":                        "bundle/b.rego:3: ",
		"_x if {\n\tx := print(1)\n\tx == 2\n}": "bundle/b.rego:4: ",
		"_x if eq(input.mode)":                  "bundle/b.rego:3: ",
		"_x if eq()":                            "bundle/b.rego:3: ",
		"_terms := x if assign(x)":              "bundle/b.rego:3: ",
		"_x if internal.member_2(1)":            "bundle/b.rego:3: ",
	} {
		t.Run(rule, func(t *testing.T) {
			_, err := load(t, minimal.with("b.rego", "package policy\n\n"+rule+"\n"))
			require.ErrorContains(t, err, want)
			assert.NotContains(t, err.Error(), "a fault of govern")
		})
	}
}

// Whatever happens while a policy is read, the process goes on.
func TestFaultIsAnError(t *testing.T) {
	err := func() (err error) {
		defer faulty(&err)
		panic("no such thing")
	}()
	require.EqualError(t, err, "a fault of govern, met while the policy was read: no such thing; report it with the policy")
}

// What is a layer's own is refused in the core, with the flag that takes it.
func TestCoreRefusesLayers(t *testing.T) {
	for name, c := range map[string]struct {
		files files
		want  string
	}{
		"package":           {minimal.with("b.rego", "package site\n\n"+closed), "bundle/b.rego:1: the file is package site; every file of the policy must be package policy; a layer is no part of the core's folder: put it in one of its own, and name that with --site"},
		"library":           {minimal.with("b.rego", "package org.lib\n\nx := 1\n"), "name that with --org"},
		"data":              {minimal.with("d.json", `{"site": {"hours": 1}}`), "bundle/d.json: data conflict: the file gives data.site, but it is a layer's"},
		"root":              {minimal.with(".manifest", `{"roots": ["policy", "org"]}`), `bundle/.manifest: roots name "org", which is a layer's`},
		"root below":        {minimal.with(".manifest", `{"roots": ["policy", "site/hours"]}`), `roots name "site/hours"`},
		"a test in a layer": {minimal.with("a_test.rego", "package site.lib\n\nx := 1\n"), "make it package site_test"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.files)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := load(t, minimal.with(".manifest", `{"revision": "", "roots": [""], "rego_version": 1}`))
	require.NoError(t, err, "as opa build writes it where nothing is stated")
}

// Everything that a layer may be.
func TestLayersLoad(t *testing.T) {
	site, err := layer(t, Site, files{
		"site.rego": "# METADATA\n# custom:\n#   pack: shop_v1\n#   version: 1.2.0\npackage site\n\nimport data.site.lib\n\n" + told("closed") +
			"deny contains {\"code\": meta.code, \"message\": meta.message, \"status\": \"outside_window\"} if {\n\tmeta := rego.metadata.rule().custom\n\tnot lib.open\n}\n\n" +
			told("two_people") + "require_approval contains {\n\t\"code\": \"two_people\",\n\t\"message\": \"two must agree\",\n\t\"approval\": {\n\t\t\"approvers\": 2,\n\t\t\"roles\": [\"lead\"],\n\t\t\"stages\": [{\"name\": \"a\", \"approvers\": 1, \"roles\": [\"lead\"]}],\n" +
			"\t\t\"distinct_from_actor\": true,\n\t\t\"lifetime\": 3,\n\t\t\"ttl\": \"1h\",\n\t\t\"reason_required\": true,\n\t},\n} if input.tool.effect == \"write\"\n\n" +
			told("reserved") + "forbid contains m if {\n\tinput.call.target == \"reserved\"\n\tm := object.union({\"code\": \"reserved\"}, {\"message\": \"m\", \"status\": \"reserved\"})\n}\n",
		"lib.rego":       "package site.lib\n\nopen if input.now.epoch > data.site.hours.from\n",
		"deep.rego":      "package site.lib.deep\n\nx := 1\n\ndeny(y) := y\n",
		"data.json":      `{"site": {"hours": {"from": 0}, "lib": {"note": "beside its rules"}}}`,
		"site_test.rego": "package site_test\n\nimport data.site\n\ntest_closed if count(site.deny) == 1 with input as {\"now\": {\"epoch\": -1}}\n",
		".manifest":      `{"revision": "site-7", "roots": ["site", "site_test"], "rego_version": 1}`,
	})
	require.NoError(t, err)
	org, err := layer(t, Org, files{"org.rego": "package org\n\n" + told("frozen") + "forbid contains {\"code\": \"frozen\", \"message\": \"m\", \"status\": \"frozen\"} if input.mode == \"enforce\"\n"})
	require.NoError(t, err)
	p, err := over(t, org, site)
	require.NoError(t, err)
	assert.Regexp(t, `^local\+site-7@sha256:[0-9a-f]{64}$`, p.Version())

	layers := p.Layers()
	require.Len(t, layers, 2)
	assert.Equal(t, Org, layers[0].Layer)
	assert.Equal(t, "site-7", layers[1].Revision)
	require.Len(t, layers[1].Packs, 1)
	assert.Equal(t, "shop_v1", layers[1].Packs[0].Name)
	assert.Equal(t, "1.2.0", layers[1].Packs[0].Version)
	assert.Contains(t, layers[1].Packs[0].Place, "/site.rego:1")

	got := map[string]Outcome{}
	for _, o := range p.Outcomes() {
		got[o.Code] = o
		assert.Equal(t, "wait", o.Remedy)
	}
	assert.Len(t, got, 4)
	assert.Equal(t, dispatch.Deny, got["closed"].Effect)
	assert.Equal(t, dispatch.Status("outside_window"), got["closed"].Status)
	assert.Equal(t, dispatch.Deny, got["reserved"].Effect)
	assert.Equal(t, dispatch.RequireApproval, got["two_people"].Effect)
	assert.Equal(t, dispatch.StatusApprovalRequired, got["two_people"].Status)

	// The core's tests say what the core does by itself; a layer's see everything.
	alone := "package policy_test\n\ntest_alone if not data.org\n"
	results, err := Test(t.Context(), mustSource(t, asking.with("a_test.rego", alone)).With(org, site))
	require.NoError(t, err)
	require.Len(t, results, 2)
	for _, r := range results {
		assert.True(t, r.Passed, r.Output)
	}
}

func mustSource(tb testing.TB, f files) Source {
	tb.Helper()
	s, err := ReadFS(f.fs(), "bundle")
	require.NoError(tb, err)
	return s
}

// A layer's code means one thing in the whole policy, the core included.
func TestCodesAreOneAcrossLayers(t *testing.T) {
	site, err := layer(t, Site, hours)
	require.NoError(t, err)
	org, err := layer(t, Org, files{"org.rego": "package org\n\n" + told("closed") + closed})
	require.NoError(t, err)
	_, err = over(t, org, site)
	require.ErrorContains(t, err, "/site.rego:8: the code closed is taken by the rule at")
	core := mustSource(t, asking.with("b.rego", "package policy\n\n# METADATA\n# custom:\n#   code: closed\n#   effect: deny\n#   message: m\n#   remedy: r\nclosed := 1\n"))
	_, err = New(t.Context(), Options{Source: core.With(site)})
	require.ErrorContains(t, err, "the code closed is taken by the rule at bundle/b.rego:9")
}

// Over a policy that does not ask it a layer would hold nothing back, and nobody would notice.
func TestLayerMustBeAsked(t *testing.T) {
	site, err := layer(t, Site, hours.with("lib.rego", "package site.lib\n\nopen := true\n"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		policy string
		asked  bool
	}{
		"not at all":          {allow, false},
		"the other layer":     {"decision := data.org.deny\n", false},
		"another set":         {"decision := data.site.forbid\n", false},
		"by a rule unasked":   {allow + "\n_denied := data.site.deny\n", false},
		"directly":            {"decision := data.site.deny\n", true},
		"through other rules": {"decision := {} if not _denied\n\n_denied if count(_denials) > 0\n\n_denials := data.site.deny\n", true},
		"in an else":          {"decision := {} if input.task.id == \"a\"\n\nelse := data.site.deny\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			core := mustSource(t, files{"a.rego": "package policy\n\n" + c.policy})
			_, err := New(t.Context(), Options{Source: core.With(site)})
			if c.asked {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "/site.rego:8: the policy never asks data.site.deny, so the rule would hold nothing back")
		})
	}
}

// Whichever of a layer's sets the policy leaves out: it is told.
func TestEverySetOfALayerMustBeAsked(t *testing.T) {
	for _, name := range Layers {
		for _, set := range []string{"forbid", "deny", "require_approval"} {
			of := "data." + string(name) + "." + set
			member := "{\"code\": \"c\", \"message\": \"m\", \"status\": \"s\"}"
			l, err := layer(t, name, files{"a.rego": "package " + string(name) + "\n\n" + told("c") + set + " contains " + member + " if true\n"})
			require.NoError(t, err)
			_, err = over(t, l)
			require.NoError(t, err, of)
			line := "_asked contains " + of + "\n"
			require.Contains(t, asking["a.rego"], line)
			core := mustSource(t, files{"a.rego": strings.Replace(asking["a.rego"], line, "", 1)})
			_, err = New(t.Context(), Options{Source: core.With(l)})
			require.ErrorContains(t, err, "the policy never asks "+of)
		}
	}
}

// Data that is given beside a layer's folder is the layer's as well: it stands under its name, and in nobody's place.
func TestDataBesideALayer(t *testing.T) {
	with := func(content string) (Source, error) {
		return ReadLayer(Site, []string{hours.write(t), files{"d.json": content}.write(t) + "/d.json"})
	}
	l, err := with(`{"site": {"from": 1}}`)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"site": map[string]any{"from": 1.0}}, l.data.root)
	for _, root := range []string{"readable", "writable", "profiles", "policy", "org"} {
		_, err = with(`{"` + root + `": {"warehouse": {"/restricted/planning.txt": true}}}`)
		require.ErrorContains(t, err, "/d.json: data conflict: the file gives data."+root)
	}
}

// Layers take the place of those that were there.
func TestLayersAreReplaced(t *testing.T) {
	s, err := layer(t, Site, hours)
	require.NoError(t, err)
	core := mustSource(t, asking)
	assert.Len(t, core.With(s).bundles(), 2)
	assert.Len(t, core.With(s).With(s).bundles(), 2)
	assert.Len(t, core.With(s).With().bundles(), 1)
	assert.Len(t, core.With(Source{}, s).bundles(), 2)
}

// Layers are part of the version: their rules, their data, their revision, and which of them a file belongs to.
func TestVersionCoversLayers(t *testing.T) {
	version := func(t *testing.T, layers map[Layer]files) string {
		t.Helper()
		var all []Source
		for _, name := range Layers {
			if f, ok := layers[name]; ok {
				l, err := layer(t, name, f)
				require.NoError(t, err)
				all = append(all, l)
			}
		}
		p, err := over(t, all...)
		require.NoError(t, err)
		return p.Version()
	}
	base := version(t, map[Layer]files{Site: hours})
	assert.Equal(t, base, version(t, map[Layer]files{Site: hours}), "wherever its folder is")
	assert.Equal(t, base, version(t, map[Layer]files{Site: hours.with("a_test.rego", "package site_test\n")}), "tests do not count")
	empty := files{"x.rego": "package site\n"}
	orgs := files{"x.rego": "package org\n"}
	seen := map[string]string{base: "the first"}
	for name, layers := range map[string]map[Layer]files{
		"no layer":          {},
		"a comment":         {Site: hours.with("site.rego", hours["site.rego"]+"# why\n")},
		"data":              {Site: hours.with("d.json", `{"site": {"from": 1}}`)},
		"a revision":        {Site: hours.with(".manifest", `{"revision": "site-1"}`)},
		"a file's name":     {Site: files{"other.rego": hours["site.rego"]}},
		"an empty layer":    {Site: empty},
		"another such":      {Org: orgs},
		"two empty layers":  {Site: empty, Org: orgs},
		"with a file again": {Site: maps.Clone(hours).with("x.rego", "package site\n")},
	} {
		t.Run(name, func(t *testing.T) {
			v := version(t, layers)
			assert.NotContains(t, seen, v, "the same as %s", seen[v])
			seen[v] = name
		})
	}
}
