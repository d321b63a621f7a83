package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// openConfig is a configuration with a tool that takes anything and makes a record of it, at once or when a person agrees.
const openConfig = `
state: govern.db
task: labels-1
actor: learner
profiles:
  open: {tools: [note, keep, read], max_steps: 1000000, max_pending: 10000}
tasks:
  labels-1: {profile: open, actor: learner}
tools:
  note:
    version: v1
    description: Writes something down.
    local: record
    approval: by_rule
    schema: {type: object, required: [id], properties: {id: {type: string}}}
    target: /id
  keep:
    version: v1
    description: Writes something down when a person agrees.
    local: record
    schema: {type: object, required: [id], properties: {id: {type: string}}}
    target: /id
  read:
    version: v1
    description: Reads a text.
    local: document
    effect: read
    schema: {type: object, required: [path], properties: {path: {type: string}}}
    target: /path
documents: documents.json
`

// desktop is a folder with a configuration, on which commands run in this process.
type desktop struct {
	t      testing.TB
	folder string
}

func newDesktop(t testing.TB) desktop {
	t.Helper()
	d := desktop{t, t.TempDir()}
	d.write("config.yaml", openConfig)
	d.write("documents.json", "{}")
	return d
}

func (d desktop) path(name string) string { return filepath.Join(d.folder, name) }

func (d desktop) write(name, text string) string {
	d.t.Helper()
	require.NoError(d.t, os.MkdirAll(filepath.Dir(d.path(name)), 0o700))
	require.NoError(d.t, os.WriteFile(d.path(name), []byte(text), 0o600))
	return d.path(name)
}

// run is the program, on the state of that name.
func (d desktop) run(state string, in io.Reader, args ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	var out, errs bytes.Buffer
	args = append(args, "--config", d.path("config.yaml"), "--state", d.path(state))
	code = run(context.Background(), args, in, &out, &errs)
	return code, out.String(), errs.String()
}

// read is a command that has to work, and what it says.
func (d desktop) read(state string, args ...string) string {
	d.t.Helper()
	code, stdout, stderr := d.run(state, strings.NewReader(""), args...)
	require.Zero(d.t, code, "%v: %s", args, stderr)
	return stdout
}

// decisions are the entries of the decision log, as they are stored.
func (d desktop) decisions(state string) []dispatch.DecisionEntry {
	d.t.Helper()
	s, err := sqlite.Open(context.Background(), d.path(state), sqlite.Options{MustExist: true})
	require.NoError(d.t, err)
	defer s.Close()
	var all []dispatch.DecisionEntry
	for e, err := range s.Entries(context.Background(), dispatch.DefaultTenant, "") {
		require.NoError(d.t, err)
		if e.Kind != dispatch.KindDecision {
			continue
		}
		var body dispatch.DecisionEntry
		require.NoError(d.t, ijson.Unmarshal(e.Body, &body))
		all = append(all, body)
	}
	return all
}

// records are what was written down, by target.
func (d desktop) records(state string) map[string]string {
	d.t.Helper()
	s, err := sqlite.Open(context.Background(), d.path(state), sqlite.Options{MustExist: true})
	require.NoError(d.t, err)
	defer s.Close()
	all, err := s.Records(context.Background(), dispatch.DefaultTenant, "")
	require.NoError(d.t, err)
	out := map[string]string{}
	for _, r := range all {
		out[r.Target] = string(r.Value)
	}
	return out
}

// note proposes a note with some JSON in it, exactly as it is given.
func note(id, value string) string {
	return `{"call_id":"` + id + `","tool":"note","arguments":{"id":"` + id + `","value":` + value + `}}`
}

// arrival is a line that is no proposal.
type arrival struct {
	line string
	id   string // the call id that is kept; none is "-"
}

// refused gives arrivals without a call id that is kept.
func refused(lines ...string) []arrival {
	var all []arrival
	for _, line := range lines {
		all = append(all, arrival{line, "-"})
	}
	return all
}

func notes(values ...string) []arrival {
	var lines []string
	for _, v := range values {
		lines = append(lines, note("x", v))
	}
	return refused(lines...)
}

func kept(id string, lines ...string) []arrival {
	all := refused(lines...)
	for i := range all {
		all[i].id = id
	}
	return all
}

func deep(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// long is a note of exactly so many bytes.
func long(size int) string { return note("x", `"`+strings.Repeat("x", size-len(note("x", `""`)))+`"`) }

const mebibyte = 1 << 20

// classes are what is refused, by the words that docs/proposals.md says the answer has. They take 60 MB: as a variable, each
// process that a test starts would make them first.
func classes() map[string][]arrival {
	return map[string][]arrival{
		"no value":            refused("", " ", "\t  ", "\r"),
		"not JSON":            append(refused("hello", "{'call_id':'x'}", "\ufeff"+note("x", "1"), "{\x00\"\x00}\x00", "\x00", "\x1b[31m", "// "+note("x", "1"), "<xml/>"), notes("NaN", "-Infinity", "01", "+1", ".5", "1.", "0x10", "1,", "[1,]", `{"a":1,}`, "TRUE", "\"a\tb\"", "\"a\x00b\"", "1\x00", "/*1*/", `{"a" 1}`, "\v1", "\u00a01", "\u20281")...),
		"the text ends early": refused(`{"call_id":"x","tool":"note","argum`, `{"call_id":"x`, `{`, strings.TrimSuffix(note("x", "1"), "}"), `"\u00`, `[1`),
		"more after the value": refused(note("x", "1")+note("y", "2"), note("x", "1")+" {}", note("x", "1")+",", note("x", "1")+"}", note("x", "1")+"\x00", "1 2",
			note("x", "1")+"\ufeff", note("x", "1")+"\r"+note("y", "2")),
		"a name must be a string": notes(`{1:2}`, `{null:1}`, `{{}:1}`, `{[]:1}`),
		"no such escape":          notes(`"\x41"`, `"\'"`, `"\u00g0"`, `"\U0041"`, `"\a"`, `"\ "`),
		"not UTF-8":               append(notes("\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "{\"\x80\":1}"), refused("{\"call_id\":\"\xff\",\"tool\":\"note\",\"arguments\":{}}")...),
		"lone surrogate":          append(notes(`"\ud800"`, `"\udc00"`, `"\udc00\ud800"`, `"\ud800a"`, `{"\udfff":1}`, `["a",{"b":"\uD834"}]`, `"\ud800\ud800"`), refused(`{"call_id":"\ud800","tool":"note","arguments":{}}`)...),
		"repeated name": append(notes(`{"a":1,"a":2}`, `{"a":1,"a":1}`, `{"a":{"b":[{"c":1,"c":2}]}}`, `[[{"a":1,"b":2,"a":3}]]`, `{"a":1,"\u0061":2}`, `{"":1,"":2}`, `{"\ud834\udd1e":1,"𝄞":2}`, `{"a/b":1,"a\/b":2}`),
			refused(`{"call_id":"x","tool":"note","tool":"keep","arguments":{"id":"x"}}`, `{"call_id":"x","call_id":"y","tool":"note","arguments":{"id":"x"}}`,
				`{"call_id":"x","tool":"note","arguments":{"id":"x","id":"y"}}`, `{"call_id":"x","tool":"note","arguments":{"id":"x"},"arguments":{"id":"y"}}`, `{"call_id":"x","\u0074ool":"keep","tool":"note","arguments":{"id":"x"}}`)...),
		"integer that a double cannot hold":     notes("9007199254740993", "-9007199254740993", "9007199254740993.0", "9007199254740.993e3", "[[9007199254740993]]", "28857836529306024611912", "18446744073709551616", strings.Repeat("9", 300)),
		"number too large for a double":         notes("1e400", "-1e400", "1e309", "1e10000", strings.Repeat("9", 400), `{"amount":1e400}`),
		"number too close to zero for a double": notes("1e-400", "-1e-400", "1e-10000", "0."+strings.Repeat("0", 400)+"1"),
		"exponent out of range":                 notes("1e1000000", "1e999999999", "1e-999999999", "1E+99999999999999999999999999"),
		"nested deeper than 64 levels": append(notes(deep(63), deep(200), deep(10_001), strings.Repeat("[", 63), strings.Repeat(`{"a":`, 63)+"1"+strings.Repeat("}", 63)),
			refused(deep(65), strings.Repeat("[", 100_000), deep(mebibyte/2))...),
		"bytes long; the limit is 1048576": refused(long(mebibyte+1), long(mebibyte)+" ", long(mebibyte)+"\r", strings.Repeat("x", 2_000_000), note("x", deep(5_000_000)),
			strings.Repeat(" ", mebibyte+1), note("x", `"`+strings.Repeat("\x00", 3*mebibyte)+`"`)),
		"longer than 1048576 bytes in its canonical form": notes("["+strings.Repeat("1e20,", 50_000)+"0]", "["+strings.Repeat("1e-6,", 200_000)+"0]"),
		"not an object": refused("null", "true", "7", `"call"`, "[]", "["+note("x", "1")+"]", deep(64), "-0", "1e400"[:3]),
		"beside call_id, tool and arguments": kept("x", `{"call_id":"x","tool":"note","Tool":"keep","arguments":{}}`, `{"call_id":"x","TOOL":"note","arguments":{}}`, `{"call_id":"x","tool":"note","argument\u017f":{}}`,
			`{"call_id":"x","tool":"note","arguments":{},"approved":true}`, `{"call_id":"x","tool":"note","arguments":{},"":0}`, `{"call_id":"x","tool ":"note","arguments":{}}`),
		"has no": append(append(kept("x", `{"call_id":"x","tool":"note"}`, `{"call_id":"x","arguments":{}}`, `{"call_id":"x"}`), refused(`{}`, `{"tool":"note","arguments":{}}`)...),
			kept(strings.Repeat("é", 40)+"…", `{"call_id":"`+strings.Repeat("é", 5000)+`"}`)...),
		"call_id that is not a string": refused(`{"call_id":7,"tool":"note","arguments":{}}`, `{"call_id":null,"tool":"note","arguments":{}}`, `{"call_id":["x"],"tool":"note","arguments":{}}`),
		"call_id that is not 1 to 40 letters, digits or hyphens": {
			{`{"call_id":"","tool":"note","arguments":{}}`, ""},
			{`{"call_id":"a b","tool":"note","arguments":{}}`, "a b"},
			{`{"call_id":"x\n","tool":"note","arguments":{}}`, "x\n"},
			{`{"call_id":"\u202e\u001b[31m","tool":"note","arguments":{}}`, "\u202e\x1b[31m"},
			{`{"call_id":"` + strings.Repeat("a", 41) + `","tool":"note","arguments":{}}`, strings.Repeat("a", 40) + "…"},
		},
		"tool that is not a string":        kept("x", `{"call_id":"x","tool":null,"arguments":{}}`, `{"call_id":"x","tool":["note"],"arguments":{}}`, `{"call_id":"x","tool":7,"arguments":{}}`),
		"arguments that are not an object": kept("x", `{"call_id":"x","tool":"note","arguments":[]}`, `{"call_id":"x","tool":"note","arguments":null}`, `{"call_id":"x","tool":"note","arguments":"{}"}`),
	}
}

var (
	refusedRow = regexp.MustCompile("(?m)^\\| [^`].* \\| `([^`]+)` \\|$")
	readRow    = regexp.MustCompile("(?m)^\\| `(.+)` \\| `(.+)` \\|$")
)

// rules are the rows of the two tables of docs/proposals.md.
func rules(t *testing.T) (says []string, read [][2]string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/proposals.md")
	require.NoError(t, err)
	for _, m := range refusedRow.FindAllStringSubmatch(string(b), -1) {
		says = append(says, m[1])
	}
	for _, m := range readRow.FindAllStringSubmatch(string(b), -1) {
		read = append(read, [2]string{m[1], m[2]})
	}
	return says, read
}

// Every class of input that docs/proposals.md tells of, from a file and from a pipe. Each line has an answer, is a step
// and an entry, and the proposal after it is judged as ever.
func TestEveryClassOfInput(t *testing.T) {
	says, read := rules(t)
	classes := classes()
	require.Len(t, says, len(classes), "each rule that is tested is written, once")
	require.NotEmpty(t, read)
	type row struct {
		arrival
		says string // empty for a proposal that runs
		// record is what it wrote down.
		record string
	}
	var rows []row
	next := func(value, record string) {
		id := fmt.Sprintf("n%d", len(rows))
		rows = append(rows, row{arrival{note(id, value), id}, "", `{"value":` + record + `}`})
	}
	for _, words := range says {
		require.Contains(t, classes, words)
		for _, a := range classes[words] {
			rows = append(rows, row{a, words, ""})
			next("1", "1")
		}
	}
	for _, r := range read {
		next(r[0], r[1])
	}
	next(deep(62), deep(62)) // two levels stand around it
	rows = append(rows, row{arrival{long(mebibyte), "x"}, "", `{"value":"` + strings.Repeat("x", mebibyte-len(note("x", `""`))) + `"}`})
	for _, ending := range []string{" ", "\t", "\r"} {
		next("1", "1")
		rows[len(rows)-1].line += ending
	}
	next("2", "2")

	var all strings.Builder
	for i, r := range rows {
		all.WriteString(r.line)
		if i < len(rows)-1 { // the last line needs none
			all.WriteByte('\n')
		}
	}
	d := newDesktop(t)
	pipe := func() io.Reader {
		out, in := io.Pipe()
		go func() {
			_, err := io.WriteString(in, all.String())
			in.CloseWithError(err)
		}()
		return out
	}
	file := d.write("lines.jsonl", all.String())
	for state, from := range map[string]struct {
		in   io.Reader
		file string
	}{"file.db": {strings.NewReader(""), file}, "pipe.db": {pipe(), "-"}} {
		t.Run(state, func(t *testing.T) {
			code, stdout, stderr := d.run(state, from.in, "run", from.file)
			require.Equal(t, exitDenied, code, stderr)
			answers := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
			require.Len(t, answers, len(rows), "a line for each, and no more")
			entries, written := d.decisions(state), d.records(state)
			require.Len(t, entries, len(rows))
			for i, r := range rows {
				shown := strconv.QuoteToASCII(shorten(r.line, 100))
				var got dispatch.Result
				require.NoError(t, json.Unmarshal([]byte(answers[i]), &got))
				e := entries[i]
				assert.Equal(t, []int{i + 1, i + 1}, []int{got.Step, e.Step}, shown)
				assert.Equal(t, []dispatch.Status{got.Status, got.Status}, []dispatch.Status{e.Status, e.Decision.Status}, shown)
				assert.Equal(t, []string{r.id, r.id}, []string{text(got.CallID), text(e.CallID)}, shown)
				var in dispatch.Input
				require.NoError(t, ijson.Unmarshal(e.Input, &in))
				if r.says == "" {
					assert.Equal(t, dispatch.StatusOK, got.Status, "%s: %s", shown, answers[i])
					require.Zero(t, e.Length, shown)
					assert.Equal(t, r.record, written[r.id], shown)
					continue
				}
				assert.Equal(t, dispatch.StatusInvalidProposal, got.Status, shown)
				assert.Len(t, got.Reasons, 1, shown)
				assert.Contains(t, got.Reasons[0].Message, r.says, shown)
				assert.Contains(t, got.Reasons[0].Message, "this is not a proposal: it ", shown)
				assert.Less(t, len(got.Reasons[0].Message), 500, "%s: a reason does not grow with the text", shown)
				assert.EqualValues(t, len(r.line), e.Length, shown)
				require.NotNil(t, in.Call.Malformed, shown)
				assert.Equal(t, []any{"", ijson.Raw("{}")}, []any{in.Call.Tool, in.Call.Arguments}, "%s: nothing stands in for it", shown)
			}
			assert.Len(t, written, strings.Count(stdout, `"status":"ok"`), "nothing was written down but by what ran")
			for _, entry := range strings.Split(strings.TrimSpace(d.read(state, "log", "decisions", "--format", "json")), "\n") {
				var logged struct {
					Step   int
					Length int64
				}
				require.NoError(t, json.Unmarshal([]byte(entry), &logged))
				require.Equal(t, entries[logged.Step-1].Length, logged.Length, "the log tells the length")
			}
		})
	}
}

// Every file of a public suite for readers of JSON, as the value of an argument and as a line: what JSON allows is read, but
// for what docs/proposals.md says; what JSON forbids is refused.
func TestParsingSuiteThroughTheDoor(t *testing.T) {
	files, err := filepath.Glob("../../../shared/cases/json/parsing/*.json")
	require.NoError(t, err)
	if len(files) == 0 && os.Getenv("CI") != "true" {
		t.Skip("there is no shared/cases/json beside the checkout")
	}
	require.Len(t, files, 283)
	// What JSON allows and a proposal may not have, with the rule that each breaks.
	narrower := map[string]string{
		"y_object_duplicated_key.json":           "repeated name",
		"y_object_duplicated_key_and_value.json": "repeated name",
	}
	var lines, names []string
	values := map[string]string{}
	for i, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		text := strings.TrimSuffix(string(b), "\n")
		if strings.Contains(text, "\n") {
			continue // not one line; internal/ijson reads it whole
		}
		id := fmt.Sprintf("f%d", i)
		values[id] = text
		lines = append(lines, note(id, text), text)
		names = append(names, filepath.Base(file), "")
	}
	require.Greater(t, len(values), 265)
	d := newDesktop(t)
	code, stdout, stderr := d.run("s.db", strings.NewReader(strings.Join(lines, "\n")), "run", "-")
	require.Equal(t, exitDenied, code, stderr)
	answers := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, answers, len(lines))
	written := d.records("s.db")
	for i, name := range names {
		var got dispatch.Result
		require.NoError(t, json.Unmarshal([]byte(answers[i]), &got))
		require.Equal(t, i+1, got.Step)
		rule := narrower[name]
		switch {
		case name == "", strings.HasPrefix(name, "n_"), rule != "":
			assert.Equal(t, dispatch.StatusInvalidProposal, got.Status, "%s: %s", name, answers[i])
			if rule != "" {
				assert.Contains(t, got.Reasons[0].Message, rule, name)
			}
		default:
			require.Equal(t, dispatch.StatusOK, got.Status, "%s: %s", name, answers[i])
			id := text(got.CallID)
			assert.JSONEq(t, `{"value":`+values[id]+`}`, written[id], name)
		}
	}
}
