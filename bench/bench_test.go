package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//go:generate go test . -run TestPerformancePage -update

var update = flag.Bool("update", false, "write the generated document anew")

const (
	resultsFile = "results.json"
	pageFile    = "../docs/performance.md"
)

// Every figure can still be measured, and its sides give the same answers: they compare them themselves. How fast anything
// is, is no matter here.
func TestEveryFigureCanBeMeasured(t *testing.T) {
	out := filepath.Join(t.TempDir(), "results.json")
	require.NoError(t, run(t.Context(), subjects, []string{"-quick", "-dir", t.TempDir(), "-out", out}, io.Discard, io.Discard))
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	r := readStrictly(t, b)
	assert.Equal(t, figures(r), listed())
	for _, one := range r.Ratios {
		assert.Positive(t, one.Value, one.Name)
		assert.Equal(t, 1, one.N, one.Name)
	}
}

// bench/results.json has the form that others read, and is of the figures and the goals that there are.
func TestResultsOnRecord(t *testing.T) {
	b, err := os.ReadFile(resultsFile)
	require.NoError(t, err)
	r := readStrictly(t, b)
	require.Equal(t, listed(), figures(r), "make bench measures anew")
	assert.NotEmpty(t, r.Machine)
	for i, s := range specsOf(subjects) {
		one := r.Ratios[i]
		assert.Equal(t, s.goal, one.Goal, one.Name)
		assert.Equal(t, s.met(one.Value), one.Met, one.Name)
		assert.Positive(t, one.Value, one.Name)
		assert.GreaterOrEqual(t, one.N, 3, "%s: -quick measures nothing", one.Name)
	}
}

// readStrictly reads {"machine", "ratios": [{"name", "value", "goal", "met", "n"}]}: all of these members, and no other.
func readStrictly(t *testing.T, b []byte) results {
	t.Helper()
	members := func(raw json.RawMessage) (names []string) {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &m))
		for name := range m {
			names = append(names, name)
		}
		return names
	}
	assert.ElementsMatch(t, []string{"machine", "ratios"}, members(b))
	var all struct{ Ratios []json.RawMessage }
	require.NoError(t, json.Unmarshal(b, &all))
	for _, one := range all.Ratios {
		assert.ElementsMatch(t, []string{"name", "value", "goal", "met", "n"}, members(one))
	}
	var r results
	require.NoError(t, ijson.Unmarshal(b, &r))
	return r
}

func figures(r results) (names []string) {
	for _, one := range r.Ratios {
		names = append(names, one.Name)
	}
	return names
}

func listed() (names []string) {
	for _, s := range specsOf(subjects) {
		names = append(names, s.name)
	}
	return names
}

const (
	tableBegins = "<!-- What follows is written by make bench. -->\n"
	tableEnds   = "<!-- What was before is written by make bench. -->\n"
	misses      = "## Where a goal is missed\n"
)

var code = regexp.MustCompile("`([^`\n]+)`")

// docs/performance.md has the figures of bench/results.json, and says of every goal that is missed, and of no other, why.
func TestPerformancePage(t *testing.T) {
	b, err := os.ReadFile(resultsFile)
	require.NoError(t, err)
	r := readStrictly(t, b)
	text, err := os.ReadFile(pageFile)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	require.True(t, begins && ends, "the markers of the table are gone")
	page := before + tableBegins + table(r) + tableEnds + after
	if *update {
		require.NoError(t, os.WriteFile(pageFile, []byte(page), 0o644))
		return
	}
	assert.Equal(t, page, string(text), "the table is stale; make generate writes it anew")

	_, why, found := strings.Cut(after, misses)
	require.True(t, found)
	why, _, _ = strings.Cut(why, "\n## ")
	var missed, explained []string
	for _, one := range r.Ratios {
		if !one.Met {
			missed = append(missed, one.Name)
		}
	}
	for _, m := range code.FindAllStringSubmatch(why, -1) {
		if slices.Contains(listed(), m[1]) && !slices.Contains(explained, m[1]) {
			explained = append(explained, m[1])
		}
	}
	assert.ElementsMatch(t, missed, explained, "the page says of every goal that is missed why, and of no other")
}

func table(r results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMachine: %s.\n\n| figure | what over what | median | goal | | rounds |\n|---|---|---:|---:|---|---:|\n", r.Machine)
	specs := specsOf(subjects)
	for _, one := range r.Ratios {
		s := specs[slices.IndexFunc(specs, func(s spec) bool { return s.name == one.Name })]
		verdict := "met"
		if !one.Met {
			verdict = "**missed by " + s.by(one.Value) + "**"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%s | %s %s%s | %s | %d |\n", one.Name, s.what, number(one.Value), s.unit, s.bound, number(one.Goal), s.unit, verdict, one.N)
	}
	return b.String() + "\n"
}

// by is how far a value is from the goal.
func (s spec) by(value float64) string {
	far := value/s.goal - 1
	if s.bound == atLeast {
		far = 1 - value/s.goal
	}
	return fmt.Sprintf("%.0f %%", 100*far)
}

// The checks that keep a wrong answer from being timed do notice one.
func TestWrongAnswersAreNoticed(t *testing.T) {
	ctx := t.Context()
	tmpl, err := sample()
	require.NoError(t, err)
	c, made, err := shipped(ctx)
	require.NoError(t, err)
	inputs, err := recorded(ctx, made.Snapshot)
	require.NoError(t, err)
	opa, err := newBare(ctx, c, made)
	require.NoError(t, err)
	store, err := sqlite.OpenMemory(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()

	in := inputs[0]
	require.NoError(t, opa.agree(ctx, made.Snapshot, in))
	require.NoError(t, opa.usual(ctx, in))
	require.NoError(t, opa.fromJSON(ctx, in))
	other := in
	other.Decision.Status = dispatch.StatusDryRun
	elsewhere := made
	elsewhere.Snapshot = &dispatch.Snapshot{Version: "another", Decider: made.Decider}
	opa2, err := newBare(ctx, c, elsewhere)
	require.NoError(t, err)

	g := newGate(store, made.Snapshot)
	task := name('t')
	require.NoError(t, g.create(ctx, task))

	ground, commit := tmpl.fresh()
	require.NoError(t, store.Apply(ctx, ground))
	require.NoError(t, store.Apply(ctx, commit))
	require.NoError(t, tmpl.arrived(ctx, store, commit))
	lost := commit
	lost.Entries = commit.Entries[:1]
	changed := commit
	operation := *commit.Operation
	operation.Result = ijson.Raw("1")
	changed.Operation = &operation

	for name, err := range map[string]error{
		"another status, govern":          judge(ctx, made.Snapshot, other),
		"another status, from bytes":      opa.fromJSON(ctx, other),
		"another status, usual embedding": opa.usual(ctx, other),
		"other data":                      opa2.agree(ctx, made.Snapshot, in),
		"another result of a dispatch":    g.propose(ctx, task, read(readable), dispatch.StatusResourceDenied),
		"an entry too many":               tmpl.arrived(ctx, store, lost),
		"another operation":               tmpl.arrived(ctx, store, changed),
		"a state of another size":         size{tasks: 1, pending: 1}.check(ctx, store, []string{task}),
		"a state with other entries":      size{tasks: 1, entries: 5}.check(ctx, store, []string{task}),
	} {
		assert.Error(t, err, name)
	}
}

// Copies of govern's rows are as many as were asked for, under names of their own, and hold what the rows held.
func TestFilledStates(t *testing.T) {
	tmpl, err := sample()
	require.NoError(t, err)
	for _, tt := range []struct {
		size             size
		pending, entries int // beside those of the pattern
	}{
		{size{tasks: 10}, 0, 0},
		{size{tasks: 10, pending: 3}, 3, 0},
		{size{tasks: 10, pending: 25}, 25, 0},
		{size{tasks: 10, entries: 60}, 0, 60},
	} {
		st, tasks, err := tt.size.fill(t.Context(), &env{dir: t.TempDir(), quick: true}, "state", tmpl)
		require.NoError(t, err)
		assert.Len(t, tasks, tt.size.tasks)
		_, err = st.use(t.Context(), func(store *sqlite.Store) (float64, error) {
			all, err := store.Tasks(t.Context(), who.Tenant)
			require.NoError(t, err)
			assert.Len(t, all, tt.size.tasks+1)
			waiting, err := store.Approvals(t.Context(), who.Tenant, "", dispatch.Pending)
			require.NoError(t, err)
			seen := map[string]bool{}
			for _, a := range waiting {
				seen[a.ID+a.Signature] = true
				assert.JSONEq(t, string(tmpl.before.Approval.Proposal), string(a.Proposal))
			}
			assert.Len(t, seen, tt.pending+min(tt.pending, 1))
			entries := 0
			for e, err := range store.Entries(t.Context(), who.Tenant, "") {
				require.NoError(t, err)
				assert.Equal(t, tmpl.commit.Entries[e.N].Body, e.Body)
				entries++
			}
			assert.Equal(t, tt.entries+2*min(tt.entries, 1), entries)
			// govern goes on with such a task.
			return 0, newGate(store, tmpl.made.Snapshot).propose(t.Context(), tasks[0], read(readable), dispatch.StatusOK)
		})
		require.NoError(t, err)
	}
}

// What govern is compared with has OPA's own built-ins only if they were looked at before internal/opa could change them.
func TestStockComesBeforeGovern(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	trace := string(out)
	own, governs := strings.Index(trace, "init github.com/policy-dispatch/govern/bench/stock "), strings.Index(trace, "init github.com/policy-dispatch/govern/internal/opa ")
	require.Positive(t, own, trace)
	require.Positive(t, governs, trace)
	assert.Less(t, own, governs)
}
