package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	zsqlite "zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
	"github.com/policy-dispatch/govern/internal/tools"
)

// The tools of these tests take a secret and give one.
const vaultConfig = `
state: govern.db
task: vault-1
actor: learner
profiles:
  vault: {tools: [set_secret, get_secret], readable: [vault], max_steps: 500, max_pending: 100}
tasks: {vault-1: {profile: vault, actor: learner}}
resources: {readable: {vault: {/vault/key: true}}}
documents: {/vault/key: {text: "the key is D0CUM3NT", version: v1, content_type: text/plain}}
tools:
  set_secret:
    version: v1
    description: Keeps a secret.
    local: record
    target: /name
    key: /key
    sensitive: [/value, /deep/pin, /deep/parts]
    schema:
      type: object
      additionalProperties: false
      required: [name, key, value]
      properties:
        name: {type: string}
        key: {type: string}
        value: {type: string, minLength: 2}
        note: {}
        deep:
          type: object
          additionalProperties: false
          properties: {pin: {type: integer}, parts: {}}
  get_secret:
    version: v1
    description: Gives a secret.
    local: document
    effect: read
    target: /path
    resource: readable
    sensitive_output: [/text]
    schema: {type: object, additionalProperties: false, required: [path], properties: {path: {type: string}}}
    output: {type: object, required: [text], properties: {text: {type: string}}, additionalProperties: {type: string}}
`

const vaultScenario = `
name: a life
task: {id: vault-1}
steps:
  - propose: {call_id: c1, tool: set_secret, arguments: {name: one, key: one, value: %[1]s}}
    expect: {status: approval_required}
  - review: {proposal: {call_id: c1, tool: set_secret, arguments: {name: one, key: one, value: %[1]s}}, decision: approved}
    expect: {reviewed: true}
  - propose: {call_id: c1, tool: set_secret, arguments: {name: one, key: one, value: %[1]s}}
    expect: {status: ok, value: {name: one}}
  - retry: {proposal: {call_id: d, tool: get_secret, arguments: {path: /vault/key}}}
    expect: {value: {text: %[2]s}}
  - propose: {call_id: d2, tool: get_secret, arguments: {path: /vault/key}}
    expect: {status: ok, value: {text: %[2]s}}
expect: {statuses: [approval_required, ok, ok, ok]}
`

// secrets are what may be in no file and on no screen.
var secretTexts = []string{"S3CR3T", "D0CUM3NT", "31415926"}

func secret(id, name string, more ...any) string {
	arguments := map[string]any{"name": name, "key": name, "value": "S3CR3T"}
	for i := 0; i+1 < len(more); i += 2 {
		arguments[more[i].(string)] = more[i+1]
	}
	return call(id, "set_secret", arguments)
}

// vault is a folder with that configuration, and whoever looks for secrets in what comes out of it.
type vault struct {
	desktop
	outputs map[string]string
}

func newVault(t *testing.T) *vault {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	v := &vault{desktop{t, t.TempDir()}, map[string]string{}}
	v.write("config/config.yaml", vaultConfig)
	return v
}

// do runs a command on the state, and keeps what it says.
func (v *vault) do(want int, stdin string, args ...string) string {
	v.t.Helper()
	var out, errs bytes.Buffer
	all := append(args, "--config", v.path("config/config.yaml"), "--state", v.path("state/govern.db"))
	code := run(context.Background(), all, strings.NewReader(stdin), &out, &errs)
	require.Equal(v.t, want, code, "%v: %s%s", args, out.String(), errs.String())
	name := strings.Join(args, " ")
	for v.outputs[name] != "" {
		name += " again"
	}
	v.outputs[name] = out.String() + errs.String()
	v.look()
	return out.String()
}

// look searches every file beside the configuration, as it is now.
func (v *vault) look() {
	v.t.Helper()
	for _, folder := range []string{v.path("state"), os.TempDir()} {
		require.NoError(v.t, filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(file, ".key") {
				return err
			}
			b, err := os.ReadFile(file)
			if err == nil {
				v.holdsNone(file, string(b))
			}
			return err
		}))
	}
}

func (v *vault) holdsNone(name, text string) {
	v.t.Helper()
	for _, s := range secretTexts {
		assert.NotContains(v.t, text, s, name)
	}
	// The one credential that there is: the store's key.
	key, err := os.ReadFile(v.path("state/govern.db.key"))
	require.NoError(v.t, err)
	for _, form := range []string{string(key), hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key)} {
		assert.False(v.t, strings.Contains(text, form), "%s has the store's key", name)
	}
}

// One life of a call with a secret, and everything that is said and kept of it on the way.
func TestB076NoSecretLeaves(t *testing.T) {
	v := newVault(t)
	require.NoError(t, os.MkdirAll(v.path("state"), 0o700))
	// Another process has the state open, so that its log of commits is there to be searched.
	other, err := sqlite.Open(t.Context(), v.path("state/govern.db"), sqlite.Options{})
	require.NoError(t, err)
	defer other.Close()

	deep := map[string]any{"pin": 31415926, "parts": []any{map[string]any{"S3CR3T": "S3CR3T"}, 31415926}}
	all := secret("c1", "first", "deep", deep)
	first := v.do(exitWaiting, all, "run")
	var asked dispatch.Result
	require.NoError(t, json.Unmarshal([]byte(first), &asked))
	v.do(exitOK, "", "review", "list")
	v.do(exitOK, "", "review", "list", "--format", "json")
	v.do(exitOK, "", "task", "show", "vault-1")
	v.do(exitOK, "", "task", "list", "--format", "json")

	// The reviewer is shown the exact call, and nobody else.
	for _, format := range []string{"text", "json"} {
		shown := v.do(exitOK, "", "review", "show", asked.Approval.ID, "--format", format)
		assert.Contains(t, shown, `S3CR3T`)
		assert.Contains(t, shown, `31415926`)
		delete(v.outputs, "review show "+asked.Approval.ID+" --format "+format)
	}
	v.do(exitDenied, "", "review", "approve", asked.Approval.ID, "--signature", strings.Repeat("0", 64))
	v.do(exitOK, "", "review", "approve", asked.Approval.ID, "--signature", asked.Approval.Signature, "--format", "json")
	ran := v.do(exitOK, "", "run", "--approved")
	assert.Contains(t, ran, `"status":"ok","value":{"name":"first"}`)
	v.do(exitOK, all, "run") // a replay
	shown := v.do(exitOK, "", "review", "show", asked.Approval.ID)
	assert.Contains(t, shown, "$sealed", "it is gone")

	// Another secret under the same key, and other ways to say no.
	v.do(exitDenied, secret("c2", "first", "value", "S3CR3T-2", "deep", deep), "run")
	rejected := secret("c3", "second")
	v.do(exitWaiting, rejected, "run")
	v.do(exitOK, rejected, "review", "reject", "--proposal", "-", "--reason", "no")
	v.do(exitDenied, rejected, "run")
	v.do(exitOK, rejected, "review", "reopen", "--proposal", "-")
	v.do(exitWaiting, secret("c4", "third"), "run", "--dry-run")
	v.do(exitMisuse, `{"S3CR3T":1,"S3CR3T":2}`, "review", "approve", "--proposal", "-")

	// Calls that are not as the schema says, in which the secret may be anywhere, and proposals that are none.
	var broken []string
	for i, arguments := range []map[string]any{
		{"name": "x", "key": "x", "valeu": "S3CR3T"},
		{"name": "x", "key": "x", "value": "S3CR3T", "S3CR3T": 1},
		{"name": "x", "key": "x", "value": "S3CR3T", "31415926": 1},
		{"name": "x", "key": "x", "value": map[string]any{"S3CR3T": []any{"S3CR3T"}}},
		{"name": "x", "key": "x", "value": "S3CR3T", "deep": map[string]any{"pin": "S3CR3T"}},
		{"name": "x", "key": "x", "value": "S3CR3T", "deep": map[string]any{"S3CR3T": map[string]any{"S3CR3T": 1}}},
		{"name": "x", "key": "x", "value": []any{"S3CR3T"}, "deep": "S3CR3T"},
		{"name": 31415926, "key": "", "value": "S3CR3T"},
		{},
	} {
		id := fmt.Sprintf("v%d", i)
		broken = append(broken, call(id, "set_secret", arguments), call(id, "set_secrt", arguments))
	}
	broken = append(broken,
		`{"call_id":"m1","tool":"set_secret","arguments":{"S3CR3T":1,"S3CR3T":2}}`,
		`{"call_id":"m2","tool":"set_secret","arguments":{"value":"S3CR3T`,
		`{"call_id":"m3","tool":"set_secret","arguments":{"S3CR3T":{"S3CR3T":9007199254740993}}}`,
		`{"call_id":"m4","tool":"set_secret","arguments":{"value":"S3CR3T"},"S3CR3T":1}`,
		`{"call_id":"m5","tool":"set_secret","arguments":"S3CR3T"}`,
		`S3CR3T`, `"S3CR3T"`, `{"S3CR3T":"S3CR3T"}`)
	told := v.do(exitDenied, strings.Join(broken, "\n"), "run")
	assert.Equal(t, 9, strings.Count(told, `"status":"invalid_arguments"`))
	assert.Equal(t, 9, strings.Count(told, `"status":"tool_denied"`))
	assert.Equal(t, 8, strings.Count(told, `"status":"invalid_proposal"`))
	v.do(exitDenied, strings.Join(broken, "\n"), "run", "--retry", "2")

	// What a tool gives reaches its caller alone.
	read := call("d1", "get_secret", map[string]any{"path": "/vault/key"})
	told = v.do(exitOK, read, "run")
	assert.Contains(t, told, `"text":"the key is D0CUM3NT"`)
	for name, out := range v.outputs {
		if strings.HasPrefix(out, told) {
			delete(v.outputs, name)
		}
	}

	// A policy that repeats what it sees, and one that breaks over it, know no more.
	for i, rule := range []string{
		`deny contains {"code": "loud", "message": sprintf("%v", [input.call]), "status": "outside_window"}`,
		`deny contains {"code": "loud", "message": input.call.arguments.value, "status": "outside_window"}`,
		`deny contains {"code": "loud", "message": "x", "status": "outside_window"} if to_number(input.call.arguments.value) > 1`,
	} {
		v.write("site/site.rego", "package site\n\n# METADATA\n# title: x\n# custom:\n#   code: loud\n#   message: x\n#   remedy: x\n"+rule+"\n")
		var out, errs bytes.Buffer
		run(t.Context(), []string{"run", "--config", v.path("config/config.yaml"), "--state", v.path("state/govern.db"), "--site", v.path("site")},
			strings.NewReader(secret(fmt.Sprintf("p%d", i), fmt.Sprintf("p-%d", i))), &out, &errs)
		require.NotEmpty(t, out.String(), errs.String())
		v.outputs["under "+rule] = out.String() + errs.String()
	}

	for _, format := range []string{"text", "json"} {
		v.do(exitOK, "", "log", "decisions", "--format", format)
		v.do(exitOK, "", "log", "actions", "--format", format)
		v.do(exitOK, "", "log", "trace", "--format", format)
		v.do(exitOK, "", "review", "list", "--all", "--format", format)
	}
	for _, format := range []string{formatJSONL, formatOPA} {
		v.do(exitOK, "", "log", "export", "--format", format)
	}
	inputs := v.do(exitOK, "", "log", "decisions", "--inputs", "--format", "json")
	assert.Contains(t, inputs, `"value":{"$sealed":"`)
	lines := strings.Split(strings.TrimSpace(inputs), "\n")
	for _, line := range []string{lines[0], lines[len(lines)-1]} {
		var row struct {
			Input json.RawMessage `json:"input"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		var out, errs bytes.Buffer
		run(t.Context(), []string{"policy", "eval", "--config", v.path("config/config.yaml")}, bytes.NewReader(row.Input), &out, &errs)
		v.outputs["eval "+line] = out.String() + errs.String()
	}

	// A scenario's report is read by others than who wrote the scenario.
	v.write("config/fine.yaml", fmt.Sprintf(vaultScenario, "S3CR3T", "the key is D0CUM3NT"))
	v.write("config/wrong.yaml", fmt.Sprintf(vaultScenario, "S3CR3T", "the key is not D0CUM3NT"))
	for _, format := range []string{"text", "json", "junit"} {
		v.do(exitOK, "", "scenario", "run", v.path("config/fine.yaml"), "--format", format)
		failed := v.do(exitDenied, "", "scenario", "run", v.path("config/wrong.yaml"), "--format", format)
		assert.Contains(t, failed, "/value/text: something else than is expected; there is something sensitive in it, and neither is shown")
	}

	v.do(exitOK, "", "cancel", "vault-1")
	v.do(exitDenied, secret("c9", "late"), "run")

	require.Greater(t, len(v.outputs), 35)
	for name, out := range v.outputs {
		v.holdsNone(name, out)
	}
	// It is no wonder that nothing is found if nothing was kept: what ran is there, for who has the key.
	records, err := other.Records(t.Context(), dispatch.DefaultTenant, "")
	require.NoError(t, err)
	require.Len(t, records, 1)
	assert.Contains(t, string(records[0].Exact), `"value":"S3CR3T"`)
	v.holdsNone("the record", string(records[0].Value))
}

// newVaultLab is a lab with those tools over a state in a file.
func newVaultLab(t *testing.T) *lab {
	v := newVault(t)
	c, err := parseConfig(v.path("config/config.yaml"))
	require.NoError(t, err)
	g, err := assemble(t.Context(), c)
	require.NoError(t, err)
	l := &lab{t: t, governed: g, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), file: filepath.Join(t.TempDir(), "govern.db"),
		who: dispatch.Principal{Tenant: dispatch.DefaultTenant, Actor: "learner"}, task: "vault-1"}
	l.open()
	t.Cleanup(func() { require.NoError(t, l.store.Close()) })
	l.make("vault-1")
	return l
}

func (l *lab) make(task string) {
	l.t.Helper()
	require.NoError(l.t, l.dispatcher.CreateTask(context.Background(), dispatch.Task{
		TaskKey: dispatch.TaskKey{Tenant: l.who.Tenant, ID: task}, Profile: "vault", Actor: l.who.Actor}, "operator"))
}

// sealOf is the seal at a pointer into the arguments that the policy saw last.
func (l *lab) sealOf(pointer string) dispatch.Seal {
	l.t.Helper()
	var last dispatch.DecisionEntry
	for _, e := range l.entries() {
		if e.Kind == dispatch.KindDecision {
			require.NoError(l.t, ijson.Unmarshal(e.Body, &last))
		}
	}
	assert.True(l.t, last.Sealed)
	at, ok := ijson.Lookup(last.Input, "/call/arguments"+pointer)
	require.True(l.t, ok)
	seal, ok := dispatch.ReadSeal(at)
	require.True(l.t, ok, "%s", at)
	return seal
}

// Equal values have equal seals within a tenant; another value, another tenant and another store have others. What is
// approved is the exact call, secrets included.
func TestB076SealsTellEqualAndNoMore(t *testing.T) {
	l := newVaultLab(t)
	first := l.propose(secret("c1", "one"))
	one := l.sealOf("/value")
	assert.Equal(t, 6, one.Length)
	l.propose(secret("c2", "two"))
	assert.Equal(t, one, l.sealOf("/value"))
	other := l.propose(secret("c3", "one", "value", "S3CR3t"))
	assert.NotEqual(t, one.Digest, l.sealOf("/value").Digest)
	assert.NotEqual(t, first.Approval.Signature, other.Approval.Signature, "another secret is another call")
	l.propose(secret("c4", "three", "value", "ключ😀"))
	assert.Equal(t, 5, l.sealOf("/value").Length, "in characters, as Rego counts them")
	l.propose(secret("c5", "four", "deep", map[string]any{"pin": 31415926, "parts": []any{"S3CR3T"}}))
	assert.Equal(t, 8, l.sealOf("/deep/pin").Length)
	assert.Equal(t, len(`["S3CR3T"]`), l.sealOf("/deep/parts").Length)
	// What an agent writes in the form of a seal is a value like any other.
	forged := map[string]any{"$sealed": one.Digest, "length": 6}
	l.propose(secret("c6", "five", "deep", map[string]any{"parts": forged}))
	assert.NotEqual(t, one.Digest, l.sealOf("/deep/parts").Digest)

	elsewhere := dispatch.Principal{Tenant: "elsewhere", Actor: "learner"}
	l.who = elsewhere
	l.make("vault-1")
	l.propose(secret("c1", "one"))
	assert.NotEqual(t, one.Digest, l.sealOf("/value").Digest)
	stranger := newVaultLab(t)
	stranger.propose(secret("c1", "one"))
	assert.NotEqual(t, one.Digest, stranger.sealOf("/value").Digest)
}

// Nothing is sealed because it is equal to what is sensitive: an agent could hide from the policy whatever it repeats.
func TestAnArgumentIsNotHiddenByRepeatingIt(t *testing.T) {
	l := newVaultLab(t)
	l.propose(secret("c1", "one", "note", map[string]any{"amount": "500"}, "value", "500"))
	l.sealOf("/value")
	var last dispatch.DecisionEntry
	entries := l.entries()
	require.NoError(t, ijson.Unmarshal(entries[len(entries)-1].Body, &last))
	amount, _ := ijson.Lookup(last.Input, "/call/arguments/note/amount")
	assert.Equal(t, `"500"`, string(amount))
}

// A call that runs again gives its caller what it gave, from what is encrypted, and the budget counts what was given.
func TestB076ReplaysAreExact(t *testing.T) {
	l := newVaultLab(t)
	// A tool that gives back what it was told, in places that nobody declared.
	l.swap("set_secret", func(inner dispatch.Tool, c dispatch.Call) dispatch.Outcome {
		o := inner.Run(t.Context(), c)
		value, _ := ijson.Lookup(c.Arguments, "/value")
		text, _ := ijson.String(value)
		var err error
		o.Value, err = ijson.Marshal(map[string]any{"echo": text, "log": []any{"set to " + text, "84"}, "by name": map[string]any{text: 1}, "n": 84})
		require.NoError(t, err)
		return o
	})
	exact := secret("c1", "one", "value", "S3CR3T 84")
	l.propose(exact)
	require.NoError(t, l.review(exact, "approved", 5))
	ran := l.propose(exact)
	require.Equal(t, dispatch.StatusOK, ran.Status)
	assert.JSONEq(t, `{"echo":"S3CR3T 84","log":["set to S3CR3T 84","84"],"by name":{"S3CR3T 84":1},"n":84}`, string(ran.Value))
	for _, open := range []func(){func() {}, func() { require.NoError(t, l.store.Close()); l.open() }} {
		open()
		replayed := l.propose(exact)
		require.Equal(t, dispatch.StatusReplayed, replayed.Status)
		assert.Equal(t, string(ran.Value), string(replayed.Value))
	}

	var action dispatch.ActionEntry
	for _, e := range l.entries() {
		assert.NotContains(t, string(e.Body), "S3CR3T")
		if e.Kind == dispatch.KindAction {
			require.NoError(t, ijson.Unmarshal(e.Body, &action))
		}
	}
	assert.Equal(t, len(ran.Value), action.ValueBytes)
	seal := func(value string) string {
		made, err := dispatch.SealOf(l.store.Key(), l.who.Tenant, ijson.Raw(value))
		require.NoError(t, err)
		b, err := ijson.Marshal(made)
		require.NoError(t, err)
		return string(b)
	}
	assert.JSONEq(t, `{"echo":`+seal(`"S3CR3T 84"`)+`,"log":[`+seal(`"set to S3CR3T 84"`)+`,"84"],"by name":`+seal(`{"S3CR3T 84":1}`)+`,"n":84}`, string(action.Value))
	assert.JSONEq(t, `{"value":`+seal(`"S3CR3T 84"`)+`}`, string(action.Record))
	task, err := l.store.Task(t.Context(), l.key())
	require.NoError(t, err)
	assert.EqualValues(t, len(ran.Value), task.Spent.Output)

	want, got := fromStore(t, l.store, l.who.Tenant), fromEntries(t, l.entries())
	assert.Equal(t, want, got, "all but what is encrypted is in the entries")
	for _, e := range l.entries() {
		var recorded dispatch.DecisionEntry
		if e.Kind != dispatch.KindDecision {
			continue
		}
		require.NoError(t, ijson.Unmarshal(e.Body, &recorded))
		again, err := dispatch.Judge(t.Context(), l.policy, l.policy.Version(), recorded.Input)
		require.NoError(t, err)
		assert.Equal(t, recorded.Decision, again, "what was recorded is what was decided on")
	}
}

// What is sensitive in what a tool gives is so wherever else it gives it.
func TestB076OutputRepeatsItself(t *testing.T) {
	l := newVaultLab(t)
	l.swap("get_secret", func(_ dispatch.Tool, _ dispatch.Call) dispatch.Outcome {
		return dispatch.Outcome{Status: dispatch.StatusOK, Ran: true, Value: ijson.Raw(`{"text":"D0CUM3NT","url":"/?key=D0CUM3NT","way":"in"}`)}
	})
	r := l.propose(call("d1", "get_secret", map[string]any{"path": "/vault/key"}))
	assert.Equal(t, `{"text":"D0CUM3NT","url":"/?key=D0CUM3NT","way":"in"}`, string(r.Value))
	entries := l.entries()
	last := string(entries[len(entries)-1].Body)
	assert.NotContains(t, last, "D0CUM3NT")
	assert.Contains(t, last, `"way":"in"`)
}

// swap gives a tool another way to run.
func (l *lab) swap(tool string, run func(dispatch.Tool, dispatch.Call) dispatch.Outcome) {
	changed := *l.snapshot
	changed.Tools = map[string]dispatch.Tool{}
	for name, t := range l.snapshot.Tools {
		changed.Tools[name] = t
	}
	changed.Tools[tool] = tools.Guarded(swapped{l.snapshot.Tools[tool], run})
	l.snapshot = &changed
	l.dispatcher.Use(l.snapshot)
}

type swapped struct {
	dispatch.Tool
	run func(dispatch.Tool, dispatch.Call) dispatch.Outcome
}

func (s swapped) Run(_ context.Context, c dispatch.Call) dispatch.Outcome { return s.run(s.Tool, c) }

// A tool that breaks does not say over what, to anybody.
func TestB076BrokenToolsKeepTheirSecrets(t *testing.T) {
	for name, run := range map[string]func(dispatch.Tool, dispatch.Call) dispatch.Outcome{
		"panics": func(_ dispatch.Tool, c dispatch.Call) dispatch.Outcome { panic(string(c.Arguments)) },
		"says so": func(_ dispatch.Tool, c dispatch.Call) dispatch.Outcome {
			return dispatch.Outcome{Status: dispatch.StatusTimeout, Detail: string(c.Arguments)}
		},
		"is no JSON": func(_ dispatch.Tool, c dispatch.Call) dispatch.Outcome {
			return dispatch.Outcome{Status: dispatch.StatusOK, Ran: true, Value: ijson.Raw(`{"S3CR3T":{"S3CR3T":1,"S3CR3T":2}}`)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newVaultLab(t)
			l.swap("set_secret", run)
			l.propose(secret("c1", "one"))
			require.NoError(t, l.review(secret("c1", "one"), "approved", 5))
			r := l.propose(secret("c1", "one"))
			assert.NotEqual(t, dispatch.StatusOK, r.Status)
			for _, e := range l.entries() {
				assert.NotContains(t, string(e.Body), "S3CR3T")
			}
		})
	}
	l := newVaultLab(t)
	l.swap("get_secret", func(_ dispatch.Tool, c dispatch.Call) dispatch.Outcome {
		return dispatch.Outcome{Status: dispatch.StatusOK, Ran: true, Value: ijson.Raw(`{"S3CR3T":["S3CR3T"],"text":{"S3CR3T":1}}`)}
	})
	r := l.propose(call("d1", "get_secret", map[string]any{"path": "/vault/key"}))
	assert.Equal(t, dispatch.StatusInvalidResult, r.Status)
	entries := l.entries()
	last := string(entries[len(entries)-1].Body)
	assert.Contains(t, last, "get_secret: the result breaks the output schema: has something in it under a name that is not shown, which must be a string; /text must be a string")
	assert.NotContains(t, last, "S3CR3T")
}

// What waits too long, is withdrawn or is asked for in a dry run leaves nothing behind either, and what cannot come back
// keeps not even what is encrypted.
func TestB076SettledCallsKeepNothing(t *testing.T) {
	l := newVaultLab(t)
	exact := func() map[string]bool {
		out := map[string]bool{}
		all, err := l.store.Approvals(t.Context(), l.who.Tenant, "")
		require.NoError(t, err)
		for _, a := range all {
			one, err := l.store.Approval(t.Context(), l.who.Tenant, a.ID)
			require.NoError(t, err)
			out[fmt.Sprint(one.CallID(), " ", one.State)] = one.Exact != nil
		}
		return out
	}
	for _, id := range []string{"consumed", "rejected", "expired", "withdrawn"} {
		l.propose(secret(id, id))
	}
	require.NoError(t, l.review(secret("consumed", "consumed"), "approved", 5))
	require.Equal(t, dispatch.StatusOK, l.propose(secret("consumed", "consumed")).Status)
	require.NoError(t, l.review(secret("rejected", "rejected"), "rejected"))
	assert.Equal(t, map[string]bool{"consumed consumed": false, "rejected rejected": true, "expired pending": true, "withdrawn pending": true}, exact())
	l.now = l.now.Add(25 * time.Hour)
	require.NoError(t, l.dispatcher.Expire(t.Context(), l.who.Tenant))
	_, err := l.dispatcher.ReopenCall(t.Context(), l.who, l.task, dispatch.Enforce, []byte(secret("withdrawn", "withdrawn")), "maya", "")
	require.NoError(t, err)
	require.NoError(t, l.dispatcher.Cancel(t.Context(), l.key(), "operator"))
	assert.Equal(t, map[string]bool{"consumed consumed": false, "rejected rejected": true, "expired expired": true, "withdrawn withdrawn": false}, exact())

	// The final ones are refused for what they are, and not as damaged.
	all, err := l.store.Approvals(t.Context(), l.who.Tenant, "")
	require.NoError(t, err)
	_, err = l.dispatcher.Review(t.Context(), l.who.Tenant, all[0].ID, all[0].Signature, dispatch.Review{Reviewer: "maya", Decision: "approved"})
	require.ErrorIs(t, err, dispatch.ErrReviewCancelled)
	require.NoError(t, l.store.Close())
	noFaults(t, l.file)
	l.open()
}

// A stored call that is not the signed one is seen, also where its exact bytes are elsewhere.
func TestAChangedSealedCallIsSeen(t *testing.T) {
	l := newVaultLab(t)
	asked := l.propose(secret("c1", "one")).Approval
	a, err := l.store.Approval(t.Context(), l.who.Tenant, asked.ID)
	require.NoError(t, err)
	assert.JSONEq(t, secret("c1", "one"), string(a.Exact))
	for name, change := range map[string]func(*dispatch.Approval){
		"another secret": func(a *dispatch.Approval) { a.Exact = ijson.Raw(secret("c1", "one", "value", "84")) },
		"no secret":      func(a *dispatch.Approval) { a.Exact = nil },
		"another tool":   func(a *dispatch.Approval) { a.Proposal = ijson.Raw(call("c1", "get_secret", nil)) },
		"another id":     func(a *dispatch.Approval) { a.Proposal = ijson.Raw(secret("c2", "one")) },
	} {
		changed := a
		change(&changed)
		d := dispatch.New(handEdited{l.store, changed}, l.store.Key(), l.clock, l.snapshot)
		_, err = d.Review(t.Context(), l.who.Tenant, a.ID, a.Signature, dispatch.Review{Reviewer: "maya", Decision: "approved"})
		assert.ErrorIs(t, err, dispatch.ErrProposalDiffers, name)
	}
	_, err = l.dispatcher.Review(t.Context(), l.who.Tenant, a.ID, a.Signature, dispatch.Review{Reviewer: "maya", Decision: "approved"})
	require.NoError(t, err)
}

// handEdited is a store in which somebody has changed one approval.
type handEdited struct {
	dispatch.Store
	a dispatch.Approval
}

func (s handEdited) Approval(context.Context, string, string) (dispatch.Approval, error) {
	return s.a, nil
}

// onWrite is an output that does something before it takes the first that comes.
type onWrite struct {
	bytes.Buffer
	first func()
}

func (w *onWrite) Write(b []byte) (int, error) {
	if first := w.first; first != nil {
		w.first = nil
		first()
	}
	return w.Buffer.Write(b)
}

// approvedCalls are calls with a secret that somebody approved.
func (v *vault) approvedCalls(names ...string) {
	v.t.Helper()
	require.NoError(v.t, os.MkdirAll(v.path("state"), 0o700))
	for _, name := range names {
		v.do(exitWaiting, secret(name, name), "run")
		v.do(exitOK, secret(name, name), "review", "approve", "--proposal", "-", "--lifetime", "5")
	}
}

// What another run used up after this one had listed it is not proposed once more, with seals for what is gone.
func TestApprovedCallsThatAnotherRunIsQuickerWith(t *testing.T) {
	v := newVault(t)
	v.approvedCalls("one", "two")
	out := &onWrite{first: func() {
		assert.Contains(t, v.do(exitOK, "", "run", "--approved"), `{"name":"two"}`)
	}}
	var errs bytes.Buffer
	code := run(t.Context(), []string{"run", "--approved", "--config", v.path("config/config.yaml"), "--state", v.path("state/govern.db")},
		strings.NewReader(""), out, &errs)
	require.Equal(t, exitOK, code, errs.String())
	assert.Equal(t, 1, strings.Count(out.String(), `"status"`), out.String())
	assert.Contains(t, out.String(), `{"name":"one"}`)
}

// A call whose exact bytes were taken away is neither proposed nor shown with seals in their place.
func TestApprovedCallsWithoutTheirExactBytes(t *testing.T) {
	v := newVault(t)
	v.approvedCalls("one")
	before := v.do(exitOK, "", "log", "export")
	tamper(t, v.path("state/govern.db"), "UPDATE approvals SET sealed = NULL")
	assert.Empty(t, v.do(exitBroken, "", "run", "--approved"))
	assert.Contains(t, v.outputs["run --approved"], "the stored call is not the one that was signed")
	id := ""
	query(t, v.path("state/govern.db"), "SELECT id FROM approvals", func(stmt *zsqlite.Stmt) { id = stmt.ColumnText(0) })
	for _, format := range []string{"text", "json"} {
		assert.Empty(t, v.do(exitBroken, "", "review", "show", id, "--format", format))
	}
	assert.Equal(t, before, v.do(exitOK, "", "log", "export"))
}
