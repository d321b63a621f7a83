//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// edit replaces a text in a file, as an editor does that writes it anew in place.
func (h home) edit(name, from, to string) {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.dir, name))
	require.NoError(h.t, err)
	require.Contains(h.t, string(b), from)
	h.write(name, strings.Replace(string(b), from, to, 1))
}

const allTools = "[read_document, calculate, record_draft]"

// One line of the configuration is edited while a process runs: it holds from the next proposal on, under another
// policy version, and for the replay of what was done before too.
func TestToolSwapInARunningProcess(t *testing.T) {
	h := newHome(t)
	p := h.start("run", "-")
	p.send(draft("d1"))
	asked := p.next()
	require.Equal(t, dispatch.StatusApprovalRequired, asked.Status)
	require.Zero(t, h.govern("review", "approve", asked.Approval.ID, "--signature", asked.Approval.Signature).code)
	p.send(draft("d2"), draft("d3"))
	require.Equal(t, dispatch.StatusOK, p.next().Status)
	require.Equal(t, dispatch.StatusReplayed, p.next().Status)

	h.edit("config.yaml", allTools, "[read_document, calculate]")
	p.send(draft("d4"), add("a1"))
	denied := p.next()
	assert.Equal(t, dispatch.StatusToolDenied, denied.Status)
	assert.NotEqual(t, asked.PolicyVersion, denied.PolicyVersion)
	assert.Equal(t, dispatch.StatusOK, p.next().Status)

	h.edit("config.yaml", "[read_document, calculate]", allTools)
	p.send(draft("d5"))
	back := p.next()
	assert.Equal(t, dispatch.StatusReplayed, back.Status)
	assert.Equal(t, asked.PolicyVersion, back.PolicyVersion, "the same permissions are the same version")

	end := p.finish()
	assert.Contains(t, end.stderr, "govern: policy "+denied.PolicyVersion+" is in use from now on\n")
	assert.Contains(t, end.stderr, "govern: policy "+back.PolicyVersion+" is in use from now on\n")
	assert.Equal(t, 1, h.examine(t).count[dispatch.KindAction]-1, "one draft and one sum")
}

// What cannot be loaded changes nothing, is said once with its place, and is taken up as soon as it can be.
func TestFilesThatCannotBeLoadedLeaveThePolicyInForce(t *testing.T) {
	for name, c := range map[string]struct {
		file, from, to string
		says           string
	}{
		"a misspelt key (B028)":      {"config.yaml", "max_steps:", "max_stpes:", `config.yaml:10: profiles.warehouse.max_stpes: unknown key; did you mean "max_steps"?`},
		"an unknown tool":            {"config.yaml", "tools: " + allTools, "tools: [calculate, calclate]", `config.yaml:7: profiles.warehouse.tools[1]: unknown tool "calclate"`},
		"no YAML":                    {"config.yaml", "profiles:", "profiles: {", "config.yaml:"},
		"an empty file":              {"config.yaml", roomy, "", "config.yaml: the document is empty"},
		"a renamed package (B097)":   {"policy/decision.rego", "package policy", "package plicy", "policy/decision.rego"},
		"a lost entrypoint (B097)":   {"policy/decision.rego", "decision := {", "decided := {", "data.policy.decision"},
		"broken data":                {"policy/data.json", "{}", "{", "policy/data.json"},
		"other checkpoints":          {"config.yaml", "state: govern.db", "state: govern.db\nlog: {checkpoints: [elsewhere]}", "log has changed, which takes a new start"},
		"another state":              {"config.yaml", "state: govern.db", "state: other.db", "state has changed from govern.db to other.db, which takes a new start"},
		"another actor":              {"config.yaml", "actor: learner\nprofiles", "actor: maya\nprofiles", "actor has changed from learner to maya"},
		"another task":               {"config.yaml", "task: labels-1\n", "task: labels-2\n", "task has changed from labels-1 to labels-2"},
		"another limit of proposals": {"config.yaml", "tasks:", "limits: {proposal_bytes: 2048}\ntasks:", "limits.proposal_bytes has changed from 1048576 to 2048"},
		"another profile of the task": {"config.yaml", "tasks:\n  labels-1: {profile: warehouse,", "  desk: {max_steps: 5}\ntasks:\n  labels-1: {profile: desk,",
			"config.yaml:14: tasks.labels-1.profile: has changed from warehouse to desk, and a task keeps what it was created with"},
		"another actor of the task": {"config.yaml", "warehouse, actor: learner", "warehouse, actor: maya",
			"config.yaml:13: tasks.labels-1.actor: has changed from learner to maya, and a task keeps what it was created with"},
		"a layer that is not asked":    {"config.yaml", "state:", "site: [site]\nstate:", "site/site.rego:5: the policy never asks data.site.deny"},
		"a schema that does not exist": {"config.yaml", "tasks:", "tools: {calculate: {schema: none.json}}\ntasks:", "config.yaml:12: tools.calculate.schema: open none.json"},
		"a policy that does not exist": {"config.yaml", "state:", "org: [none]\nstate:", "none: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			require.NoError(t, os.Mkdir(filepath.Join(h.dir, "policy"), 0o700))
			h.write("policy/decision.rego", `package policy

decision := {"effect": "deny", "status": "closed_today", "policy_version": data.govern.version, "reasons": [{"code": "closed_today", "message": "closed"}]}
`)
			h.write("policy/data.json", "{}")
			h.site("calculate")
			p := h.start("run", "--policy", "policy", "-")
			p.send(add("a1"))
			before := p.next()
			require.EqualValues(t, "closed_today", before.Status)

			h.edit(c.file, c.from, c.to)
			p.send(add("a2"), add("a3"))
			for range 2 {
				after := p.next()
				assert.Equal(t, before.Status, after.Status)
				assert.Equal(t, before.PolicyVersion, after.PolicyVersion)
			}

			if c.to != "" {
				h.edit(c.file, c.to, c.from)
			} else {
				h.write(c.file, c.from)
			}
			h.edit("policy/decision.rego", `"message": "closed"`, `"message": "back again"`)
			p.send(add("a4"))
			assert.NotEqual(t, before.PolicyVersion, p.next().PolicyVersion, "mended files are taken up")

			end := p.finish()
			assert.Equal(t, 1, strings.Count(end.stderr, "the changed files are not used, and policy "+before.PolicyVersion+" stays"), end.stderr)
			assert.Contains(t, end.stderr, c.says)
		})
	}
}

// Everything that was read is looked at: also what the configuration names, a file that comes to a folder or goes from
// it, and a file that is put in another's place with its old time.
func TestEveryFileIsLookedAt(t *testing.T) {
	h := newHome(t)
	require.Zero(t, h.govern("config", "export", "own").code)
	require.NoError(t, os.CopyFS(filepath.Join(h.dir, "policy"), os.DirFS("../../policy")))
	h.edit("own/config.yaml", "max_steps: 20", "max_steps: 1000")
	for _, layer := range []string{"org", "site"} {
		require.NoError(t, os.CopyFS(filepath.Join(h.dir, layer), os.DirFS("../../examples/layers/"+layer)))
	}
	p := h.start("run", "--config", "own/config.yaml", "--policy", "policy", "--org", "org", "--site", "site", "-")
	version := func(id string) string {
		p.send(add(id))
		return p.next().PolicyVersion
	}
	last := version("a0")
	same := func(id, why string) { assert.Equal(t, last, version(id), why) }
	other := func(id, why string) {
		now := version(id)
		assert.NotEqual(t, last, now, why)
		last = now
	}
	same("a1", "nothing has changed")
	h.edit("own/schemas/calculate.json", "-1000", "-999")
	other("a2", "a schema")
	h.edit("own/data/readable.json", "labels.txt", "labelz.txt")
	other("a3", "a set of targets")
	h.edit("own/data/documents.json", "7 packs", "8 packs")
	same("a4", "documents are no part of the version")
	p.send(read("r1", "/warehouse/notice.txt"))
	require.Equal(t, dispatch.StatusOK, p.next().Status)
	h.write("policy/extra.rego", "package policy\n\n_extra := 1\n")
	other("a5", "a new file")
	h.write("linked.rego", "package policy\n\n_linked := 1\n")
	require.NoError(t, os.Symlink("../linked.rego", filepath.Join(h.dir, "policy/linked.rego")))
	other("b1", "a link")
	h.edit("linked.rego", "1", "2")
	other("b2", "what a link leads to")
	h.write("org/extra.rego", "package org.lib\n\nextra := 1\n")
	other("a8", "a new file of a layer")
	h.write("site/more.json", `{"site": {"more": 1}}`)
	other("a9", "data of a layer")
	require.NoError(t, os.Remove(filepath.Join(h.dir, "policy/extra.rego")))
	other("a6", "a file that is gone")
	h.write("extra.rego", "package policy\n\n_extra := 1\n")
	require.NoError(t, os.Symlink("../extra.rego", filepath.Join(h.dir, "policy/extra.rego")))
	other("l1", "a link")
	h.edit("extra.rego", "1", "2")
	other("l2", "a file behind a link")
	require.NoError(t, os.Remove(filepath.Join(h.dir, "policy/extra.rego")))
	other("l3", "a link that is gone")

	file := filepath.Join(h.dir, "own/config.yaml")
	info, err := os.Stat(file)
	require.NoError(t, err)
	h.edit("own/config.yaml", "max_steps: 1000", "max_steps: 2000")
	require.NoError(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
	other("a7", "the same size and the same time")
	p.finish()
}

// A policy is often a link to one of several folders: current leads to a release. What is behind it is looked at, and so is
// where it leads.
func TestAPolicyBehindALink(t *testing.T) {
	h := newHome(t)
	for _, release := range []string{"r1", "r2"} {
		require.NoError(t, os.CopyFS(filepath.Join(h.dir, release), os.DirFS("../../policy")))
	}
	h.write("r2/extra.rego", "package policy\n\n_extra := 1\n")
	require.NoError(t, os.Symlink("r1", filepath.Join(h.dir, "current")))
	p := h.start("run", "--policy", "current", "-")
	seen := map[string]bool{}
	version := func(id string) int {
		t.Helper()
		p.send(add(id))
		r := p.next()
		require.Equal(t, dispatch.StatusOK, r.Status)
		seen[r.PolicyVersion] = true
		return len(seen)
	}
	require.Equal(t, 1, version("a1"))
	h.write("r1/extra.rego", "package policy\n\n_extra := 2\n")
	assert.Equal(t, 2, version("a2"), "a new file behind the link")
	h.edit("r1/extra.rego", "2", "3")
	assert.Equal(t, 3, version("a3"), "an edit behind the link")
	require.NoError(t, os.Symlink("r2", filepath.Join(h.dir, "next")))
	require.NoError(t, os.Rename(filepath.Join(h.dir, "next"), filepath.Join(h.dir, "current")))
	assert.Equal(t, 4, version("a4"), "the link leads elsewhere")
	h.edit("r2/extra.rego", "1", "4")
	assert.Equal(t, 5, version("a5"), "an edit where it leads now")
	p.finish()
}

// site writes a layer that denies a tool.
func (h home) site(tool string) {
	h.t.Helper()
	require.NoError(h.t, os.MkdirAll(filepath.Join(h.dir, "site"), 0o700))
	h.write("site/site.rego", `package site

# METADATA
# custom: {code: closed_today, message: closed, remedy: wait}
deny contains {"code": meta.code, "message": meta.message, "status": "closed_today"} if {
	meta := rego.metadata.rule().custom
	input.call.tool == "`+tool+`"
}
`)
}

// A rule that the site adds holds back the very next proposal, also the replay of what was done already.
func TestALayerNarrowsARunningProcess(t *testing.T) {
	h := newHome(t)
	h.site("none")
	p := h.start("run", "--site", "site", "-")
	status := func(proposal string) dispatch.Status {
		t.Helper()
		p.send(proposal)
		return p.next().Status
	}
	require.Equal(t, dispatch.StatusOK, status(add("a1")))
	h.site("calculate")
	assert.EqualValues(t, "closed_today", status(add("a2")))
	h.edit("site/site.rego", "deny contains", "permit contains")
	assert.EqualValues(t, "closed_today", status(add("a3")), "a rule that nobody asks is refused")
	h.site("none")
	assert.Equal(t, dispatch.StatusOK, status(add("a4")))

	h.site("record_draft")
	require.Equal(t, dispatch.StatusOK, status(add("a5")))
	h.edit("config.yaml", "state:", "org: [org]\nstate:")
	assert.Equal(t, dispatch.StatusOK, status(add("a6")), "there is no such folder yet")
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, "org"), 0o700))
	h.write("org/org.rego", "package org\n\n")
	assert.Equal(t, dispatch.StatusOK, status(add("a7")))
	h.edit("org/org.rego", "package org\n", `package org

# METADATA
# custom: {code: never_today, message: closed, remedy: wait}
deny contains {"code": meta.code, "message": meta.message, "status": "never_today"} if {
	meta := rego.metadata.rule().custom
	input.call.tool == "calculate"
}
`)
	assert.EqualValues(t, "never_today", status(add("a8")))
	end := p.finish()
	assert.Contains(t, end.stderr, "package site has the rule permit, and may have forbid, deny and require_approval alone")
}

// A bundle in one file is replaced whole; one that arrives cut short is not used.
func TestABundleIsReplaced(t *testing.T) {
	h := newHome(t)
	require.Zero(t, h.govern("policy", "export", "desk").code)
	h.write("desk/extra.rego", "package policy\n\n_extra := 1\n")
	require.Zero(t, h.govern("policy", "export", "--policy", "desk", "next.tar.gz").code)
	require.Zero(t, h.govern("policy", "export", "policy.tar.gz").code)
	p := h.start("run", "--policy", "policy.tar.gz", "-")
	version := func(id string) string {
		t.Helper()
		p.send(add(id))
		r := p.next()
		require.Equal(t, dispatch.StatusOK, r.Status)
		return r.PolicyVersion
	}
	first := version("a1")
	whole, err := os.ReadFile(filepath.Join(h.dir, "next.tar.gz"))
	require.NoError(t, err)
	h.write("policy.tar.gz", string(whole[:len(whole)/2]))
	assert.Equal(t, first, version("a2"))
	require.NoError(t, os.Rename(filepath.Join(h.dir, "next.tar.gz"), filepath.Join(h.dir, "policy.tar.gz")))
	next := version("a3")
	assert.NotEqual(t, first, next)
	end := p.finish()
	assert.Contains(t, end.stderr, "the changed files are not used, and policy "+first+" stays: policy.tar.gz: the archive ends early")
	assert.Equal(t, strings.TrimSpace(h.govern("policy", "version", "--policy", "policy.tar.gz").stdout), next)
}

// desk is a live system over the files of a home, in this process. It counts how often they are loaded.
func (h home) desk() (l *live, loads func() int) {
	h.t.Helper()
	n := 0
	load := func() (governed, error) {
		n++
		c, err := parseConfig(filepath.Join(h.dir, "config.yaml"))
		if err != nil {
			return governed{config: c}, err
		}
		c.Policy = []string{filepath.Join(h.dir, "policy")}
		return assemble(h.t.Context(), c)
	}
	g, err := load()
	require.NoError(h.t, err)
	store, err := sqlite.OpenMemory(h.t.Context())
	require.NoError(h.t, err)
	h.t.Cleanup(func() { require.NoError(h.t, store.Close()) })
	l = newLive(newSystem(g, store), time.Now().Add(time.Hour), load)
	require.NoError(h.t, l.now.Load().ensureTask(h.t.Context()))
	return l, func() int { return n }
}

// What lies in a policy's folder and is no part of it does not make the policy load again: a state, an output.
func TestWhatIsLookedAtIsWhatIsRead(t *testing.T) {
	h := newHome(t)
	require.NoError(t, os.CopyFS(filepath.Join(h.dir, "policy"), os.DirFS("../../policy")))
	l, loads := h.desk()
	next := func() *system {
		t.Helper()
		s, err := l.system(t.Context(), t.Logf)
		require.NoError(t, err)
		return s
	}
	first := next()
	require.Equal(t, 1, loads())
	for _, name := range []string{"govern.db", "govern.db-wal", "out.jsonl", "config.yaml.swp", ".decision.rego.swp"} {
		h.write("policy/"+name, "x")
	}
	assert.Same(t, first, next())
	assert.Equal(t, 1, loads())
	h.write("policy/extra.rego", "package policy\n\n_extra := 1\n")
	assert.NotEqual(t, first.snapshot.Version, next().snapshot.Version)
	assert.Equal(t, 2, loads())
}

// Many dispatches share a process. Each has one system, whose configuration, tools and policy belong together, whatever
// is written meanwhile.
func TestDispatchesWhileTheFilesChange(t *testing.T) {
	h := newHome(t)
	require.NoError(t, os.CopyFS(filepath.Join(h.dir, "policy"), os.DirFS("../../policy")))
	l, loads := h.desk()
	var stop atomic.Bool
	var all sync.WaitGroup
	dispatches := make([]int, 4)
	for i := range dispatches {
		all.Go(func() {
			for n := 0; !stop.Load(); n++ {
				s, err := l.system(t.Context(), t.Logf)
				if !assert.NoError(t, err) {
					return
				}
				r, err := s.dispatcher.Dispatch(t.Context(), s.principal, s.config.Task, dispatch.Origin{}, []byte(add(fmt.Sprintf("c%d-%d", i, n))))
				if !assert.NoError(t, err) {
					return
				}
				want := dispatch.StatusOK
				if !slices.Contains(s.config.Profiles["warehouse"].Tools, "calculate") {
					want = dispatch.StatusToolDenied
				}
				assert.Equal(t, want, r.Status)
				assert.Equal(t, s.snapshot.Version, r.PolicyVersion)
				dispatches[i]++
			}
		})
	}
	const changes = 4
	for i := range changes {
		text := roomy
		if i%2 == 0 {
			text = strings.Replace(roomy, allTools, "[read_document]", 1)
		}
		h.write("next.yaml", text)
		require.NoError(t, os.Rename(filepath.Join(h.dir, "next.yaml"), filepath.Join(h.dir, "config.yaml")))
		s, err := l.system(t.Context(), t.Logf)
		require.NoError(t, err)
		assert.Equal(t, i%2 == 1, slices.Contains(s.config.Profiles["warehouse"].Tools, "calculate"))
	}
	stop.Store(true)
	all.Wait()
	assert.Equal(t, 1+changes, loads(), "whoever looks first loads for all")
	t.Log(dispatches)
}
