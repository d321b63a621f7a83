//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
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
		"another state":              {"config.yaml", "state: govern.db", "state: other.db", "state has changed from govern.db to other.db, which takes a new start"},
		"another actor":              {"config.yaml", "actor: learner\nprofiles", "actor: maya\nprofiles", "actor has changed from learner to maya"},
		"another task":               {"config.yaml", "task: labels-1\n", "task: labels-2\n", "task has changed from labels-1 to labels-2"},
		"another limit of proposals": {"config.yaml", "tasks:", "limits: {proposal_bytes: 2048}\ntasks:", "limits.proposal_bytes has changed from 1048576 to 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			require.NoError(t, os.Mkdir(filepath.Join(h.dir, "policy"), 0o700))
			h.write("policy/decision.rego", `package policy

decision := {"effect": "deny", "status": "closed_today", "policy_version": data.govern.version, "reasons": [{"code": "closed_today", "message": "closed"}]}
`)
			h.write("policy/data.json", "{}")
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

	file := filepath.Join(h.dir, "own/config.yaml")
	info, err := os.Stat(file)
	require.NoError(t, err)
	h.edit("own/config.yaml", "max_steps: 1000", "max_steps: 2000")
	require.NoError(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
	other("a7", "the same size and the same time")
	p.finish()
}

// Files that are being written are waited for, and never read half.
func TestFilesAreReadWhenTheyRest(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("0")
	loads := 0
	r := &reloader{paths: []string{file}, seen: markOf([]string{file}).digest, load: func() (governed, error) { loads++; return governed{}, nil }}
	_, some, err := r.changed(t.Context())
	require.NoError(t, err)
	assert.False(t, some)
	assert.Zero(t, loads)

	// A write during the load: what was loaded is not taken.
	write("1")
	r.load = func() (governed, error) {
		if loads++; loads < 3 {
			write(strings.Repeat("2", loads+1))
		}
		return governed{}, nil
	}
	_, some, err = r.changed(t.Context())
	require.NoError(t, err)
	assert.True(t, some)
	assert.Equal(t, 3, loads)

	// Somebody who never stops writing is not waited for without end, and is looked at again at the next call.
	write("3")
	r.load = func() (governed, error) { loads++; write(strings.Repeat("4", loads)); return governed{}, nil }
	_, some, err = r.changed(t.Context())
	assert.True(t, some)
	require.ErrorIs(t, err, errUnsettled)

	write("5")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = r.changed(ctx)
	require.ErrorIs(t, err, context.Canceled)

	// A load that fails is not repeated until something changes.
	loads, r.load = 0, func() (governed, error) { loads++; return governed{}, errors.New("broken") }
	_, some, err = r.changed(t.Context())
	assert.True(t, some)
	require.EqualError(t, err, "broken")
	_, some, err = r.changed(t.Context())
	require.NoError(t, err)
	assert.False(t, some)
	assert.Equal(t, 1, loads)

	// Nor is a state passed over that came with the last of the writes.
	write("6")
	_, some, err = r.changed(writing{t.Context(), func() { loads++; write(strings.Repeat("7", loads)) }})
	assert.True(t, some)
	require.ErrorIs(t, err, errUnsettled)
	_, some, err = r.changed(t.Context())
	assert.True(t, some)
	require.EqualError(t, err, "broken")

	// A file that the changed ones name for the first time must rest as well.
	other, loads := filepath.Join(dir, "g"), 0
	r.load = func() (governed, error) {
		if loads++; loads < 3 {
			require.NoError(t, os.WriteFile(other, []byte(strings.Repeat("8", loads)), 0o600))
		}
		var g governed
		g.config.Site = []string{other}
		return g, nil
	}
	write("9")
	_, some, err = r.changed(t.Context())
	require.NoError(t, err)
	assert.True(t, some)
	assert.Equal(t, 3, loads)
}

// writing is a context that writes whenever somebody waits with it.
type writing struct {
	context.Context
	write func()
}

func (w writing) Done() <-chan struct{} {
	w.write()
	return w.Context.Done()
}

// What was written while it was read for the first time may have been read half.
func TestFilesThatChangedDuringTheFirstLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	var g governed
	g.config.Policy = []string{file}
	assert.Empty(t, newReloader(g, time.Now().Add(-time.Hour), nil).seen)
	assert.NotEmpty(t, newReloader(g, time.Now().Add(time.Hour), nil).seen)
}
