package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// hostile are texts that would forge a line, hide in one or steer a terminal.
var hostile = []string{
	"admin\r\nAPPROVED by=root", "a\nlabels-1  1  x  note  ok", "a\tb\tc", "a\u2028b\u2029c", "a\u0085b", "a\x0bb\x0cc",
	"\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b[2J\x1b[H", "\u009b31m", "\x08\x08\x08ok", "\x00", "\x7f",
	"invoice\u202efdp.exe", "\u2066a\u2069", "\u200e\u200f\u061c", "a\u200bb\u200cc\u200dd\u2060e\ufeff", "\u00ad", "\u034f", "\u115f\u3164\uffa0", "\u180e",
	"\U000e0041\U000e0042\U000e007f", "e\u0301\u0301\u0301\u0301\u0301", "a\u20dd", "\ufe0f", "\u2800", "\u00a0\u2003\u3000", "\ue000\uffff\U0010ffff", "\ufffd",
	`\u202e \n \\ "' $(x) ; %0a &lt;`, "é 日本 ไทย \U0001F600", "", strings.Repeat("x\n", 300),
}

// anyText draws texts of all planes, and often the characters that matter.
var anyText = rapid.Map(rapid.SliceOfN(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\x00\x07\x1b\n\r\t\"\\'<&\u0085\u009b\u200b\u2028\u202e\u0301\ufeff\ufffd\U000e0041 ab"))), 0, 12), func(r []rune) string { return string(r) })

// hidden says what no line of ours may have: what a terminal obeys, what turns text around, and what is not seen.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) ||
		unicode.Is(unicode.Zs, r) && r != ' ' || r == '\u2800'
}

// whole takes a text of so many lines apart, each of which shows what it holds.
func whole(t *testing.T, text string, lines int) []string {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	require.True(t, text == "" || strings.HasSuffix(text, "\n"))
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range all {
		require.False(t, strings.ContainsFunc(line, hidden), "%+q", line)
	}
	if lines >= 0 {
		require.Len(t, all, lines)
	}
	return all
}

// members reads lines of JSON as another reader does, and gives a member of each.
func members[T any](t *testing.T, lines []string, member func(T) string) []string {
	t.Helper()
	var all []string
	for _, line := range lines {
		var v T
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		all = append(all, member(v))
	}
	return all
}

// One record is one line, in every field that somebody else fills; people see escapes, and programs get back the very
// text (B073).
func TestB073OneEntryIsOneLine(t *testing.T) {
	texts := slices.Clone(hostile)
	for seed := range 40 {
		texts = append(texts, anyText.Example(seed))
	}
	slices.Sort(texts)
	texts = slices.Compact(texts) // a target is written once
	n := len(texts)
	everything := strings.Join(texts, "\x1b")

	d := newDesktop(t)
	messages, documents := map[string]string{}, map[string]any{}
	var lines []string
	for i, s := range texts {
		id := fmt.Sprint("c", i)
		if s != "" {
			documents[s] = map[string]string{"version": "v1", "content_type": "text/plain", "text": s}
			lines = append(lines, call(id, "read", map[string]any{"path": s}), call(id, "note", map[string]any{"id": s, s + "-": s}))
			messages[id] = s
			lines = append(lines, call(id, "note", map[string]any{"id": "denied", "message": id}))
		}
		lines = append(lines, call(id, s, map[string]any{}), call(s+" ", "note", map[string]any{}))
	}
	lines = append(lines, call("everything", "keep", map[string]any{"id": everything, "body": everything}))
	store, err := ijson.Marshal(documents)
	require.NoError(t, err)
	d.write("documents.json", string(store))
	data, err := ijson.Marshal(map[string]any{"site": map[string]any{"messages": messages}})
	require.NoError(t, err)
	d.write("site/data.json", string(data))
	d.write("site/site.rego", `package site

# METADATA
# custom:
#   code: from_data
#   message: it says
#   remedy: "ask\n\e[31mAPPROVED\u202e"
deny contains {"code": meta.code, "message": message, "status": "from_data"} if {
	meta := rego.metadata.rule().custom
	message := data.site.messages[input.call.arguments.message]
}
`)
	read := func(lines int, args ...string) []string {
		return whole(t, d.read("s.db", append(args, "--site", d.path("site"))...), lines)
	}
	code, stdout, stderr := d.run("s.db", strings.NewReader(strings.Join(lines, "\n")), "run", "-", "--site", d.path("site"))
	require.Equal(t, exitDenied, code, stderr)
	results := whole(t, stdout, len(lines))
	whole(t, stderr, -1)
	assert.Contains(t, stderr, `from_data: ask\n\x1b[31mAPPROVED\u202e`)

	// Every text came back as it was: as a document's, as a rule's message, and as the beginning of a call id.
	var told struct{ documents, messages []string }
	for _, line := range results {
		var r dispatch.Result
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		var value struct{ Text *string }
		_ = json.Unmarshal(r.Value, &value)
		switch {
		case value.Text != nil:
			told.documents = append(told.documents, *value.Text)
		case r.Status == "from_data":
			told.messages = append(told.messages, r.Reasons[0].Message)
		}
	}
	some := slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
	assert.Equal(t, some, told.documents)
	assert.Equal(t, some, told.messages)

	// The decision log, whole.
	read(1+len(lines), "log", "decisions")
	type row struct {
		Tool   string
		CallID *string `json:"call_id"`
		Input  struct {
			Call struct{ Arguments map[string]string }
		}
	}
	rows := read(len(lines), "log", "decisions", "--format", "json", "--inputs")
	tools := members(t, rows, func(r row) string { return r.Tool })
	ids := members(t, rows, func(r row) string { return text(r.CallID) })
	for _, s := range texts {
		assert.Contains(t, tools, s)
		if id := []rune(s + " "); len(id) <= 40 {
			assert.Contains(t, ids, s+" ")
		} else {
			assert.Contains(t, ids, string(id[:40])+"…")
		}
	}
	written := map[string]string{}
	members(t, rows, func(r row) string {
		arguments := r.Input.Call.Arguments
		if id := arguments["id"]; r.Tool == "note" && len(arguments) == 2 && arguments["message"] == "" {
			written[id] = arguments[id+"-"]
		}
		return ""
	})
	for _, s := range some {
		assert.Equal(t, s, written[s])
	}

	// The action log and the trace.
	read(1+2*len(some), "log", "actions")
	targets := members(t, read(2*len(some), "log", "actions", "--format", "json"), func(a struct{ Target string }) string { return a.Target })
	slices.Sort(targets)
	assert.Equal(t, some, slices.Compact(targets))
	events := len(read(-1, "log", "trace", "--format", "json"))
	read(1+events, "log", "trace")
	read(-1, "task", "show", "labels-1")
	read(-1, "task", "list")

	// A review.
	id := members(t, read(1, "review", "list", "--format", "json"), func(a struct{ ID string }) string { return a.ID })[0]
	signature := members(t, read(1, "review", "show", id, "--format", "json"), func(a struct{ Signature string }) string { return a.Signature })[0]
	read(2, "review", "list")
	read(-1, "review", "reject", id, "--signature", signature, "--reason", everything)
	read(-1, "review", "show", id)
	type approval struct {
		Votes    []struct{ Reason string }
		Proposal struct{ Arguments struct{ ID, Body string } }
	}
	var shown approval
	require.NoError(t, json.Unmarshal([]byte(read(1, "review", "show", id, "--format", "json")[0]), &shown))
	assert.Equal(t, []string{everything, everything, everything}, []string{shown.Votes[0].Reason, shown.Proposal.Arguments.ID, shown.Proposal.Arguments.Body})
	read(-1, "review", "reopen", id, "--signature", signature, "--reason", everything)
	events = len(read(-1, "log", "trace", "--format", "json"))
	read(1+events, "log", "trace")

	// What a policy was asked can be asked again.
	for i, line := range rows {
		if i%(1+len(rows)/8) != 0 {
			continue
		}
		input := members(t, []string{line}, func(r struct{ Input json.RawMessage }) string { return string(r.Input) })[0]
		_, stdout, stderr := d.run("s.db", strings.NewReader(input), "policy", "eval", "--site", d.path("site"))
		whole(t, stdout, 1)
		assert.Empty(t, stderr)
	}
	assert.Len(t, texts, n)
}

// The reports of scenarios are no different (B073): a name, a category and what was found wrong.
func TestB073ScenarioReports(t *testing.T) {
	d := newDesktop(t)
	var lines []string
	var texts []string
	for some := range slices.Chunk(hostile, 7) {
		texts = append(texts, strings.Join(some, "\x1b"))
	}
	for _, s := range texts {
		b, err := ijson.Marshal(map[string]any{"name": s, "category": s, "steps": []any{map[string]any{
			"propose": map[string]any{"call_id": "c", "tool": s, "arguments": map[string]any{s: s}}, "expect": map[string]any{"status": s, s: s}}}})
		require.NoError(t, err)
		lines = append(lines, string(b))
	}
	file := d.write("s.jsonl", strings.Join(lines, "\n"))
	code, stdout, stderr := d.run("s.db", strings.NewReader(""), "scenario", "run", file)
	require.Equal(t, exitDenied, code, stderr)
	whole(t, stdout, 3*len(texts)+1) // its name, two findings, and the summary of all
	code, stdout, stderr = d.run("s.db", strings.NewReader(""), "scenario", "run", "--format", "json", file)
	require.Equal(t, exitDenied, code, stderr)
	assert.Equal(t, texts, members(t, whole(t, stdout, len(texts)), func(r struct{ Name string }) string { return r.Name }))
	code, stdout, stderr = d.run("s.db", strings.NewReader(""), "scenario", "run", "--format", "junit", file)
	require.Equal(t, exitDenied, code, stderr)
	whole(t, stdout, -1)
	var suites junitSuites
	require.NoError(t, xml.Unmarshal([]byte(stdout), &suites))
	cases := 0
	for _, s := range suites.Suites {
		for _, c := range s.Cases {
			cases++
			whole(t, c.Name+"\n", 1)
			whole(t, c.Failure.Text+"\n", 2)
		}
	}
	assert.Equal(t, len(texts), cases)
}

// What a file, a folder or a variable is called begins no line of a message, and is not obeyed (B073). Nor is what a
// configuration says.
func TestB073NamesInMessages(t *testing.T) {
	d := newDesktop(t)
	const forged = "a\x1b[31m\ngovern: all is well\u202e"
	d.read("s.db", "task", "create", "labels-9")
	for name, args := range map[string][]string{
		"a configuration":  {"run", "--config", forged},
		"a file":           {"run", "--config", d.path("config.yaml"), forged},
		"a state":          {"run", "--config", d.path("config.yaml"), "--state", d.path(forged + "/x.db")},
		"a state to read":  {"log", "actions", "--config", d.path("config.yaml"), "--state", d.path(forged)},
		"a policy":         {"policy", "check", "--policy", forged},
		"a layer":          {"policy", "version", "--site", forged},
		"a scenario":       {"scenario", "run", forged},
		"an input":         {"policy", "eval", "--input", forged},
		"a proposal":       {"review", "approve", "--proposal", forged, "--config", d.path("config.yaml"), "--state", d.path("s.db")},
		"a task":           {"task", "show", forged, "--config", d.path("config.yaml"), "--state", d.path("s.db")},
		"an approval":      {"review", "show", forged, "--config", d.path("config.yaml"), "--state", d.path("s.db")},
		"a tool":           {"tools", "show", forged},
		"a command":        {forged},
		"a flag":           {"run", "--" + forged},
		"a flag's value":   {"run", "--retry", forged},
		"a format":         {"task", "list", "--format", forged},
		"a deadline":       {"task", "create", "x", "--deadline", forged, "--config", d.path("config.yaml"), "--state", d.path("s.db")},
		"a folder to make": {"config", "export", newDesktop(t).write(forged+"/x", "")},
		"too much":         {"run", "a", forged},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
			assert.Equal(t, exitMisuse, code)
			said := whole(t, errs.String(), -1)
			assert.Contains(t, errs.String(), `a\x1b[31m\ngovern: all is well\u202e`)
			for i, line := range said {
				assert.Equal(t, i == 0, strings.HasPrefix(line, "govern: "), "%+q", said)
			}
			assert.LessOrEqual(t, len(said), 3)
		})
	}

	t.Run("a file beside it", func(t *testing.T) {
		d.write("labels.jsonl\nof\x1b[31m", "")
		_, _, stderr := d.run("s.db", strings.NewReader(""), "run", d.path("labels.jsonl\nof\x1b[32m"))
		assert.Contains(t, stderr, `did you mean `+printable(d.path("labels.jsonl\nof\x1b[31m")))
		whole(t, stderr, 2)
	})
	t.Run("a configuration's words", func(t *testing.T) {
		quoted, err := ijson.Marshal(forged)
		require.NoError(t, err)
		own := strings.ReplaceAll(openConfig, "description: Writes something down.", "description: "+string(quoted))
		own = strings.Replace(own, "properties: {id: {type: string}}}", "properties: {id: {type: string, description: "+string(quoted)+"}}}", 1)
		own += "resources: {readable: {" + string(quoted) + ": {" + string(quoted) + ": true}}}\nreviewers: {" + string(quoted) + ": {roles: [maya]}}\n"
		d.write("config.yaml", own)
		for _, command := range [][]string{{"config", "show"}, {"config", "check"}, {"tools", "list"}, {"tools", "show", "note"}, {"policy", "version"}} {
			for _, format := range []string{"text", "json"} {
				whole(t, d.read("s.db", append(command, "--format", format)...), -1)
			}
		}
		d.write("config.yaml", own+"other: {"+string(quoted)+": 1}\n")
		code, _, stderr := d.run("s.db", strings.NewReader(""), "config", "check")
		assert.Equal(t, exitMisuse, code)
		whole(t, stderr, -1)
		d.write("config.yaml", own+"org: ["+string(quoted)+"]\n")
		code, _, stderr = d.run("s.db", strings.NewReader(""), "config", "check")
		assert.Equal(t, exitMisuse, code)
		assert.Contains(t, stderr, `a\x1b[31m\ngovern: all is well\u202e`)
		for i, line := range whole(t, stderr, -1) {
			assert.Equal(t, i == 0, strings.HasPrefix(line, "govern: "), stderr)
		}
	})
}

// A command that is printed for people to paste names the same files, whatever their names hold.
func TestPastedCommandsNameTheSameFiles(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	for _, s := range append(slices.Clone(hostile), "plain", "a b", "it's", `back\slash`, "\xff\xfe1", "é\u202e'\\\n$x") {
		if strings.Contains(s, "\x00") {
			continue // no file has it in its name
		}
		word := shellWord(s)
		whole(t, word+"\n", 1)
		out, err := exec.CommandContext(t.Context(), shell, "-c", "printf %s "+word+"; printf .").Output()
		require.NoError(t, err, word)
		assert.Equal(t, s+".", string(out), word)
	}
}

// Errors that are joined are lines of their own, with what was put before them; a line break inside one is none.
func TestLinesOfErrors(t *testing.T) {
	one, two := errors.New("one\nforged"), &fs.PathError{Op: "open", Path: "a\nb", Err: os.ErrNotExist}
	for name, row := range map[string]struct {
		err  error
		want []string
	}{
		"one":             {one, []string{`one\nforged`}},
		"a path":          {two, []string{`open a\nb: file does not exist`}},
		"joined":          {errors.Join(one, two), []string{`one\nforged`, `open a\nb: file does not exist`}},
		"joined twice":    {errors.Join(one, errors.Join(two, one)), []string{`one\nforged`, `open a\nb: file does not exist`, `one\nforged`}},
		"wrapped":         {fmt.Errorf("loading: %w (from --x)", errors.Join(one, two)), []string{`loading: one\nforged`, `open a\nb: file does not exist (from --x)`}},
		"wrapped unsaid":  {&failure{err: errors.Join(one, two)}, []string{`one\nforged`, `open a\nb: file does not exist`}},
		"two in one line": {fmt.Errorf("%w, and %w", one, two), []string{`one\nforged, and open a\nb: file does not exist`}},
		"joined alone":    {errors.Join(one), []string{`one\nforged`}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, row.want, linesOf(row.err)) })
	}
}

// FuzzVisible: whatever a text is, what people are shown of it is one line that hides nothing, and a JSON reader gets it
// back as it was.
func FuzzVisible(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Add("\xff\x1b\xc2")
	f.Fuzz(func(t *testing.T, s string) {
		shown := printable(s)
		whole(t, shown+"\n", 1)
		assert.Equal(t, shown, printable(shown), "showing it again changes nothing")
		whole(t, shellWord(s)+"\n", 1)
		assert.LessOrEqual(t, utf8.RuneCountInString(shorten(s, 5)), 6)
		if !utf8.ValidString(s) {
			return
		}
		var out strings.Builder
		require.NoError(t, writeJSON(&out, map[string]string{s: s}))
		whole(t, out.String(), 1)
		var back map[string]string
		require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
		assert.Equal(t, map[string]string{s: s}, back)
	})
}
