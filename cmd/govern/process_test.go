//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/policy-dispatch/govern"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/sqlite"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What real processes do to one state: killed, stopped, cut off, and all at once.

// patience bounds every process that a test starts. Nothing waits for it unless something hangs.
const patience = 2 * time.Minute

// home is a folder in which govern runs: its state, and the files that a test gives it.
type home struct {
	t   testing.TB
	dir string
	// env is what each of its processes has in its environment beside what the test has.
	env []string
}

// roomy is the shipped configuration with budgets that a test does not exhaust.
const roomy = `
state: govern.db
task: labels-1
actor: learner
profiles:
  warehouse:
    tools: [read_document, calculate, record_draft]
    readable: [warehouse]
    scopes: ["read:document", "write:draft"]
    max_steps: 1000000
    max_pending: 10000
tasks:
  labels-1: {profile: warehouse, actor: learner}
`

func newHome(t testing.TB) home {
	t.Helper()
	h := home{t: t, dir: t.TempDir()}
	h.write("config.yaml", roomy)
	h.write("draft.json", draft("d1")+"\n")
	return h
}

func (h home) write(name, text string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600))
}

func (h home) state() string { return filepath.Join(h.dir, "govern.db") }

// copy makes another folder with the same files. Nothing may be using them.
func (h home) copy(t testing.TB) home {
	t.Helper()
	to := home{t: t, dir: t.TempDir(), env: h.env}
	files, err := os.ReadDir(h.dir)
	require.NoError(t, err)
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(h.dir, f.Name()))
		require.NoError(t, err)
		to.write(f.Name(), string(b))
	}
	return to
}

// command is a process that is not started yet: govern, or a program that starts it.
func (h home) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = h.dir
	cmd.WaitDelay = 5 * time.Second
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "GOVERN_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	// Under the race detector each process would otherwise wait a second at its end.
	cmd.Env = append(cmd.Env, "GOVERN_CONFIG=config.yaml", strings.TrimSpace("GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE")), folderEnv+"="+h.dir)
	cmd.Env = append(cmd.Env, h.env...)
	return cmd
}

// answer is what a process said and how it ended.
type answer struct {
	code           int
	signal         syscall.Signal
	stdout, stderr string
}

// line is one result as a program reads it.
type line struct {
	Step     int             `json:"step"`
	CallID   string          `json:"call_id"`
	Status   dispatch.Status `json:"status"`
	Value    json.RawMessage `json:"value"`
	Approval struct {
		ID        string `json:"id"`
		Signature string `json:"signature"`
	} `json:"approval"`
	PolicyVersion string `json:"policy_version"`
}

func parseLine(t testing.TB, s string) line {
	t.Helper()
	var l line
	require.NoError(t, json.Unmarshal([]byte(s), &l), "a result is one whole line: %q", s)
	return l
}

// lines are the results that were printed; a last line that was cut short counts for nothing.
func (a answer) lines(t testing.TB) []line {
	t.Helper()
	var out []line
	for s := range strings.Lines(a.stdout) {
		if strings.HasSuffix(s, "\n") {
			out = append(out, parseLine(t, s))
		}
	}
	return out
}

func ended(t testing.TB, cmd *exec.Cmd, err error, stdout, stderr string) answer {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err, "%v: %s", cmd.Args, stderr)
	}
	a := answer{code: cmd.ProcessState.ExitCode(), stdout: stdout, stderr: stderr}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		a.signal = status.Signal()
	}
	return a
}

// execute runs a process to its end.
func (h home) execute(name string, args ...string) answer {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	cmd := h.command(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	require.NoError(h.t, ctx.Err(), "%v hangs", cmd.Args)
	return ended(h.t, cmd, err, stdout.String(), stderr.String())
}

func (h home) govern(args ...string) answer {
	h.t.Helper()
	return h.execute("govern", args...)
}

// running is a govern that runs while a test talks to it.
type running struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	lines  *bufio.Reader
	stderr bytes.Buffer
}

// start starts a process whose standard input and output are pipes.
func (h home) start(args ...string) *running {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	h.t.Cleanup(cancel)
	s := &running{t: h.t, cmd: h.command(ctx, "govern", args...)}
	var err error
	s.stdin, err = s.cmd.StdinPipe()
	require.NoError(h.t, err)
	out, in, err := os.Pipe()
	require.NoError(h.t, err)
	h.t.Cleanup(func() { out.Close() })
	s.cmd.Stdout, s.cmd.Stderr = in, &s.stderr
	require.NoError(h.t, s.cmd.Start())
	require.NoError(h.t, in.Close())
	s.stdout, s.lines = out, bufio.NewReader(out)
	return s
}

// send gives proposals to the process. It never fails: a process that has ended reads none.
func (s *running) send(proposals ...string) {
	_, _ = io.WriteString(s.stdin, strings.Join(proposals, "\n")+"\n")
}

// next waits for one result.
func (s *running) next() line {
	s.t.Helper()
	text, err := s.lines.ReadString('\n')
	require.NoError(s.t, err, "%s", text)
	return parseLine(s.t, text)
}

// finish closes the input and reads what is left.
func (s *running) finish() answer {
	s.t.Helper()
	require.NoError(s.t, s.stdin.Close())
	return s.rest()
}

func (s *running) rest() answer {
	s.t.Helper()
	rest, err := io.ReadAll(s.lines)
	if !errors.Is(err, os.ErrClosed) {
		require.NoError(s.t, err)
	}
	err = s.cmd.Wait()
	return ended(s.t, s.cmd, err, string(rest), s.stderr.String())
}

// account is what a state holds, after everything that must hold of any state was checked.
type account struct {
	tables
	count     map[dispatch.Kind]int
	decisions []dispatch.DecisionEntry
}

// examine opens a copy of the state, so that whoever comes next still meets what a dead process left.
func (h home) examine(t *testing.T) account {
	t.Helper()
	return h.copy(t).open(t)
}

func (h home) open(t *testing.T) account {
	t.Helper()
	s, err := sqlite.Open(t.Context(), h.state(), sqlite.Options{})
	require.NoError(t, err)
	a := account{count: map[dispatch.Kind]int{}}
	var entries []dispatch.Entry
	for e, err := range s.Entries(t.Context(), dispatch.DefaultTenant, "") {
		require.NoError(t, err)
		entries = append(entries, e)
		a.count[e.Kind]++
		if e.Kind == dispatch.KindDecision {
			var d dispatch.DecisionEntry
			require.NoError(t, json.Unmarshal(e.Body, &d))
			a.decisions = append(a.decisions, d)
		}
	}
	a.tables = fromStore(t, s, dispatch.DefaultTenant)
	require.Equal(t, a.tables, fromEntries(t, entries), "the entries rebuild the tables")
	require.NoError(t, s.Close())
	noFaults(t, h.state())
	return a
}

// the gives the one row of a table.
func the(t *testing.T, rows map[string]map[string]any) map[string]any {
	t.Helper()
	require.Len(t, rows, 1)
	for _, row := range rows {
		return row
	}
	return nil
}

// hold keeps a task from every other process until release. What is started meanwhile comes to a stand at it.
func (h home) hold(t *testing.T) (release func()) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), h.state(), sqlite.Options{})
	require.NoError(t, err)
	free, err := s.Hold(t.Context(), dispatch.TaskKey{Tenant: dispatch.DefaultTenant, ID: "labels-1"})
	require.NoError(t, err)
	return func() {
		t.Helper()
		free()
		require.NoError(t, s.Close())
	}
}

// startUp lets a process come and go that starts as others have just been started: they are as far by then.
func (h home) startUp(t *testing.T) {
	t.Helper()
	require.Zero(t, h.govern("log", "actions").code) // which takes no task's turn
}

// asked is a state in which draft.json waits for a person, and approved one in which it may run.
func asked(t testing.TB) home {
	t.Helper()
	h := newHome(t)
	a := h.govern("run", "draft.json")
	require.Equal(t, exitWaiting, a.code, a.stderr)
	return h
}

func approved(t testing.TB) home {
	t.Helper()
	h := asked(t)
	h.approve(t)
	return h
}

func (h home) approve(t testing.TB) {
	t.Helper()
	a := h.govern("review", "approve", "--proposal", "draft.json", "--lifetime", "10")
	require.Zero(t, a.code, a.stderr)
}

// Several processes at once.

// redeemAtOnce lets four processes meet at one approval: two that propose the call, and two that look for what was
// approved. It says how many of the latter came in time to find it.
func redeemAtOnce(t *testing.T, before home) (found int) {
	t.Helper()
	h := before.copy(t)
	proposing := []*running{h.start("run", "-"), h.start("run", "-")}
	for _, s := range proposing {
		s.send(add("warm"))
		require.Equal(t, dispatch.StatusOK, s.next().Status)
	}
	h.approve(t)
	release := h.hold(t)
	looking := []*running{h.start("run", "--approved"), h.start("run", "--approved")}
	for _, s := range proposing {
		s.send(draft("d1"))
	}
	h.startUp(t)
	release()
	got := map[dispatch.Status]int{}
	for _, s := range append(proposing, looking...) {
		a := s.finish()
		require.Zero(t, a.code, a.stderr)
		for _, l := range a.lines(t) {
			got[l.Status]++
			require.JSONEq(t, `{"draft_id":"labels-note"}`, string(l.Value))
		}
		if slices.Contains(looking, s) {
			found += len(a.lines(t))
		}
	}
	require.Equal(t, map[dispatch.Status]int{dispatch.StatusOK: 1, dispatch.StatusReplayed: 1 + found}, got)
	a := h.open(t)
	require.Equal(t, 3, a.count[dispatch.KindAction], "two calculations and one draft")
	require.Len(t, a.Records, 1)
	require.Equal(t, "consumed", the(t, a.Approvals)["state"])
	return found
}

func redeemRounds(t *testing.T, rounds int) {
	t.Helper()
	before := asked(t)
	found := 0
	for range rounds {
		found += redeemAtOnce(t, before)
	}
	t.Logf("%d of %d processes found the approval before it was used", found, 2*rounds)
}

func TestOneApprovalForManyProcesses(t *testing.T) {
	redeemRounds(t, 10)
}

// twoProcesses gives two processes 25 proposals each, all at once, and returns every result.
func (h home) twoProcesses(t *testing.T, first func(), code int, proposal func(i int) string) []line {
	t.Helper()
	both := []*running{h.start("run", "-"), h.start("run", "-")}
	var out []line
	for _, s := range both {
		s.send(add("warm"))
		out = append(out, s.next())
	}
	first()
	release := h.hold(t)
	for p, s := range both {
		var all []string
		for i := range 25 {
			all = append(all, proposal(25*p+i))
		}
		s.send(all...)
	}
	release()
	for _, s := range both {
		a := s.finish()
		require.Equal(t, code, a.code, a.stderr)
		require.Len(t, a.lines(t), 25)
		out = append(out, a.lines(t)...)
	}
	return out
}

// B061: one key from two processes is one run, and no caller is told of a failure.
func TestB061OneKeyFromTwoProcesses(t *testing.T) {
	h := asked(t)
	got := map[dispatch.Status]int{}
	all := h.twoProcesses(t, func() { h.approve(t) }, exitOK, func(i int) string { return draft(fmt.Sprintf("d%d", i)) })
	for _, l := range all[2:] {
		got[l.Status]++
	}
	require.Equal(t, map[dispatch.Status]int{dispatch.StatusOK: 1, dispatch.StatusReplayed: 49}, got)
	a := h.open(t)
	require.Equal(t, 3, a.count[dispatch.KindAction])
	require.Len(t, a.decisions, 53)
	require.Len(t, a.Records, 1)
}

// Many keys from two processes are as many steps: none twice, none left out.
func TestB061ManyKeysFromTwoProcesses(t *testing.T) {
	h := newHome(t)
	all := h.twoProcesses(t, func() {}, exitWaiting, func(i int) string {
		return draft(fmt.Sprintf("d%d", i), "idempotency_key", fmt.Sprintf("key-%d", i), "draft_id", fmt.Sprintf("note-%d", i))
	})
	steps := map[int]string{}
	for i, l := range all {
		if i >= 2 {
			require.Equal(t, dispatch.StatusApprovalRequired, l.Status)
		}
		require.NotContains(t, steps, l.Step)
		steps[l.Step] = l.CallID
	}
	require.Len(t, steps, 52)
	a := h.open(t)
	require.Len(t, a.Approvals, 50)
	for _, d := range a.decisions {
		require.Equal(t, steps[d.Step], *d.CallID)
	}
	require.Len(t, a.decisions, 52)
}

// hasteTerms let a call whose draft is late-… expire at once, so that there is something to sweep.
func (h home) hasteTerms() {
	h.t.Helper()
	h.terms(`"ttl": _ttl`, "\ndefault _ttl := \"24h\"\n\n_ttl := \"1ms\" if startswith(input.call.target, \"late-\")\n")
	h.write("config.yaml", roomy+"policy: [policy]\n")
}

// terms writes a copy of the built-in policy whose core asks for something else of an approval than a day's time.
func (h home) terms(instead, more string) {
	h.t.Helper()
	files, err := govern.Files.ReadDir("policy")
	require.NoError(h.t, err)
	require.NoError(h.t, os.Mkdir(filepath.Join(h.dir, "policy"), 0o700))
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		b, err := govern.Files.ReadFile("policy/" + f.Name())
		require.NoError(h.t, err)
		text := string(b)
		if f.Name() == "approval.rego" {
			require.Contains(h.t, text, `"ttl": "24h"`)
			text = strings.Replace(text, `"ttl": "24h"`, instead, 1) + more
		}
		h.write("policy/"+f.Name(), text)
	}
}

// noLock says that no caller was told of a lock or of anything broken.
func noLock(t *testing.T, a answer, code int) {
	t.Helper()
	require.Equal(t, code, a.code, a.stderr)
	for _, word := range []string{"lock", "busy", "unavailable"} {
		require.NotContains(t, strings.ToLower(a.stderr), word)
	}
}

// busyState has one process writing decisions while others approve and sweep, for as long as goOn says. It is B063.
func busyState(t *testing.T, goOn func(round int) bool) {
	h := newHome(t)
	h.hasteTerms()
	writer := h.start("run", "-")
	answers := 0
	propose := func(proposal string, want dispatch.Status) line {
		writer.send(proposal)
		l := writer.next()
		answers++
		require.Equal(t, want, l.Status)
		require.Equal(t, answers, l.Step)
		return l
	}
	propose(add("first"), dispatch.StatusOK) // there is a state now, at which others can look

	ask := make(chan line, 5) // calls that wait for the approver
	ctx, stop := context.WithCancel(t.Context())
	var approvals, lists int
	var people sync.WaitGroup
	defer people.Wait()
	defer stop()
	people.Go(func() {
		defer stop()
		for round := 0; goOn(round); round++ {
			var l line
			select {
			case l = <-ask:
			case <-ctx.Done():
				return
			}
			a := h.govern("review", "approve", l.Approval.ID, "--signature", l.Approval.Signature)
			if !assert.Zero(t, a.code, a.stderr) {
				return
			}
			approvals++
		}
	})
	people.Go(func() {
		for ctx.Err() == nil {
			a := h.govern("review", "list")
			if !assert.Zero(t, a.code, a.stderr) {
				return
			}
			lists++
		}
	})

	waiting := map[string]bool{}
	named := func(kind string) string {
		name := fmt.Sprintf("%s-%d", kind, answers)
		return draft("d", "draft_id", name, "idempotency_key", name)
	}
	for ctx.Err() == nil {
		if len(ask) < cap(ask) {
			l := propose(named("note"), dispatch.StatusApprovalRequired)
			waiting[l.Approval.ID] = true
			ask <- l
		}
		propose(named("late"), dispatch.StatusApprovalRequired)
		for i := range 10 {
			propose(add(fmt.Sprint("m", i)), dispatch.StatusOK)
		}
	}
	people.Wait()
	noLock(t, writer.finish(), exitWaiting)
	noLock(t, h.govern("review", "list"), exitOK)

	a := h.open(t)
	require.Len(t, a.decisions, answers, "as many decisions as answers")
	require.Equal(t, approvals, a.count[dispatch.KindReview])
	voted := 0
	for id, row := range a.Approvals {
		votes := len(row["votes"].([]any))
		voted += votes
		switch {
		case !waiting[id]:
			require.Equal(t, []any{"expired", 0}, []any{row["state"], votes})
		case votes == 0:
			require.Equal(t, "pending", row["state"])
		default:
			want := "approved"
			if row["expires_at_step"].(float64) < float64(answers+1) {
				want = "expired" // at the last look at the list, if not before
			}
			require.Equal(t, []any{want, 1}, []any{row["state"], votes})
		}
	}
	require.Equal(t, approvals, voted, "one vote each")
	t.Logf("%d decisions, %d approvals, %d lists, %d sweeps that found something", answers, approvals, lists, a.count[dispatch.KindExpiry])
}

// B063: writers that meet wait for one another; nobody is told of a lock.
func TestB063ProcessesShareTheState(t *testing.T) {
	busyState(t, func(round int) bool { return round < 20 })
}

// opposed starts an approval and a rejection of one call together, once a round. It is B045.
func opposed(t *testing.T, rounds int) {
	h := newHome(t)
	won := map[string]int{}
	for i := range rounds {
		name := fmt.Sprint("note-", i)
		h.write("call.json", draft("d", "draft_id", name, "idempotency_key", name)+"\n")
		a := h.govern("run", "call.json")
		require.Equal(t, exitWaiting, a.code, a.stderr)
		id := a.lines(t)[0].Approval.ID

		release := h.hold(t)
		verbs := map[string]*running{}
		for _, verb := range []string{"approve", "reject"} {
			verbs[verb] = h.start("review", verb, "--proposal", "call.json")
		}
		h.startUp(t)
		release()
		ends := map[string]answer{}
		for verb, s := range verbs {
			ends[verb] = s.finish()
		}
		winner, loser, state := "approve", "reject", "approved"
		if ends["approve"].code != exitOK {
			winner, loser, state = "reject", "approve", "rejected"
		}
		won[winner]++
		require.Equal(t, exitOK, ends[winner].code, ends[winner].stderr)
		require.Equal(t, id+" is "+state, strings.SplitN(ends[winner].stdout, "\n", 2)[0])
		require.Equal(t, exitDenied, ends[loser].code, ends[loser].stderr)
		require.Empty(t, ends[loser].stdout)
		require.Contains(t, ends[loser].stderr, "the approval is "+state+", and does not wait for a vote any more")

		all := h.open(t)
		require.Equal(t, i+1, all.count[dispatch.KindReview])
		require.Equal(t, state, all.Approvals[id]["state"])
		require.Len(t, all.Approvals[id]["votes"], 1)
	}
	t.Logf("won: %v", won)
}

func TestB045ApproveAndRejectTogether(t *testing.T) {
	opposed(t, 10)
}

// Stopped and cut off.

// stopped sends a signal in the middle of a long run.
func stopped(t *testing.T, signal os.Signal, after int) {
	h := newHome(t)
	var all strings.Builder
	for i := range 5000 {
		fmt.Fprintln(&all, add(fmt.Sprint("m", i+1)))
	}
	h.write("many.jsonl", all.String())
	s := h.start("run", "many.jsonl")
	var printed []line
	for range after {
		printed = append(printed, s.next())
	}
	require.NoError(t, s.cmd.Process.Signal(signal))
	a := s.rest()
	printed = append(printed, a.lines(t)...)
	require.True(t, a.stdout == "" || strings.HasSuffix(a.stdout, "\n"), "no result is cut in two")
	require.Equal(t, syscall.Signal(0), a.signal, "it ends by itself")
	require.Equal(t, exitBroken, a.code, a.stderr)
	require.Less(t, len(printed), 5000, "the signal came too late to show anything")

	b := h.open(t)
	require.GreaterOrEqual(t, len(b.decisions), len(printed))
	require.LessOrEqual(t, len(b.decisions), len(printed)+1)
	for i, d := range b.decisions {
		require.Equal(t, dispatch.StatusOK, d.Status, "a signal makes no call fail: %s", d.Detail)
		if i < len(printed) {
			require.Equal(t, []any{d.Step, *d.CallID}, []any{printed[i].Step, printed[i].CallID})
		}
	}
	again := h.govern("run", "draft.json")
	require.Equal(t, exitWaiting, again.code, again.stderr)
	require.Equal(t, len(b.decisions)+1, again.lines(t)[0].Step)
}

func TestSignalStopsBetweenProposals(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		for _, after := range []int{1, 7, 50} {
			t.Run(fmt.Sprint(signal, " after ", after), func(t *testing.T) { stopped(t, signal, after) })
		}
	}
}

// A run that waits for its next proposal stops too.
func TestSignalStopsAnIdleRun(t *testing.T) {
	h := newHome(t)
	s := h.start("run", "-")
	s.send(add("m1"))
	require.Equal(t, 1, s.next().Step)
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	a := s.rest() // its input stays open
	require.Equal(t, syscall.Signal(0), a.signal)
	require.Equal(t, exitBroken, a.code, a.stderr)
	require.Len(t, h.open(t).decisions, 1)
}

// Nobody reads the results any more: the run stops, at the latest after one that could not be told.
func TestClosedOutputStopsTheRun(t *testing.T) {
	h := newHome(t)
	s := h.start("run", "-")
	s.send(add("m1"))
	require.Equal(t, 1, s.next().Step)
	require.NoError(t, s.stdout.Close())
	var all []string
	for i := range 100 {
		all = append(all, add(fmt.Sprint("m", i+2)))
	}
	s.send(all...)
	a := s.finish()
	require.NotZero(t, a.code, a.stderr)
	require.Contains(t, a.stderr, "proposal 2 was carried out and is on record, but its result could not be written")
	require.Len(t, h.open(t).decisions, 2)
}

// A full disk below the results is no different.
func TestFullOutputStopsTheRun(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	h := newHome(t)
	h.write("many.jsonl", add("m1")+"\n"+add("m2")+"\n"+add("m3")+"\n")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := h.command(ctx, "govern", "run", "many.jsonl")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &stderr
	a := ended(t, cmd, cmd.Run(), "", stderr.String())
	require.Equal(t, exitBroken, a.code, a.stderr)
	require.Contains(t, a.stderr, "proposal 1 was carried out and is on record, but its result could not be written")
	require.Len(t, h.open(t).decisions, 1)
}
