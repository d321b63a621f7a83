//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Killed at a system call.

// mutations are the calls that change a file, or tell somebody that one was changed.
var mutations = []string{"pwrite64", "write", "fsync", "fdatasync", "ftruncate", "unlink", "unlinkat", "rename", "renameat", "renameat2", "fchown"}

// moment is the nth call of one kind about one file: one of the state's, its folder, or where a command writes what it
// says. Counted by file, a moment is the same in every run, whichever of its threads makes the call.
type moment struct {
	call, file string
	nth        int
}

func needStrace(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "strace", "-f", "-o", os.DevNull, "true").CombinedOutput()
	if err == nil {
		return
	}
	why := fmt.Sprintf("strace cannot be used here (Debian: apt-get install strace; in a container allow SYS_PTRACE): %v: %s", err, out)
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// traced is a run of govern under strace.
type traced struct {
	answer
	home home
	// out is the folder of what it wrote to stdout and stderr, and of the trace.
	out string
	// calls are what strace wrote, a line a call.
	calls []string
}

// trace runs govern under strace, which follows these calls. With an injection it changes those about the moment's file.
func (h home) trace(calls []string, at moment, injection string, args []string) traced {
	h.t.Helper()
	r := traced{home: h, out: h.t.TempDir()}
	file := func(name string) string { return filepath.Join(r.out, name) }
	all := []string{"-f", "-qq", "-y", "-s", "0", "-o", file("trace"), "-e", "signal=none", "-e", "trace=" + strings.Join(calls, ",")}
	if injection != "" {
		path := filepath.Join(h.dir, at.file)
		if at.file == "stdout" || at.file == "stderr" {
			path = file(at.file)
		}
		all = append(all, "-P", path, "-e", "inject="+at.call+":"+injection)
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	cmd := h.command(ctx, "strace", slices.Concat(all, []string{"govern"}, args)...)
	// With processors to spare Go leaves a thread what it runs while a call of it takes long, as traced ones do.
	cmd.Env = append(cmd.Env, "GOMAXPROCS=8")
	stdout, err := os.Create(file("stdout"))
	require.NoError(h.t, err)
	defer stdout.Close()
	stderr, err := os.Create(file("stderr"))
	require.NoError(h.t, err)
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Run()
	require.NoError(h.t, ctx.Err(), "%v hangs", cmd.Args)
	read := func(name string) string {
		b, err := os.ReadFile(file(name))
		require.NoError(h.t, err)
		return string(b)
	}
	r.answer = ended(h.t, cmd, err, read("stdout"), read("stderr"))
	r.calls = strings.Split(strings.TrimSpace(read("trace")), "\n")
	return r
}

// tracedCall finds the name of a call, the file or folder behind its first argument, and a name in its first or second.
var tracedCall = regexp.MustCompile(`^\d+ +(\w+)\((?:(?:AT_FDCWD|\d+)<([^>]*)>(?:, )?)?(?:"([^"]+)")?`)

// moments are the calls of a run that are about a file of the state or about what the command says.
func (r traced) moments() []moment {
	var out []moment
	n := map[moment]int{}
	for _, s := range r.calls {
		m := tracedCall.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		path := m[2]
		if m[3] != "" {
			path = m[3]
		}
		file := ""
		switch folder, name := filepath.Split(path); {
		case path == r.home.dir:
			file = "."
		case path == filepath.Join(r.out, "stdout"), path == filepath.Join(r.out, "stderr"), filepath.Clean(folder) == r.home.dir && strings.HasPrefix(name, "govern.db"):
			file = name
		default:
			continue
		}
		at := moment{call: m[1], file: file}
		n[at]++
		at.nth = n[at]
		if !strings.Contains(s, " = -1 ") {
			out = append(out, at)
		}
	}
	return out
}

// victim is a command to which something happens, on copies of one state.
type victim struct {
	before home
	args   []string
	// unhurt is the exit code of a run that nothing happens to.
	unhurt int
	// check examines what a run left and whether it is consistent with what was printed, has the command
	// repeated, and says whether the first had taken effect.
	check func(t *testing.T, h home, printed bool) (done bool)
}

// plan gives the moments of a run that is left alone.
func (v victim) plan(t *testing.T, calls ...string) []moment {
	t.Helper()
	r := v.before.copy(t).trace(calls, moment{}, "", v.args)
	require.Equal(t, v.unhurt, r.code, r.stderr)
	all := r.moments()
	require.NotEmpty(t, all)
	return all
}

// kill kills the command once at each of the moments, before the call takes place.
func (v victim) kill(t *testing.T, at []moment) {
	t.Helper()
	seen := map[bool]int{}
	killed, attempts := 0, 0
	for _, m := range at {
		// strace counts for each thread, and a busy machine may move a run to another in the middle of its calls.
		for range 10 {
			attempts++
			h := v.before.copy(t)
			r := h.trace([]string{m.call}, m, fmt.Sprintf("signal=SIGKILL:when=%d", m.nth), v.args)
			if r.signal == syscall.SIGKILL {
				killed++
				seen[v.check(t, h, strings.HasSuffix(r.stdout, "\n"))]++
				break
			}
			require.Equal(t, []any{v.unhurt, syscall.Signal(0)}, []any{r.code, r.signal}, r.stderr)
		}
	}
	t.Logf("%d moments, %d killed in %d attempts; in %d nothing had happened, in %d all", len(at), killed, attempts, seen[false], seen[true])
	require.Greater(t, 4*killed, 3*len(at), "a kill that does not take place shows nothing")
	require.NotZero(t, seen[false], "some kills come before the commit")
	require.NotZero(t, seen[true], "some kills come after it")
}

// around picks the moments that differ in what a dead process leaves: the first and the last of each row of equal
// changes. What was written is there whether or not it was synced, and the index in shared memory dies with its last
// process.
func around(all []moment) []moment {
	all = slices.DeleteFunc(slices.Clone(all), func(m moment) bool { return m.file == "govern.db-shm" || m.call == "fchown" })
	equal := func(i, j int) bool {
		return j >= 0 && j < len(all) && all[i].call == all[j].call && all[i].file == all[j].file
	}
	var out []moment
	for i, m := range all {
		if m.call != "fsync" && m.call != "fdatasync" && !(equal(i, i-1) && equal(i, i+1)) {
			out = append(out, m)
		}
	}
	return out
}

// redeeming runs the draft that a person approved.
func redeeming(t *testing.T) victim {
	return victim{before: approved(t), args: []string{"run", "--approved"}, unhurt: exitOK,
		check: func(t *testing.T, h home, printed bool) bool {
			a := h.examine(t)
			done := a.count[dispatch.KindAction] == 1
			states := []any{the(t, a.Approvals)["state"], the(t, a.Tasks)["steps"], len(a.decisions), len(a.Operations), len(a.Records)}
			want, again := []any{"approved", 1.0, 1, 0, 0}, dispatch.StatusOK
			if done {
				want, again = []any{"consumed", 2.0, 2, 1, 1}, dispatch.StatusReplayed
			}
			require.Equal(t, want, states, "all of it or nothing")
			require.False(t, printed && !done, "what was answered is there")

			r := h.govern("run", "draft.json")
			require.Zero(t, r.code, r.stderr)
			require.Len(t, r.lines(t), 1)
			require.Equal(t, again, r.lines(t)[0].Status)
			require.JSONEq(t, `{"draft_id":"labels-note"}`, string(r.lines(t)[0].Value))
			r = h.govern("run", "--approved")
			require.Zero(t, r.code, r.stderr)
			require.Empty(t, r.stdout)
			a = h.open(t)
			require.Equal(t, 1, a.count[dispatch.KindAction])
			require.Equal(t, map[string]any{"labels-1/record_draft/labels-note": map[string]any{"purpose": "inventory-summary", "body": "There are 84 labels."}}, a.Records)
			return done
		}}
}

// beginning is the first run of all: it makes file, key, tables and task.
func beginning(t *testing.T) victim {
	return victim{before: newHome(t), args: []string{"run", "draft.json"}, unhurt: exitWaiting,
		check: func(t *testing.T, h home, printed bool) bool {
			a := h.examine(t)
			done := len(a.decisions) == 1
			require.False(t, printed && !done, "what was answered is there")
			require.Len(t, a.Approvals, len(a.decisions))
			require.LessOrEqual(t, a.count[dispatch.KindTask], 1)

			r := h.govern("run", "draft.json")
			require.Equal(t, exitWaiting, r.code, r.stderr)
			require.Equal(t, dispatch.StatusApprovalRequired, r.lines(t)[0].Status)
			b := h.open(t)
			require.Equal(t, 1, b.count[dispatch.KindTask])
			require.Len(t, b.decisions, len(a.decisions)+1)
			require.Equal(t, "pending", the(t, b.Approvals)["state"])
			return done
		}}
}

// approving is a person's vote.
func approving(t *testing.T) victim {
	return victim{before: asked(t), args: []string{"review", "approve", "--proposal", "draft.json"}, unhurt: exitOK,
		check: func(t *testing.T, h home, printed bool) bool {
			a := h.examine(t)
			done := a.count[dispatch.KindReview] == 1
			stands := []any{the(t, a.Approvals)["state"], len(the(t, a.Approvals)["votes"].([]any))}
			want, code := []any{"pending", 0}, exitOK
			if done {
				want, code = []any{"approved", 1}, exitDenied
			}
			require.Equal(t, want, stands)
			require.False(t, printed && !done, "what was answered is there")

			r := h.govern("review", "approve", "--proposal", "draft.json")
			require.Equal(t, code, r.code, r.stderr)
			r = h.govern("run", "--approved")
			require.Zero(t, r.code, r.stderr)
			a = h.open(t)
			require.Equal(t, 1, a.count[dispatch.KindReview])
			require.Equal(t, 1, a.count[dispatch.KindAction])
			require.Len(t, the(t, a.Approvals)["votes"], 1)
			return done
		}}
}

// victims are the commands that change a state.
var victims = map[string]func(*testing.T) victim{"redeeming": redeeming, "beginning": beginning, "approving": approving}

// A process that is killed at any moment leaves all of its work or nothing of it, and whoever comes next goes on.
func TestKilledAroundTheCommit(t *testing.T) {
	needStrace(t)
	for name, of := range victims {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := of(t)
			v.kill(t, around(v.plan(t, mutations...)))
		})
	}
}
