package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/strictyaml"
)

func builtin(t testing.TB) config.Config {
	t.Helper()
	c, err := config.Builtin(govern.Files)
	require.NoError(t, err)
	return c
}

// read reads a configuration beside other files.
func read(t testing.TB, text string, others ...string) (config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i+1 < len(others); i += 2 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, others[i]), []byte(others[i+1]), 0o600))
	}
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c, err := config.Read(file, builtin(t))
	if err != nil {
		err = &shortened{strings.ReplaceAll(err.Error(), dir+"/", "")}
	}
	return c, err
}

type shortened struct{ text string }

func (s *shortened) Error() string { return s.text }

// A key that does not exist is refused at every depth, with its whole path and the nearest that does (B028, B104): a
// narrowing field that is passed over would be a permission.
func TestB028B104UnknownKeys(t *testing.T) {
	for text, want := range map[string]string{
		"defualt_effect: deny\n": `config.yaml:1: defualt_effect: unknown key; known keys are state, policy`,
		"profils: {}\n":          `config.yaml:1: profils: unknown key; did you mean "profiles"?`,
		"max_steps: 3\n":         `config.yaml:1: max_steps: unknown key here; it belongs to profiles.NAME`,
		"tasks: {t: {profile: w, actor: a, max_pending: 3}}\n":           `config.yaml:1: tasks.t.max_pending: unknown key here; it belongs to profiles.NAME`,
		"profiles: {w: {max_steps: 3, approval: always}}\n":              `config.yaml:1: profiles.w.approval: unknown key here; it belongs to tools.NAME`,
		"profiles: {w: {max_steps: 3, limits: {}}}\n":                    `config.yaml:1: profiles.w.limits: unknown key here; it belongs to tools.NAME or the top of the file`,
		"profiles: {w: {max_steps: 3, attempts: 3}}\n":                   `config.yaml:1: profiles.w.attempts: unknown key here; it belongs to profiles.NAME.budgets`,
		"profiles:\n  w:\n    max_steps: 3\n    tool: [calculate]\n":     `config.yaml:4: profiles.w.tool: unknown key; did you mean "tools"?`,
		"profiles: {w: {max_steps: 3, approval: {ttl_secnds: 60}}}\n":    `config.yaml:1: profiles.w.approval: unknown key here; it belongs to tools.NAME`,
		"tasks: {t: {profile: w, actr: a}}\n":                            `config.yaml:1: tasks.t.actr: unknown key; did you mean "actor"?`,
		"tools:\n  shell:\n    local: record\n    commandPrefixx: npm\n": `config.yaml:4: tools.shell.commandPrefixx: unknown key`,
		"tools: {shell: {aproval: always}}\n":                            `config.yaml:1: tools.shell.aproval: unknown key; did you mean "approval"?`,
		"tools: {shell: {limits: {output_byte: 1}}}\n":                   `config.yaml:1: tools.shell.limits.output_byte: unknown key; did you mean "output_bytes"?`,
		"tools: {shell: {Approval: always}}\n":                           `config.yaml:1: tools.shell.Approval: unknown key; did you mean "approval"?`,
		"limits: {proposal_byte: 4096}\n":                                `config.yaml:1: limits.proposal_byte: unknown key; did you mean "proposal_bytes"?`,
		"reviewers: {maya: {role: [x]}}\n":                               `config.yaml:1: reviewers.maya.role: unknown key; did you mean "roles"?`,
		"resources: {readible: {w: {/a.txt: true}}}\n":                   `config.yaml:1: resources.readible: unknown kind of resource "readible"; did you mean "readable"?`,
		"profiles: {w: {max_steps: 3}}\nprofiles: {}\n":                  `config.yaml:2: profiles: repeated key`,
		"tools: {a: {effect: read, effect: write}}\n":                    `config.yaml:1: tools.a.effect: repeated key`,
	} {
		_, err := read(t, text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"profiles: {w: {tools: []}}\n":                                                       `config.yaml:1: profiles.w.max_steps: it must state how many`,
		"profiles: {w: {max_steps: 1000001}}\n":                                              `profiles.w.max_steps: it must state how many proposals a task may make, 1 to 1000000`,
		"profiles: {w: {max_steps: 3, max_pending: 0}}\n":                                    `config.yaml:1: profiles.w.max_pending: it is 0; give 1 to 10000`,
		"profiles:\n  w:\n    max_steps: 3\n    tools:\n    - a\n    - A\n    - a\n":         `config.yaml:7: profiles.w.tools[2]: "a" is named twice; keep one`,
		"profiles: {w: {max_steps: 3, scopes: [\"\"]}}\n":                                    `profiles.w.scopes[0]: an empty name`,
		"tasks: {t: {profile: w, actor: a}}\n":                                               `tasks.t.profile: unknown profile "w"; there is none`,
		"profiles: {w: {max_steps: 3}}\ntasks: {t: {profile: W, actor: a}}\n":                `config.yaml:2: tasks.t.profile: unknown profile "W"; did you mean "w"?`,
		"profiles: {w: {max_steps: 3}}\ntasks: {t: {profile: w}}\n":                          `config.yaml:2: tasks.t.actor: it is missing`,
		"profiles: {w: {max_steps: 3}}\ntasks: {t: {profile: w, actor: a, mode: dry-run}}\n": `tasks.t.mode: unknown mode "dry-run"; did you mean "dry_run"?`,
		"profiles: {}\ntools:\n":                                                             `config.yaml:2: tools: it has no value; write one, or remove the key`,
		"state: \"\"\n":                                                                      `config.yaml:1: state: it has no value`,
		"limits: {decision_time: \"\"}\n":                                                    `config.yaml:1: limits.decision_time: it has no value`,
		"limits: {proposal_bytes: 0}\n":                                                      `config.yaml:1: limits.proposal_bytes: it is 0; give 1024 to 16777216`,
		"profiles: {w: {max_steps: 3}}\ntasks: {t: {profile: w, actor: a, mode: \"\"}}\n":    `config.yaml:2: tasks.t.mode: it has no value`,
		"tools: {a: {effect: \"\"}}\n":                                                       `config.yaml:1: tools.a.effect: it has no value`,
		"tools: {a: {approval: \"\"}}\n":                                                     `config.yaml:1: tools.a.approval: it has no value`,
		"resources: ~\n":                                                                     `config.yaml:1: resources: it has no value`,
		"profiles: {w: {max_steps: 3, tools: null}}\n":                                       `config.yaml:1: profiles.w.tools: it has no value`,
		"profiles: {schema: {max_steps: 3, max_pending: ~}}\n":                               `config.yaml:1: profiles.schema.max_pending: it has no value`,
		"tools: {a: {schema: null}}\n":                                                       `tools.a.schema: it has no value`,
		"tools: {a: {local: record}}\n":                                                      `tools.a.schema: it is missing`,
		"tools: {a: {schema: 7}}\n":                                                          `tools.a.schema: wants an object, or the path of a JSON file`,
		"tools: {a: {schema: ''}}\n":                                                         `tools.a.schema: it has no value`,
		"tools: {a: {schema: none.json}}\n":                                                  `tools.a.schema: open none.json: no such file or directory; a path starts at the folder of the configuration`,
		"tools: {a: {schema: broken.json}}\n":                                                `tools.a.schema: broken.json: at /a (byte 7): repeated name`,
		"tools: {a: {schema: list.json}}\n":                                                  `tools.a.schema: list.json: wants an object`,
		"resources: {readable: [/a.txt]}\n":                                                  `resources.readable: wants named sets of targets`,
		"resources: {readable: {w: [/a.txt]}}\n":                                             `resources.readable.w: wants targets, like`,
		"resources: {readable: {w: {/a.txt: false}}}\n":                                      `resources.readable.w."/a.txt": it must be true`,
		"resources: {readable: {w: {/a.txt: yes}}}\n":                                        `must be true`,
		"resources: sets.json\n":                                                             `config.yaml:1: resources.readable.w: sets.json: wants targets`,
		"limits: {proposal_bytes: 10}\n":                                                     `limits.proposal_bytes: it is 10; give 1024 to 16777216`,
		"limits: {decision_time: 5}\n":                                                       `limits.decision_time: wants a string, not a number; put it in quotes`,
		"limits: {decision_time: \"5\"}\n":                                                   `limits.decision_time: it is "5"; give a duration with its unit`,
		"limits: {decision_time: 2h}\n":                                                      `10ms to 1m0s`,
		"log: {every: 60}\n":                                                                 `log.every: wants a string, not a number; put it in quotes`,
		"log: {every: \"60\"}\n":                                                             `log.every: it is "60"; give a duration with its unit, 1s to 24h0m0s`,
		"log: {every: 999ms}\n":                                                              `log.every: it is "999ms"`,
		"log: {every: 25h}\n":                                                                `log.every: it is "25h"`,
		"log: {checkpoints: [a, \"\"]}\n":                                                    `log.checkpoints[1]: an empty name`,
		"log: {checkpoints: [a, a]}\n":                                                       `log.checkpoints[1]: "a" is named twice`,
		"log: {signing_key: \"\"}\n":                                                         `log.signing_key: it has no value`,
		"log: {token: x}\n":                                                                  `log.token: unknown key; known keys are signing_key, checkpoints, every, checkpoint_token_file`,
		"reviewers: {maya: {roles: [x, x]}}\n":                                               `reviewers.maya.roles[1]: "x" is named twice`,
		"reviewers: {\"\": {roles: [x]}}\n":                                                  `reviewers."": a reviewer without a name`,
		"reviewers: {maya: {roles: [\"\"]}}\n":                                               `reviewers.maya.roles[0]: an empty name`,
		"reviewers: {maya: [lead]}\n":                                                        `reviewers.maya: wants an object`,
		"policy: [\"\"]\n":                                                                   `policy[0]: an empty path`,
		"site: [a, \"\"]\n":                                                                  `site[1]: an empty path`,
		"org: [\"\"]\n":                                                                      `org[0]: an empty path`,
		"profiles: {w: {max_steps: 3, max_pending: 10001}}\n":                                `profiles.w.max_pending: it is 10001; give 1 to 10000`,
		"profiles: {w: {max_steps: 3, readable: [a, a]}}\n":                                  `profiles.w.readable[1]: "a" is named twice`,
		"profiles: {w: {max_steps: 3, writable: [\"\"]}}\n":                                  `profiles.w.writable[0]: an empty name`,
		"resources: {readable: {\"\": {/a.txt: true}}}\n":                                    `resources.readable."": a set without a name`,
		"limits: {proposal_bytes: 16777217}\n":                                               `limits.proposal_bytes: it is 16777217; give 1024 to 16777216`,
		"limits: {decision_time: 9ms}\n":                                                     `limits.decision_time: it is "9ms"; give a duration with its unit, 10ms to 1m0s`,
	} {
		_, err := read(t, text, "broken.json", `{"a":1,"a":2}`, "list.json", `[]`, "sets.json", `{"readable":{"w":["/a.txt"]}}`)
		assert.ErrorContains(t, err, want, text)
	}
}

// Everything that is wrong is said at once.
func TestAllFaultsAreSaid(t *testing.T) {
	_, err := read(t, "profiles:\n  a: {}\n  b: {}\ntasks: {t: {profile: c}}\n")
	require.Error(t, err)
	assert.Len(t, strings.Split(err.Error(), "\n"), 4)
	_, err = read(t, "profiles: {a: {}}\ntools: {x: {schema: none.json}, y: {schema: missing.json}}\n")
	for _, want := range []string{"tools.x.schema: open none.json", "tools.y.schema: open missing.json", "profiles.a.max_steps"} {
		assert.ErrorContains(t, err, want)
	}
}

// Names that differ in case alone stay apart, in every list and map (B024): none takes the other's permission.
func TestB024NamesKeepTheirCase(t *testing.T) {
	c, err := read(t, `
profiles:
  ACME: {max_steps: 1, tools: [GitHub_CreateIssue], scopes: [Write], readable: [Docs]}
  acme: {max_steps: 2, tools: [github_createissue], scopes: [write], readable: [docs]}
tasks:
  T-1: {profile: ACME, actor: Maya}
  t-1: {profile: acme, actor: maya}
tools:
  GitHub_CreateIssue: {schema: {}, approval: always, labels: [X, x]}
  github_createissue: {schema: {}, approval: by_rule}
resources:
  readable: {Docs: {/A.txt: true, /a.txt: true}, docs: {/a.txt: true}}
  writable: {Out: {X: true}, out: {x: true}}
documents:
  /A.txt: {text: A, version: v1, content_type: text/plain}
  /a.txt: {text: a, version: v1, content_type: text/plain}
reviewers:
  Maya: {roles: [Finance, finance]}
  maya: {}
`)
	require.NoError(t, err)
	assert.Equal(t, []string{"GitHub_CreateIssue"}, c.Profiles["ACME"].Tools)
	assert.Equal(t, 2, c.Profiles["acme"].MaxSteps)
	assert.Equal(t, []string{"Write"}, c.Profiles["ACME"].Scopes)
	assert.Equal(t, "Maya", c.Tasks["T-1"].Actor)
	assert.Equal(t, "acme", c.Tasks["t-1"].Profile)
	assert.Equal(t, "always", c.Tools["GitHub_CreateIssue"].Approval)
	assert.Equal(t, "by_rule", c.Tools["github_createissue"].Approval)
	assert.Equal(t, []string{"X", "x"}, c.Tools["GitHub_CreateIssue"].Labels)
	assert.JSONEq(t, `{"readable":{"Docs":{"/A.txt":true,"/a.txt":true},"docs":{"/a.txt":true}},"writable":{"Out":{"X":true},"out":{"x":true}}}`, string(c.Resources.JSON))
	assert.JSONEq(t, `{"/A.txt":{"text":"A","version":"v1","content_type":"text/plain"},"/a.txt":{"text":"a","version":"v1","content_type":"text/plain"}}`, string(c.Documents.JSON))
	assert.Equal(t, []string{"Finance", "finance"}, c.Reviewers["Maya"].Roles)
	assert.Empty(t, c.Reviewers["maya"].Roles)
	assert.Len(t, c.Profiles, 2)
}

// A schema goes through the loader untouched: keywords keep their capitals, numbers their digits, members their names.
func TestSchemasSurviveTheLoader(t *testing.T) {
	c, err := read(t, `
tools:
  a:
    schema:
      $schema: https://json-schema.org/draft/2020-12/schema
      type: object
      properties: {Path: {type: string, minLength: 1, maxLength: 400}, path: {type: string}, "on": {type: boolean}}
      additionalProperties: false
      required: [Path]
      x-Custom: 1.50
      default: null
    output: {default: null}
  b: {schema: b.json, output: b.json}
`, "b.json", `{"additionalProperties":false,"patternProperties":{"^A":{"minItems":2}}}`)
	require.NoError(t, err)
	assert.JSONEq(t, `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"properties":{"Path":{"type":"string","minLength":1,"maxLength":400},"path":{"type":"string"},"on":{"type":"boolean"}},
		"additionalProperties":false,"required":["Path"],"x-Custom":1.5,"default":null}`, string(c.Tools["a"].Schema.JSON))
	assert.Equal(t, `{"additionalProperties":false,"patternProperties":{"^A":{"minItems":2}}}`, string(c.Tools["b"].Schema.JSON))
	assert.Equal(t, `{"default":null}`, string(c.Tools["a"].Output.JSON))
	assert.Equal(t, "b.json", c.Tools["b"].Output.File)
	assert.Len(t, c.Files(), 3, "every file that was read is known")
}

// A file that is too long is refused, and not read as far as it goes. What was read is known even so.
func TestFileThatIsTooLong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := append([]byte("profiles: {}\n"), bytes.Repeat([]byte("# and so on\n"), 16<<20/12)...)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.Greater(t, len(text), 16<<20)
	c, err := config.Read(file, builtin(t))
	assert.EqualError(t, err, file+" is longer than 16777216 bytes; check the path")
	assert.Equal(t, []string{file}, c.Files())
}

// What a file leaves out of tools, resources and documents is built in; an empty one is empty.
func TestPartsThatAreLeftOut(t *testing.T) {
	c, err := read(t, "profiles: {}\n")
	require.NoError(t, err)
	assert.Equal(t, builtin(t).Tools, c.Tools)
	assert.Equal(t, builtin(t).Documents, c.Documents)
	assert.Equal(t, builtin(t).Resources, c.Resources)
	assert.False(t, c.OwnResources())
	assert.Equal(t, config.DefaultState, c.State)
	assert.Equal(t, ijson.DefaultLimits, c.Limits.Proposals())
	assert.Equal(t, time.Second, c.Limits.Decision())

	c, err = read(t, "tools: {}\nresources: {}\ndocuments: {}\n")
	require.NoError(t, err)
	assert.Empty(t, c.Tools)
	assert.True(t, c.OwnResources())
	assert.Equal(t, `{}`, string(c.Documents.JSON))
	assert.False(t, builtin(t).OwnResources())
}

func flags(given map[string]string) *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, name := range []string{"state", "task", "actor"} {
		f.String(name, "", "")
	}
	for _, name := range []string{"policy", "org", "site"} {
		f.StringArray(name, nil, "")
	}
	for name, value := range given {
		if err := f.Set(name, value); err != nil {
			panic(err)
		}
	}
	return f
}

// Flags stand over variables, and those over the file, also for what the file does not say; every setting alike.
func TestOverlay(t *testing.T) {
	bare, err := read(t, "profiles: {}\n")
	require.NoError(t, err)
	full, err := read(t, "state: f.db\npolicy: [f]\norg: [f]\nsite: [f]\ntask: f\nactor: f\nlimits: {proposal_bytes: 2048, decision_time: 2s}\nlog: {signing_key: f, every: 2s, checkpoint_token_file: f}\n")
	require.NoError(t, err)
	get := func(c config.Config) map[string]any {
		return map[string]any{"state": c.State, "policy": c.Policy, "org": c.Org, "site": c.Site, "task": c.Task, "actor": c.Actor,
			"limits.proposal_bytes": c.Limits.Proposals().Bytes, "limits.decision_time": c.Limits.Decision(),
			"log.signing_key": c.Log.SigningKey, "log.every": c.Log.Interval(), "log.checkpoint_token_file": c.Log.TokenFile}
	}
	env := map[string]any{"state": "e.db", "policy": []string{"e", "e2"}, "org": []string{"e", "e2"}, "site": []string{"e", "e2"}, "task": "e", "actor": "e",
		"limits.proposal_bytes": 4096, "limits.decision_time": 3 * time.Second,
		"log.signing_key": "e", "log.every": 3 * time.Second, "log.checkpoint_token_file": "e"}
	for _, file := range []config.Config{bare, full} {
		for _, v := range []string{"STATE=e.db", "POLICY=e:e2", "ORG=e:e2", "SITE=e:e2", "TASK=e", "ACTOR=e", "LIMITS_PROPOSAL_BYTES=4096", "LIMITS_DECISION_TIME=3s",
			"LOG_SIGNING_KEY=e", "LOG_EVERY=3s", "LOG_CHECKPOINT_TOKEN_FILE=e"} {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv("GOVERN_"+name, value)
		}
		require.NoError(t, config.CheckEnv(os.Environ()))
		c, err := file.Overlay(flags(nil))
		require.NoError(t, err)
		assert.Equal(t, env, get(c))
		c, err = file.Overlay(flags(map[string]string{"state": "g.db", "policy": "g", "org": "g", "site": "g", "task": "g", "actor": "g"}))
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"state": "g.db", "policy": []string{"g"}, "org": []string{"g"}, "site": []string{"g"}, "task": "g", "actor": "g",
			"limits.proposal_bytes": 4096, "limits.decision_time": 3 * time.Second,
			"log.signing_key": "e", "log.every": 3 * time.Second, "log.checkpoint_token_file": "e"}, get(c))
	}
}

// A variable is honoured or refused.
func TestVariablesThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"GOVERN_PROFILES":                 "profiles are set in the configuration file alone",
		"GOVERN_PROFILES_W_MAX_STEPS":     "profiles are set in the configuration file alone",
		"GOVERN_STAT":                     "did you mean GOVERN_STATE?",
		"GOVERN_limits_proposal_bytes":    "did you mean GOVERN_LIMITS_PROPOSAL_BYTES?",
		"GOVERN_":                         "unknown",
		"GOVERN_LIMITS":                   "unknown",
		"GOVERN_TOOLS_CALCULATE_APPROVAL": "tools are set in the configuration file alone",
		"GOVERN_X":                        "there are GOVERN_CONFIG, GOVERN_STATE",
		"GOVERN_TASKS":                    "tasks are set in the configuration file alone",
		"GOVERN_RESOURCES_READABLE":       "resources are set in the configuration file alone",
		"GOVERN_DOCUMENTS":                "documents are set in the configuration file alone",
		"GOVERN_LOG_CHECKPOINTS":          "log.checkpoints are set in the configuration file alone",
		"GOVERN_LOG_EVERYY":               "did you mean GOVERN_LOG_EVERY?",
		"GOVERN_REVIEWERS_MAYA_ROLES":     "reviewers are set in the configuration file alone",
	} {
		assert.ErrorContains(t, config.CheckEnv([]string{"PATH=/bin", name + "=x"}), want, name)
	}
	c, err := read(t, "profiles: {}\n")
	require.NoError(t, err)
	for v, want := range map[string]string{
		"STATE=":                      "state is set to nothing; give a value, or unset GOVERN_STATE",
		"LIMITS_PROPOSAL_BYTES=":      "set to nothing",
		"LIMITS_PROPOSAL_BYTES=1e6":   `GOVERN_LIMITS_PROPOSAL_BYTES is "1e6", which is no whole number`,
		"LIMITS_PROPOSAL_BYTES= 4096": "which is no whole number",
		"LIMITS_PROPOSAL_BYTES=0":     "GOVERN_LIMITS_PROPOSAL_BYTES: it is 0; give 1024 to",
		"LIMITS_PROPOSAL_BYTES=7":     "GOVERN_LIMITS_PROPOSAL_BYTES: it is 7; give 1024 to",
		"LIMITS_DECISION_TIME=soon":   `GOVERN_LIMITS_DECISION_TIME: it is "soon"`,
		"LOG_EVERY=soon":              `GOVERN_LOG_EVERY: it is "soon"`,
		"SITE=a::b":                   "GOVERN_SITE: an empty path",
	} {
		t.Run(v, func(t *testing.T) {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv("GOVERN_"+name, value)
			_, err := c.Overlay(flags(nil))
			assert.ErrorContains(t, err, want)
		})
	}
}

// Every value says where it came from.
func TestValuesSayWhereTheyCameFrom(t *testing.T) {
	c, err := read(t, `task: t-1
profiles:
  w:
    max_steps: 3
    tools: []
`)
	require.NoError(t, err)
	t.Setenv("GOVERN_ACTOR", "maya")
	t.Setenv("GOVERN_LIMITS_PROPOSAL_BYTES", "2048")
	c, err = c.Overlay(flags(map[string]string{"task": "t-2"}))
	require.NoError(t, err)
	values, err := c.Values()
	require.NoError(t, err)
	got := map[string]string{}
	for _, v := range values {
		require.NotContains(t, got, v.Key, "each key once")
		got[v.Key] = v.Text() + " < " + regexp.MustCompile(`^the built-in config.yaml:\d+$`).ReplaceAllString(filepath.Base(v.From), "built in")
	}
	want := map[string]string{
		"task":                      "t-2 < --task",
		"actor":                     "maya < GOVERN_ACTOR",
		"state":                     "govern.db < default",
		"profiles.w.max_steps":      "3 < config.yaml:4",
		"profiles.w.tools":          "[] < config.yaml:5",
		"profiles.w.max_pending":    "10 < default",
		"limits.proposal_bytes":     "2048 < GOVERN_LIMITS_PROPOSAL_BYTES",
		"limits.decision_time":      "1s < default",
		"log.every":                 "1m0s < default",
		"tools.calculate.approval":  "by_rule < default",
		"tools.record_draft.schema": "schemas/record_draft.json < built in",
		"resources":                 "data/readable.json < built in",
	}
	for key, w := range want {
		assert.Equal(t, w, got[key], key)
	}
}

// What a tool leaves out is shown as what it means: a write that asks a person.
func TestDefaultsOfTools(t *testing.T) {
	c, err := read(t, "tools: {a: {schema: {}}, b: {schema: {}, effect: write}, c: {schema: {}, effect: read}, d: {schema: {}, effect: pure}}\n")
	require.NoError(t, err)
	values, err := c.Values()
	require.NoError(t, err)
	got := map[string]string{}
	for _, v := range values {
		got[v.Key] = v.Text()
	}
	assert.Equal(t, "write", got["tools.a.effect"])
	for name, want := range map[string]string{"a": "always", "b": "always", "c": "by_rule", "d": "by_rule"} {
		assert.Equal(t, want, got["tools."+name+".approval"], name)
	}
}

// The part that the policy version covers: permissions and limits, and not names of files, tasks, people or comments.
func TestCanonical(t *testing.T) {
	canonical := func(text string) string {
		c, err := read(t, text)
		require.NoError(t, err)
		raw, err := c.Canonical()
		require.NoError(t, err)
		return string(raw)
	}
	base := "profiles: {w: {max_steps: 3, tools: [a, b], scopes: [x, y], readable: [r, s], writable: [u, v]}}\n"
	assert.Equal(t, canonical(base), canonical("# a comment\n"+base+"state: x.db\ntask: t\nactor: a\ntasks: {t: {profile: w, actor: a}}\nreviewers: {m: {roles: [r]}}\n"))
	assert.Equal(t, canonical(base), canonical("profiles: {w: {tools: [b, a], writable: [v, u], scopes: [y, x], readable: [s, r], max_steps: 3, max_pending: 10}}\nlimits: {decision_time: 1000ms, proposal_bytes: 1048576}\n"))
	for from, to := range map[string]string{"[a, b]": "[a]", "[x, y]": "[x, Y]", "[r, s]": "[]", "[u, v]": "[u]", "max_steps: 3": "max_steps: 4",
		"w: {": "W: {", "{max": "{max_pending: 9, max"} {
		require.Contains(t, base, from)
		assert.NotEqual(t, canonical(base), canonical(strings.Replace(base, from, to, 1)), from)
	}
	assert.NotEqual(t, canonical(base), canonical(base+"limits: {decision_time: 2s}\n"))
	assert.NotEqual(t, canonical(base), canonical(base+"limits: {proposal_bytes: 2048}\n"))
}

// The built-in configuration is read by the same rules.
func TestBuiltinIsStrict(t *testing.T) {
	_, err := config.Builtin(fstest.MapFS{"config.yaml": {Data: []byte("stat: x\n")}})
	assert.ErrorContains(t, err, `the built-in config.yaml:1: stat: unknown key; did you mean "state"?`)
	_, err = config.Builtin(fstest.MapFS{})
	assert.Error(t, err)
}

// A pipe that nobody writes to would be waited for without end.
func TestPipesAreNotWaitedFor(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := config.Read(pipe, builtin(t))
	assert.EqualError(t, err, pipe+" is no regular file; check the path")
}

// FuzzRead: whatever a configuration holds, what is wrong with it is said with its place, or it is one that means the same
// whenever and in whatever form it is read.
func FuzzRead(f *testing.F) {
	shipped, err := govern.Files.ReadFile("config.yaml")
	require.NoError(f, err)
	f.Add(shipped)
	for _, text := range []string{"profiles: {w: {max_steps: 3}}\n", "tools: {a: {schema: {}}}\n", "resources: {readable: {w: {a: true}}}\n", "tools: {a: {schema: x.json}}\n",
		"limits: {decision_time: 1s}\n", "a: &x 1\nb: *x\n", "{}", "---\n---\n", "state: \"a\\e\\nb\"\ntask: t\nactor: a\nprofiles: {p: {tools: [a], max_steps: 1, budgets: {cost: 1}}}\ntasks: {t: {profile: p, actor: a, mode: dry_run}}\n",
		"reviewers: {\"\\u202e\": {roles: [x]}}\n", "documents: {a: {text: \"\", version: v, content_type: t}}\n", "policy: [\"\\n\"]\norg: [a, a]\n", "profiles: {p: {max_steps: 1e3}}\n", "limits: {proposal_bytes: 9007199254740993}\n"} {
		f.Add([]byte(text))
	}
	base := builtin(f)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.Contains(b, []byte("/")) {
			return // it could name a file of this machine, such as one that never ends
		}
		file, inJSON := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "config.json")
		_ = os.Remove(inJSON) // of the last text, which this one could name
		require.NoError(t, os.WriteFile(file, b, 0o600))
		c, err := config.Read(file, base)
		if err != nil {
			assert.True(t, strings.HasPrefix(err.Error(), file+":"), "%v", err)
			return
		}
		again, err := config.Read(file, base)
		require.NoError(t, err)
		document, err := strictyaml.Only(file, b)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(inJSON, document.JSON(), 0o600))
		other, err := config.Read(inJSON, base)
		require.NoError(t, err)
		assert.Equal(t, meaning(t, c), meaning(t, again))
		assert.Equal(t, meaning(t, c), meaning(t, other))
	})
}

// meaning is everything that a configuration says, by key; the digest of the whole stands under the empty one.
func meaning(t *testing.T, c config.Config) map[string]string {
	t.Helper()
	form, err := c.Canonical()
	require.NoError(t, err)
	said := map[string]string{"": string(form)}
	values, err := c.Values()
	require.NoError(t, err)
	for _, v := range values {
		assert.NotContains(t, said, v.Key, "it is listed twice")
		said[v.Key] = string(v.Value)
	}
	return said
}
