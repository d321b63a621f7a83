package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/scenario"
)

const scenarioDir = "../../scenarios"

func shippedWorld(t testing.TB) world {
	t.Helper()
	c, err := parseConfig("")
	require.NoError(t, err)
	g, err := assemble(t.Context(), c)
	require.NoError(t, err)
	return world{g}
}

// scenarioFiles are all files of the folder but its description, so that none is left out for its ending.
func scenarioFiles(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(scenarioDir)
	require.NoError(t, err)
	var files []string
	for _, e := range entries {
		if !e.IsDir() && e.Name() != "README.md" {
			files = append(files, filepath.Join(scenarioDir, e.Name()))
		}
	}
	require.NotEmpty(t, files)
	return files
}

func TestScenarios(t *testing.T) {
	w := shippedWorld(t)
	for _, file := range scenarioFiles(t) {
		list, err := scenario.Load(file)
		require.NoError(t, err)
		require.NotEmpty(t, list, file)
		for _, s := range list {
			t.Run(filepath.Base(file)+"/"+s.Name, func(t *testing.T) {
				report, err := scenario.Run(t.Context(), w, s)
				require.NoError(t, err)
				assert.Empty(t, report.Failures)
				assert.True(t, report.Passed)
			})
		}
	}
}

// Every scenario can be found by its name, is in a category that is described, and says whether a denial left
// everything as it was.
func TestScenariosAreComplete(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(scenarioDir, "README.md"))
	require.NoError(t, err)
	described := func(word string) bool { return strings.Contains(string(readme), "\n| `"+word+"` | ") }
	places := map[string]string{}
	for _, file := range scenarioFiles(t) {
		assert.True(t, described(filepath.Base(file)), "the README does not describe %s", file)
		list, err := scenario.Load(file)
		require.NoError(t, err)
		for _, s := range list {
			assert.Empty(t, places[s.Name], "%s: the name %q is taken", file, s.Name)
			places[s.Name] = file
			assert.NotEmpty(t, s.Category, s.Name)
			assert.True(t, described(s.Category), "%s: the README does not describe the category %q", s.Name, s.Category)
			if assert.NotNil(t, s.Expect, s.Name) {
				assert.NotNil(t, s.Expect.Statuses, s.Name)
				assert.NotNil(t, s.Expect.Actions, s.Name)
				assert.NotNil(t, s.Expect.Drafts, s.Name)
				assert.NotNil(t, s.Expect.Approvals, s.Name)
			}
		}
	}
	assert.NotEmpty(t, places)
}

// oneScenario is a scenario of the given steps and, after them, anything else that it has at its top.
func oneScenario(t testing.TB, rest string) scenario.Scenario {
	t.Helper()
	list, err := scenario.Parse("inline.yaml", []byte("name: inline\n"+rest))
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0]
}

const (
	readLabels  = "{call_id: r1, tool: read_document, arguments: {path: /warehouse/labels.txt}}"
	addNumbers  = "{call_id: m1, tool: calculate, arguments: {op: add, a: 1, b: 1}}"
	twoMistakes = "{call_id: m2, tool: calculate, arguments: {op: divide, a: 1001, b: 0}}"
	noSuchTool  = "{call_id: x1, tool: send_message, arguments: {text: Hello}}"
	labelsNote  = "{call_id: d1, tool: record_draft, arguments: {draft_id: labels-note, purpose: inventory-summary, body: There are 84 labels., idempotency_key: draft-1}}"
	// recorded are the steps that lead to one draft.
	recorded = "steps: [{propose: " + labelsNote + "}, {review: {proposal: " + labelsNote + ", decision: approved}}, {propose: " + labelsNote + "}]\n"
)

// A runner that cannot fail shows nothing: each of these expectations is wrong in one place, which it must name.
func TestScenarioFails(t *testing.T) {
	w := shippedWorld(t)
	for _, row := range []struct{ name, scenario, want string }{
		{"another status", "steps: [{propose: " + addNumbers + ", expect: {status: tool_denied}}]",
			`step 1 (propose): /status: want "tool_denied", got "ok"`},
		{"another value", "steps: [{propose: " + addNumbers + ", expect: {value: 3}}]",
			`step 1 (propose): /value: want 3, got 2`},
		{"a string for a number", `steps: [{propose: ` + addNumbers + `, expect: {value: "2"}}]`,
			`step 1 (propose): /value: want "2", got 2`},
		{"an object for a number", "steps: [{propose: " + addNumbers + ", expect: {value: {number: 2}}}]",
			`step 1 (propose): /value: want {"number":2}, got 2`},
		{"no object", "steps: [{propose: " + addNumbers + ", expect: ok}]",
			`step 1 (propose): the result: want "ok", got {`},
		{"nothing", "steps: [{propose: " + addNumbers + ", expect: null}]",
			`step 1 (propose): the result: want null, got {`},
		{"a missing member", "steps: [{propose: " + readLabels + ", expect: {value: {author: maya}}}]",
			`step 1 (propose): /value/author: want "maya", and there is none in {`},
		{"null for a missing member", "steps: [{propose: " + addNumbers + ", expect: {approval: null}}]",
			`step 1 (propose): /approval: want null, and there is none in {`},
		{"the order of a list", "steps: [{propose: " + readLabels + "}, {propose: " + addNumbers + "}]\nexpect: {actions: [{tool: calculate}, {tool: read_document, target: /warehouse/labels.txt}]}",
			`at the end: actions: want [{"tool":"calculate"},{"target":"/warehouse/labels.txt","tool":"read_document"}], got [{"target":`},
		{"a part of a list", "steps: [{propose: " + twoMistakes + ", expect: {reasons: [{code: invalid_arguments}]}}]",
			`step 1 (propose): /reasons: want [{"code":"invalid_arguments"}], got [{`},
		{"no list", "steps: [{propose: " + twoMistakes + ", expect: {reasons: []}}]",
			`step 1 (propose): /reasons: want [], got [{`},
		{"a review that is refused", "steps: [{review: {proposal: " + labelsNote + ", decision: approved}, expect: {reviewed: true}}]",
			`step 1 (review): /reviewed: want true, got false`},
		{"a review that holds", "steps: [{propose: " + labelsNote + "}, {review: {proposal: " + labelsNote + ", decision: approved}, expect: {reviewed: false}}]",
			`step 2 (review): /reviewed: want false, got true`},
		{"the last of several attempts", "faults: {read_failures: 2}\nsteps: [{retry: {proposal: " + readLabels + "}, expect: {last: {status: ok}}}]",
			`step 1 (retry): /last/status: want "ok", got "timeout"`},
		{"an action that is not expected", "steps: [{propose: " + addNumbers + "}]\nexpect: {actions: []}",
			`at the end: actions: want [], got [{"tool":"calculate"}]`},
		{"an action that did not run", "steps: [{propose: " + noSuchTool + "}]\nexpect: {actions: [{tool: send_message}]}",
			`at the end: actions: want [{"tool":"send_message"}], got []`},
		{"another target", "steps: [{propose: " + readLabels + "}]\nexpect: {actions: [{tool: read_document}]}",
			`at the end: actions: want [{"tool":"read_document"}], got [{"target":"/warehouse/labels.txt","tool":"read_document"}]`},
		{"another draft", recorded + "expect: {drafts: {labels-note: {purpose: inventory-summary, body: There are 840 labels.}}}",
			`at the end: drafts: want {"labels-note":{"body":"There are 840 labels.","purpose":"inventory-summary"}}, got {"labels-note":{"body":"There are 84 labels.",`},
		{"a part of a draft", recorded + "expect: {drafts: {labels-note: {body: There are 84 labels.}}}",
			`at the end: drafts: want {"labels-note":{"body":"There are 84 labels."}}, got {`},
		{"no draft", recorded + "expect: {drafts: {}}",
			`at the end: drafts: want {}, got {"labels-note":`},
		{"other statuses at the end", "steps: [{propose: " + noSuchTool + "}, {propose: " + addNumbers + "}]\nexpect: {statuses: [ok, tool_denied]}",
			`at the end: statuses: want ["ok","tool_denied"], got ["tool_denied","ok"]`},
		{"fewer statuses at the end", "steps: [{propose: " + addNumbers + "}, {propose: " + addNumbers + "}]\nexpect: {statuses: [ok]}",
			`at the end: statuses: want ["ok"], got ["ok","ok"]`},
		{"another state of an approval", recorded + "expect: {approvals: [{call_id: d1, tool: record_draft, state: approved}]}",
			`at the end: approvals: want [{"call_id":"d1","state":"approved","tool":"record_draft"}], got [{"call_id":"d1","state":"consumed","tool":"record_draft"}]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			report, err := scenario.Run(t.Context(), w, oneScenario(t, row.scenario))
			require.NoError(t, err)
			assert.False(t, report.Passed)
			require.Len(t, report.Failures, 1)
			assert.Truef(t, strings.HasPrefix(report.Failures[0], row.want), "want %s\ngot  %s", row.want, report.Failures[0])
		})
	}
}

// tampered is a world whose store changes what it is given to keep.
type tampered struct {
	world
	tamper func(*dispatch.Commit)
}

func (w tampered) Store(ctx context.Context) (scenario.Store, error) {
	s, err := w.world.Store(ctx)
	return tamperedStore{s, w.tamper}, err
}

type tamperedStore struct {
	scenario.Store
	tamper func(*dispatch.Commit)
}

func (s tamperedStore) Apply(ctx context.Context, c dispatch.Commit) error {
	if c.Task.ID != "" { // the activation before the first decision is of none
		s.tamper(&c)
	}
	return s.Store.Apply(ctx, c)
}

func addAction(t testing.TB) func(*dispatch.Commit) {
	return func(c *dispatch.Commit) {
		body, err := ijson.Marshal(dispatch.ActionEntry{
			EntryHeader: dispatch.EntryHeader{Kind: dispatch.KindAction, Tenant: c.Task.Tenant, Task: c.Task.ID, Step: c.Task.Steps, N: c.Task.Entries},
			Tool:        "calculate", Value: ijson.Raw("2")})
		assert.NoError(t, err)
		c.Entries = append(c.Entries, dispatch.Entry{Task: c.Task.TaskKey, Step: c.Task.Steps, N: c.Task.Entries, Kind: dispatch.KindAction, Body: body})
		c.Task.Entries++
	}
}

func addRecord(c *dispatch.Commit) {
	c.Record = &dispatch.Record{Task: c.Task.TaskKey, Tool: "record_draft", Target: "smuggled", Value: ijson.Raw(`{"body":"","purpose":""}`)}
}

// dropAction leaves an operation that ran off the record.
func dropAction(c *dispatch.Commit) {
	if last := len(c.Entries) - 1; c.Entries[last].Kind == dispatch.KindAction {
		c.Entries = c.Entries[:last]
		c.Task.Entries--
	}
}

// What runs is compared with what was allowed in every scenario: here nothing is expected, and the store keeps more
// or less than the last step gave it.
func TestScenarioNoticesEffects(t *testing.T) {
	const anAction, aRecord = "1 action(s) were recorded, and 0 call(s) were allowed and ran", "the number of records changed by 1, and 0 call(s) were allowed and ran"
	for _, row := range []struct {
		name, steps string
		tamper      func(*dispatch.Commit)
		want        string
	}{
		{"a denied call and an action", "steps: [{propose: " + noSuchTool + "}]", addAction(t), "step 1 (propose): " + anAction},
		{"a denied call and a record", "steps: [{propose: " + noSuchTool + "}]", addRecord, "step 1 (propose): " + aRecord},
		{"a denied attempt and an action", "steps: [{retry: {proposal: " + noSuchTool + "}}]", addAction(t), "step 1 (retry): " + anAction},
		{"a waiting call and an action", "steps: [{propose: " + labelsNote + "}]", addAction(t), "step 1 (propose): " + anAction},
		{"a waiting call and a record", "steps: [{propose: " + labelsNote + "}]", addRecord, "step 1 (propose): " + aRecord},
		{"a review and an action", "steps: [{propose: " + labelsNote + "}, {review: {proposal: " + labelsNote + ", decision: approved}}]", addAction(t), "step 2 (review): " + anAction},
		{"a review and a record", "steps: [{propose: " + labelsNote + "}, {review: {proposal: " + labelsNote + ", decision: approved}}]", addRecord, "step 2 (review): " + aRecord},
		{"a replay and an action", strings.Replace(recorded, "}]\n", "}, {propose: "+labelsNote+"}]\n", 1), addAction(t), "step 4 (propose): " + anAction},
		{"a replay and a record", strings.Replace(recorded, "}]\n", "}, {propose: "+labelsNote+"}]\n", 1), addRecord, "step 4 (propose): " + aRecord},
		{"a cancelled task and a record", "steps: [{propose: " + noSuchTool + "}, {cancel: {}}]", addRecord, "step 2 (cancel): " + aRecord},
		{"an allowed call and two actions", "steps: [{propose: " + addNumbers + "}]", addAction(t), "step 1 (propose): 2 action(s) were recorded, and 1 call(s) were allowed and ran"},
		{"an allowed call and no action", "steps: [{propose: " + addNumbers + "}]", dropAction, "step 1 (propose): 0 action(s) were recorded, and 1 call(s) were allowed and ran"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w, s := shippedWorld(t), oneScenario(t, row.steps)
			commits := 0
			report, err := scenario.Run(t.Context(), tampered{w, func(*dispatch.Commit) { commits++ }}, s)
			require.NoError(t, err)
			require.True(t, report.Passed, "left alone it passes: %q", report.Failures)

			last, n := commits, 0
			report, err = scenario.Run(t.Context(), tampered{w, func(c *dispatch.Commit) {
				if n++; n == last {
					row.tamper(c)
				}
			}}, s)
			require.NoError(t, err)
			assert.False(t, report.Passed)
			assert.Equal(t, []string{row.want}, report.Failures)
		})
	}
}

// A review that says something odd is refused with an error, and not one commit comes of it.
func TestScenarioReviewOdd(t *testing.T) {
	w := shippedWorld(t)
	for name, says := range map[string]string{
		"true":                       "decision: true",
		"another word":               "decision: approve",
		"another case":               "decision: Approved",
		"an empty word":              `decision: ""`,
		"null":                       "decision: null",
		"no word":                    "lifetime: 3",
		"a list":                     "decision: [approved]",
		"lifetime 0":                 "decision: approved, lifetime: 0",
		"lifetime 11":                "decision: approved, lifetime: 11",
		"lifetime -1":                "decision: approved, lifetime: -1",
		"lifetime 2.5":               "decision: approved, lifetime: 2.5",
		`lifetime "3"`:               `decision: approved, lifetime: "3"`,
		"lifetime true":              "decision: approved, lifetime: true",
		"lifetime null":              "decision: approved, lifetime: null",
		"lifetime beyond 64 bits":    "decision: approved, lifetime: 1e20",
		"lifetime of a rejection":    "decision: rejected, lifetime: 0",
		"a list for the lifetime":    "decision: approved, lifetime: [3]",
		"an object for the lifetime": "decision: approved, lifetime: {steps: 3}",
	} {
		t.Run(name, func(t *testing.T) {
			commits := 0
			report, err := scenario.Run(t.Context(), tampered{w, func(*dispatch.Commit) { commits++ }}, oneScenario(t,
				"steps: [{propose: "+labelsNote+"}, {review: {proposal: "+labelsNote+", "+says+"}, expect: {reviewed: false}}]\n"+
					"expect: {statuses: [approval_required], actions: [], drafts: {}, approvals: [{call_id: d1, tool: record_draft, state: pending}]}"))
			require.NoError(t, err)
			assert.Empty(t, report.Failures)
			explanation, ok := ijson.Lookup(report.Steps[1], "/error")
			require.True(t, ok)
			assert.Greater(t, len(explanation), len(`""`))
			assert.Equal(t, 2, commits, "the task and the proposal")
		})
	}
}

type ran struct {
	code           int
	stdout, stderr string
}

// runScenarioFile is the command over a file of this content, whose name tells its form.
func runScenarioFile(t testing.TB, name, content string, flags ...string) ran {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return runScenarios(t, append(flags, file)...)
}

func runScenarios(t testing.TB, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), append([]string{"scenario", "run"}, args...), strings.NewReader(""), &stdout, &stderr)
	return ran{code, stdout.String(), stderr.String()}
}

// A scenario that cannot be run as it is written is a mistake of its author, and no result.
func TestScenarioMistakes(t *testing.T) {
	steps := func(s string) string { return "name: a mistake\nsteps: [" + s + "]\n" }
	nothing := "steps: [{propose: " + addNumbers + "}]\n"
	for _, row := range []struct {
		name, content string
		want          []string
	}{
		{"two events in a step", steps("{cancel: {}, restart: {}}"), []string{"a.yaml:1: ", "step 1: the step has cancel and restart"}},
		{"no event in a step", steps("{cancel: {}}, {expect: {status: ok}}"), []string{"step 2: the step does nothing; give one of propose, retry, review, "}},
		{"mode", steps("{configure: {mode: dryrun}}"), []string{`step 1: mode is "dryrun"; give enforce or dry_run`}},
		{"resolve", steps("{resolve: {}}"), []string{"step 1: the resolve has no proposal"}},
		{"finish", steps("{finish: {}}"), []string{"step 1: finish is not supported"}},
		{"a tool that cannot be unavailable", "name: a mistake\nfaults: {tools: [{tool: calculate, fail: unavailable}]}\n" + nothing, []string{"calculate: the fault unavailable comes with outside tools"}},
		{"a tool that cannot answer badly", "name: a mistake\nfaults: {tools: [{tool: calculate, fail: bad_result}]}\n" + nothing, []string{"calculate: the fault bad_result needs a tool that can break a promise"}},
		{"an unknown fault", "name: a mistake\nfaults: {tools: [{tool: calculate, fail: explode}]}\n" + nothing, []string{`there is no fault "explode"`}},
		{"a fault of an unknown tool", "name: a mistake\nfaults: {tools: [{tool: send_message, fail: timeout}]}\n" + nothing, []string{`there is no tool "send_message"`}},
		{"a fault that never happens", "name: a mistake\nfaults: {tools: [{tool: calculate, fail: timeout, times: 0}]}\n" + nothing, []string{"times is 0"}},
		{"a negative number of faults", "name: a mistake\nfaults: {read_failures: -1}\n" + nothing, []string{"read_failures is -1"}},
		{"an unknown key at the top", "name: a mistake\nexpects: {}\n" + nothing, []string{"a.yaml:2: expects: unknown key", `did you mean "expect"?`}},
		{"an unknown key of the task", "name: a mistake\ntask: {max_step: 3}\n" + nothing, []string{"a.yaml:2: task.max_step: unknown key", `did you mean "max_steps"?`}},
		{"an unknown key of the faults", "name: a mistake\nfaults: {read_failure: 3}\n" + nothing, []string{"faults.read_failure: unknown key", `did you mean "read_failures"?`}},
		{"an unknown key of the end", "name: a mistake\nexpect: {draft: {}}\n" + nothing, []string{"expect.draft: unknown key", `did you mean "drafts"?`}},
		{"an unknown event", steps("{propse: {}}"), []string{"a.yaml:2: steps[0].propse: unknown key", `did you mean "propose"?`}},
		{"an unknown key of a review", steps("{review: {proposal: {}, decison: approved}}"), []string{"a.yaml:2: steps[0].review.decison: unknown key", `did you mean "decision"?`}},
		{"an unknown key of a retry", steps("{retry: {proposal: {}, limits: 2}}"), []string{"steps[0].retry.limits: unknown key", `did you mean "limit"?`}},
		{"a vote in a reopening", steps("{reopen: {proposal: {}, decision: approved}}"), []string{"steps[0].reopen.decision: unknown key"}},
		{"an unknown key of a setting", steps("{configure: {tool: []}}"), []string{"steps[0].configure.tool: unknown key", `did you mean "tools"?`}},
		{"a cancel that says something", steps("{cancel: {task: labels-1}}"), []string{"steps[0].cancel.task: unknown key"}},
		{"a restart that says something", steps("{restart: 2}"), []string{"steps[0].restart: wants an object"}},
		{"a review of nothing", steps("{review: {decision: approved}}"), []string{"step 1: the review has no proposal"}},
		{"a retry of nothing", steps("{retry: {limit: 2}}"), []string{"step 1: the retry has no proposal"}},
		{"a reopening of nothing", steps("{reopen: {}}"), []string{"step 1: the reopen has no proposal"}},
		{"a time that is none", steps("{configure: {now: tomorrow}}"), []string{`step 1: now is "tomorrow"; give RFC 3339`}},
		{"a tool that does not exist", steps("{configure: {tools: [read_documents]}}"), []string{`unknown tool "read_documents"`, `did you mean "read_document"?`}},
		{"a policy without a path", steps("{policy: }"), []string{"step 1: policy takes the path of a folder"}},
		{"a policy that does not exist", steps("{policy: nowhere}"), []string{"step 1 (policy): ", "nowhere"}},
		{"a task that exists", steps("{configure: {task: labels-1}}"), []string{"step 1 (configure): ", "exists already"}},
		{"an unknown profile", "name: a mistake\ntask: {profile: wharehouse}\n" + nothing, []string{`there is no profile "wharehouse"`}},
		{"a task that is not configured", "name: a mistake\ntask: {id: labels-9}\n" + nothing, []string{`task "labels-9" is not configured; name its profile with task.profile`}},
		{"an actor that is no name", "name: a mistake\ntask: {actor: the learner}\n" + nothing, []string{"the actor's name is not"}},
		{"no name", nothing, []string{"a.yaml:1: the scenario has no name"}},
		{"no steps", "name: a mistake\n", []string{`scenario "a mistake" has no steps`}},
		{"no scenario", "", []string{"the document is empty"}},
		{"one of several documents", steps("{cancel: {}}") + "---\n" + steps("{finish: {}}"), []string{"a.yaml:4: ", "finish is not supported"}},
		{"a key twice", "name: a mistake\nname: another\n" + nothing, []string{"a.yaml:2: name: repeated key"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := runScenarioFile(t, "a.yaml", row.content)
			assert.Equal(t, exitMisuse, got.code, got.stderr)
			assert.Empty(t, got.stdout)
			for _, want := range row.want {
				assert.Contains(t, got.stderr, want)
			}
		})
	}
	t.Run("a line of JSON Lines", func(t *testing.T) {
		got := runScenarioFile(t, "a.jsonl", `{"name":"a","steps":[{"cancel":{}}]}`+"\n"+`{"name":"b","steps":[{"cancle":{}}]}`+"\n")
		assert.Equal(t, exitMisuse, got.code)
		assert.Empty(t, got.stdout)
		assert.Contains(t, got.stderr, `a.jsonl:2: steps[0].cancle: unknown key; did you mean "cancel"?`)
	})
	t.Run("no file", func(t *testing.T) {
		assert.Equal(t, exitMisuse, runScenarios(t).code)
		assert.Equal(t, exitMisuse, runScenarios(t, filepath.Join(t.TempDir(), "none.yaml")).code)
	})
}

// passesAndFails are two scenarios of one category and one of another; the second fails twice.
const passesAndFails = `name: it adds <1> & "1"
category: arithmetic
steps: [{propose: ` + addNumbers + `}]
---
name: it adds wrongly
category: arithmetic
steps: [{propose: ` + addNumbers + `, expect: {value: 3}}]
expect: {statuses: [ok, ok]}
---
name: one draft
steps: [{propose: ` + labelsNote + `}, {review: {proposal: ` + labelsNote + `, decision: approved}}, {propose: ` + labelsNote + `}]
`

func TestScenarioText(t *testing.T) {
	got := runScenarioFile(t, "a.yaml", passesAndFails)
	assert.Equal(t, exitDenied, got.code)
	assert.Empty(t, got.stderr)
	assert.Equal(t, `ok   arithmetic: it adds <1> & "1"
FAIL arithmetic: it adds wrongly
       step 1 (propose): /value: want 3, got 2
       at the end: statuses: want ["ok","ok"], got ["ok"]
ok   one draft
3 scenarios, 1 failed
`, got.stdout)

	got = runScenarios(t, filepath.Join(scenarioDir, "examples.jsonl"))
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.stdout, "scenarios, 0 failed\n")
}

func TestScenarioJSON(t *testing.T) {
	got := runScenarioFile(t, "a.yaml", passesAndFails, "--format", "json")
	assert.Equal(t, exitDenied, got.code)
	assert.Empty(t, got.stderr)
	lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
	require.Len(t, lines, 3, "one object a line and a scenario, whether or not anything is expected")
	var reports []map[string]ijson.Raw
	for _, line := range lines {
		var report map[string]ijson.Raw
		require.NoError(t, ijson.Unmarshal([]byte(line), &report))
		assert.ElementsMatch(t, []string{"name", "passed", "failures", "steps", "final"}, keysOf(report))
		var final map[string]ijson.Raw
		require.NoError(t, ijson.Unmarshal(report["final"], &final))
		assert.ElementsMatch(t, []string{"statuses", "actions", "drafts", "approvals"}, keysOf(final))
		reports = append(reports, report)
	}

	adds, fails, records := reports[0], reports[1], reports[2]
	assert.Equal(t, `"it adds <1> & \"1\""`, string(adds["name"]))
	assert.Equal(t, "true", string(adds["passed"]))
	assert.Equal(t, "[]", string(adds["failures"]))
	assert.Equal(t, `{"statuses":["ok"],"actions":[{"tool":"calculate"}],"drafts":{},"approvals":[]}`, string(adds["final"]))

	assert.Equal(t, "false", string(fails["passed"]))
	assert.Equal(t, `["step 1 (propose): /value: want 3, got 2","at the end: statuses: want [\"ok\",\"ok\"], got [\"ok\"]"]`, string(fails["failures"]))

	assert.Equal(t, `{"statuses":["approval_required","ok"],"actions":[{"tool":"record_draft","target":"labels-note"}],`+
		`"drafts":{"labels-note":{"body":"There are 84 labels.","purpose":"inventory-summary"}},`+
		`"approvals":[{"call_id":"d1","tool":"record_draft","state":"consumed"}]}`, string(records["final"]))
	var steps []map[string]ijson.Raw
	require.NoError(t, ijson.Unmarshal(records["steps"], &steps))
	require.Len(t, steps, 3)
	assert.ElementsMatch(t, []string{"task", "step", "call_id", "status", "reasons", "approval", "policy_version"}, keysOf(steps[0]))
	assert.Equal(t, map[string]ijson.Raw{"reviewed": ijson.Raw("true")}, steps[1])
	assert.ElementsMatch(t, []string{"task", "step", "call_id", "status", "value", "policy_version"}, keysOf(steps[2]))
}

func keysOf(object map[string]ijson.Raw) []string {
	var keys []string
	for k := range object {
		keys = append(keys, k)
	}
	return keys
}

func TestScenarioJUnit(t *testing.T) {
	got := runScenarioFile(t, "a.yaml", passesAndFails, "--format", "junit")
	assert.Equal(t, exitDenied, got.code)
	assert.Empty(t, got.stderr)
	assert.True(t, strings.HasPrefix(got.stdout, xml.Header+"<testsuites>"))

	// Read by names of its own, as a CI system does.
	type failure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *failure `xml:"failure"`
	}
	type suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	var report struct {
		Suites []suite `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal([]byte(got.stdout), &report))
	const value, statuses = "step 1 (propose): /value: want 3, got 2", `at the end: statuses: want ["ok","ok"], got ["ok"]`
	assert.Equal(t, []suite{
		{"arithmetic", 2, 1, []testCase{
			{"arithmetic", `it adds <1> & "1"`, nil},
			{"arithmetic", "it adds wrongly", &failure{value, value + "\n" + statuses}},
		}},
		{"scenarios", 1, 0, []testCase{{"scenarios", "one draft", nil}}},
	}, report.Suites)
}

// Whatever the form of the output, the exit code says whether an expectation failed.
func TestScenarioExitCodes(t *testing.T) {
	for _, format := range []string{"text", "json", "junit"} {
		for value, code := range map[int]int{2: exitOK, 3: exitDenied} {
			content := fmt.Sprintf("name: a\nsteps: [{propose: %s, expect: {value: %d}}]\n", addNumbers, value)
			assert.Equal(t, code, runScenarioFile(t, "a.yaml", content, "--format", format).code, format)
		}
	}
}

// What takes place outside is counted when it is said to have, which can be a later step than that of its call.
func TestScenarioCountsWhatTakesPlaceOutside(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(`profiles: {p: {tools: [pay], max_steps: 20}}
resources: {}
documents: {}
tools:
  pay:
    version: v1
    description: Pays.
    schema: {type: object, properties: {order: {type: string}, key: {type: string}}, required: [order, key], additionalProperties: false}
    effect: write
    approval: by_rule
    scopes: []
    key: /key
    http: {method: POST, url: "https://pay.example.com/{/order}"}
    recovery: {idempotency: {header: Idempotency-Key, retention: 1h}}
`), 0o600))
	const call = "{call_id: a, tool: pay, arguments: {order: o, key: k}}"
	begin := "task: {id: t1, profile: p, actor: a}\noutside: {pay: {status: %d, body: {id: q}}}\n"
	for name, content := range map[string]string{
		"resolved": fmt.Sprintf(begin, 500) + "steps: [{propose: " + call + ", expect: {status: outcome_unknown}}, " +
			"{resolve: {proposal: " + call + ", state: committed, reason: seen}}, {propose: " + call + ", expect: {status: replayed}}]\n",
		"resumed": fmt.Sprintf(begin, 200) + "faults: {tools: [{tool: pay, fail: lost_reply}]}\nsteps: [{propose: " + call +
			", expect: {status: outcome_unknown}}, {propose: " + call + ", expect: {status: ok}}]\n",
		"refused": fmt.Sprintf(begin, 422) + "steps: [{propose: " + call + ", expect: {status: unavailable}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := runScenarioFile(t, "a.yaml", "name: a\n"+content, "--config", config)
			assert.Equal(t, exitOK, got.code, got)
		})
	}
}
