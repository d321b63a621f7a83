package opa

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

const allow = "decision := {\"effect\": \"allow\"}\n"

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		files files
		want  []string
	}{
		"no entrypoint (B008)": {files{"a.rego": "package policy\n\nallow if input.tool == \"read\"\n"},
			[]string{"data.policy.decision"}},
		"misspelt entrypoint (B008)": {files{"a.rego": "package policy\n\ndecison := 1\n"}, []string{"data.policy.decision"}},
		"entrypoint is a set":        {files{"a.rego": "package policy\n\ndecision contains 1\n"}, []string{"bundle/a.rego:3", "single value"}},
		"entrypoint is an object in parts": {files{"a.rego": "package policy\n\ndecision[x] := 1 if some x in input.xs\n"},
			[]string{"bundle/a.rego:3", "single value"}},
		"entrypoint is a part":     {files{"a.rego": "package policy\n\ndecision.effect := 1\n"}, []string{"data.policy.decision"}},
		"entrypoint is a function": {files{"a.rego": "package policy\n\ndecision(x) := x\n"}, []string{"bundle/a.rego:3", "single value"}},
		"another package": {files{"a.rego": "package policy\n\n" + allow, "b.rego": "package site\n\nx := 1\n"},
			[]string{"bundle/b.rego", "package site", "package policy"}},
		"a package below": {files{"a.rego": "package policy\n\n" + allow, "b.rego": "package policy.more\n\nx := 1\n"},
			[]string{"bundle/b.rego", "policy.more"}},
		"a package that begins alike": {files{"a.rego": "package policy\n\n" + allow, "b.rego": "package policy_test\n\nx := 1\n"},
			[]string{"bundle/b.rego", "policy_test"}},
		"syntax":                             {files{"a.rego": "package policy\n\ndecision := {\n"}, []string{"bundle/a.rego"}},
		"old Rego":                           {files{"a.rego": "package policy\n\ndecision = 1 { input.x }\n"}, []string{"bundle/a.rego:3"}},
		"empty file":                         {files{"a.rego": "package policy\n\n" + allow, "b.rego": ""}, []string{"bundle/b.rego"}},
		"not strict":                         {files{"a.rego": "package policy\n\ndecision := 1 if {\n\tunused := 2\n\tinput.x\n}\n"}, []string{"bundle/a.rego:4", "unused"}},
		"unknown call":                       {files{"a.rego": "package policy\n\ndecision := nothing.here(1)\n"}, []string{"nothing.here"}},
		"recursion":                          {files{"a.rego": "package policy\n\ndecision := data.policy.decision\n"}, []string{"recursive"}},
		"two defaults":                       {files{"a.rego": "package policy\n\ndefault decision := 1\n\ndefault decision := 2\n"}, []string{"default"}},
		"a misspelt term of the core (B104)": {files{"a.rego": "package policy\n\n" + allow + "\n_terms := {\"aprovers\": 2}\n"}, []string{"bundle/a.rego:5", `approval has no "aprovers"; did you mean approvers?`}},
		"a wrong term of the core":           {files{"a.rego": "package policy\n\n" + allow + "\n_terms := {\"ttl\": \"900h\"}\n"}, []string{"bundle/a.rego:5", `approval.ttl is "900h"`}},
		"data not a set":                     {files{"a.rego": "package policy\n\n" + allow, "d.json": `{"readable": {"s": ["/a"]}}`}, []string{"data.readable.s"}},
		"writable not a set":                 {files{"a.rego": "package policy\n\n" + allow, "d.json": `{"writable": {"s": ["/a"]}}`}, []string{"data.writable.s"}},
		"writable not object":                {files{"a.rego": "package policy\n\n" + allow, "d.json": `{"writable": ["/a"]}`}, []string{"data.writable must"}},
		"data not object":                    {files{"a.rego": "package policy\n\n" + allow, "d.json": `{"readable": ["/a"]}`}, []string{"data.readable"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.files)
			require.Error(t, err)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

// A policy that could answer differently next time, reach the network, or do work without bound does not load.
func TestNondeterministicBuiltinsAreRefused(t *testing.T) {
	for name, call := range map[string]string{
		"http.send":                 `http.send({"method": "GET", "url": "http://127.0.0.1"})`,
		"time.now_ns":               `time.now_ns()`,
		"rand.intn":                 `rand.intn("x", 10)`,
		"opa.runtime":               `opa.runtime()`,
		"uuid.rfc4122":              `uuid.rfc4122("x")`,
		"net.lookup_ip_addr":        `net.lookup_ip_addr("localhost")`,
		"json.match_schema":         `json.match_schema({}, {})`,
		"json.verify_schema":        `json.verify_schema({})`,
		"io.jwt.decode_verify":      `io.jwt.decode_verify("x", {})`,
		"io.jwt.encode_sign":        `io.jwt.encode_sign({}, {}, {})`,
		"io.jwt.encode_sign_raw":    `io.jwt.encode_sign_raw("x", "x", "x")`,
		"bits.lsh":                  `bits.lsh(1, input.call.arguments.a)`,
		"graph.reachable_paths":     `graph.reachable_paths(input.call.arguments.a, {"a"})`,
		"json.marshal_with_options": `json.marshal_with_options([], {"indent": input.call.id})`,
		"product":                   `product(numbers.range(1, 300000))`,
		"strings.render_template":   `strings.render_template("{{.}}", {})`,
		"crypto.x509.parse_and_verify_certificates":              `crypto.x509.parse_and_verify_certificates("x")`,
		"crypto.x509.parse_and_verify_certificates_with_options": `crypto.x509.parse_and_verify_certificates_with_options("x", {})`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, files{"a.rego": "package policy\n\ndecision := " + call + "\n"})
			require.ErrorContains(t, err, "undefined function "+name)
			assert.ErrorContains(t, err, "bundle/a.rego:3")
		})
	}
	for _, b := range capabilities().Builtins {
		assert.False(t, b.IsNondeterministic(), b.Name)
	}
	assert.NotNil(t, capabilities().AllowNet, "nil would allow every host")
	assert.Empty(t, capabilities().AllowNet)
}

func TestProfilesNameKnownSets(t *testing.T) {
	for class, with := range map[string]func(sets ...string) func(*Options){
		"readable": func(sets ...string) func(*Options) {
			return func(o *Options) { o.Profiles = map[string]Profile{"lab": {Readable: sets}} }
		},
		"writable": func(sets ...string) func(*Options) {
			return func(o *Options) { o.Profiles = map[string]Profile{"lab": {Writable: sets}} }
		},
	} {
		t.Run(class, func(t *testing.T) {
			bundle := files{"a.rego": "package policy\n\n" + allow, "d.json": `{"` + class + `": {"warehouse": {}, "office": {}}}`}
			_, err := load(t, bundle, with("warehouse", "office"))
			require.NoError(t, err)
			_, err = load(t, bundle, with("warehouse", "Warehouse"))
			assert.EqualError(t, err, `profile lab names the `+class+` set "Warehouse", which data.`+class+` does not have; it has office, warehouse`)
			_, err = load(t, files{"a.rego": "package policy\n\n" + allow}, with("warehouse"))
			assert.ErrorContains(t, err, "it has none")
		})
	}
}

func TestProfilesAreData(t *testing.T) {
	p := regoPolicy(t, "decision := {\"profiles\": data.profiles, \"version\": data.govern.version}\n", func(o *Options) {
		cost, attempts := int64(100), int64(0)
		o.Profiles = map[string]Profile{"lab": {}, "Lab": {Tools: []string{"b", "A", "a"}, Scopes: []string{"read:document"},
			Writable: []string{"drafts"}, Budgets: dispatch.Budgets{Cost: &cost, Attempts: &attempts}}}
		source, err := o.Source.WithData("d.json", []byte(`{"writable": {"drafts": {}}}`))
		require.NoError(t, err)
		o.Source = source
	})
	raw, err := p.Decide(t.Context(), ijson.Raw(`{}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"profiles": {
		"Lab": {"tools": {"A": true, "a": true, "b": true}, "readable": {}, "writable": {"drafts": true}, "scopes": {"read:document": true},
			"budgets": {"attempts": 0, "cost": 100}},
		"lab": {"tools": {}, "readable": {}, "writable": {}, "scopes": {}, "budgets": {}}}, "version": "`+p.Version()+`"}`, string(raw))
}

// Two modules of one base name, from two folders: neither may displace the other.
func TestModulesOfOneNameAreBothKept(t *testing.T) {
	one := files{"a.rego": "package policy\n\ndecision := {\"two\": _two}\n"}.write(t)
	two := files{"a.rego": "package policy\n\n_two := 2\n"}.write(t)
	s, err := ReadPaths([]string{one, two}, Source{})
	require.NoError(t, err)
	p, err := New(t.Context(), Options{Source: s})
	require.NoError(t, err)
	raw, err := p.Decide(t.Context(), ijson.Raw(`{}`))
	require.NoError(t, err)
	assert.Equal(t, `{"two":2}`, string(raw))
}

func TestOutcomesAreChecked(t *testing.T) {
	outcome := func(lines ...string) string {
		return "# METADATA\n# title: T\n# custom:\n#   " + strings.Join(lines, "\n#   ") + "\n"
	}
	complete := outcome("code: one", "effect: deny", "message: m", "remedy: r")
	for name, c := range map[string]struct{ rules, want string }{
		"two rules, one code": {complete + "x := 1\n\n" + complete + "y := 1\n", "the code one is taken by the rule at bundle/b.rego:10"},
		"no code":             {outcome("effect: deny", "message: m", "remedy: r") + "x := 1\n", "custom.code"},
		"no message":          {outcome("code: one", "effect: deny", "remedy: r") + "x := 1\n", "custom.message"},
		"blank message":       {outcome("code: one", "effect: deny", "message: ' '", "remedy: r") + "x := 1\n", "custom.message"},
		"no remedy":           {outcome("code: one", "effect: deny", "message: m") + "x := 1\n", "custom.remedy"},
		"no effect":           {outcome("code: one", "message: m", "remedy: r") + "x := 1\n", "custom.effect"},
		"unknown effect":      {outcome("code: one", "effect: Deny", "message: m", "remedy: r") + "x := 1\n", `custom.effect is "Deny"`},
		"retryable a word":    {outcome("code: one", "effect: deny", "message: m", "remedy: r", "retryable: often") + "x := 1\n", "custom.retryable"},
		"code a number":       {outcome("code: 7", "effect: deny", "message: m", "remedy: r") + "x := 1\n", "custom.code"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, files{"a.rego": "package policy\n\n" + allow, "b.rego": "package policy\n\n" + c.rules})
			require.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, "bundle/b.rego:")
		})
	}
	p, err := load(t, files{"a.rego": "package policy\n\n" + allow + "\n" + outcome("code: two", "status: site_closed", "effect: deny",
		"retryable: true", "message: m", "remedy: r") + "x := 1\n\n" + complete + "y := 1\n\n" + outcome("colour: green") + "z := 1\n"})
	require.NoError(t, err)
	assert.Equal(t, []Outcome{
		{Code: "two", Status: "site_closed", Effect: "deny", Retryable: true, Message: "m", Remedy: "r", Place: "bundle/a.rego:14"},
		{Code: "one", Status: "one", Effect: "deny", Message: "m", Remedy: "r", Place: "bundle/a.rego:23"},
	}, p.Outcomes())
}

// Policies are compiled while others are, and while others decide.
func TestCompilingTogether(t *testing.T) {
	p := shipped(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, err := New(t.Context(), Options{Source: shippedSource(t), Profiles: labProfiles})
			assert.NoError(t, err)
		})
		wg.Go(func() {
			for range 20 {
				_, err := p.Gate(t.Context(), Question{Name: "a", Allowed: []string{"a"}})
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
}
