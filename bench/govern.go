package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/policy-dispatch/govern"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/snapshot"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// profile is the one of the built-in configuration.
const profile = "warehouse"

var who = dispatch.Principal{Tenant: dispatch.DefaultTenant, Actor: "learner"}

// configure is the built-in configuration, with budgets and a time for decisions that no measurement uses up.
func configure(edits ...func(*config.Config)) (config.Config, error) {
	c, err := config.Builtin(govern.Files)
	if err != nil {
		return c, err
	}
	p := c.Profiles[profile]
	pending := config.MostPending
	p.MaxSteps, p.MaxPending = config.MostSteps, &pending
	c.Profiles[profile], c.Limits.DecisionTime = p, config.MostDecisionTime.String()
	for _, edit := range edits {
		edit(&c)
	}
	return c, nil
}

// shipped is the snapshot of the built-in configuration and policy.
func shipped(ctx context.Context, edits ...func(*config.Config)) (config.Config, snapshot.Made, error) {
	c, err := configure(edits...)
	if err != nil {
		return c, snapshot.Made{}, err
	}
	made, err := snapshot.New(ctx, c)
	return c, made, err
}

// gate is govern as its commands put it together, over a store.
type gate struct{ *dispatch.Dispatcher }

func newGate(store *sqlite.Store, snap *dispatch.Snapshot) gate {
	return gate{dispatch.New(store, store.Key(), time.Now, snap)}
}

// propose dispatches a proposal that must end as wanted.
func (g gate) propose(ctx context.Context, task, proposal string, want dispatch.Status) error {
	r, err := g.Dispatch(ctx, who, task, dispatch.Origin{Door: "bench"}, []byte(proposal))
	if err != nil {
		return err
	}
	if r.Status != want {
		return fmt.Errorf("the wrong answer: %s to %s, not %s", r.Status, proposal, want)
	}
	return nil
}

func (g gate) approve(ctx context.Context, task, proposal string) error {
	_, err := g.ReviewCall(ctx, who, task, dispatch.Enforce, []byte(proposal), dispatch.Review{Reviewer: "maya", Decision: "approved"})
	return err
}

func (g gate) create(ctx context.Context, task string) error {
	return g.CreateTask(ctx, dispatch.Task{TaskKey: keyOf(task), Profile: profile, Actor: who.Actor}, "bench")
}

func keyOf(task string) dispatch.TaskKey { return dispatch.TaskKey{Tenant: who.Tenant, ID: task} }

// name is a new name, of 21 characters, and random: keys in their order would meet the trees of an index at one end.
func name(kind byte) string {
	var b [10]byte
	rand.Read(b[:]) // never fails
	return string(kind) + hex.EncodeToString(b[:])
}

func call(tool string, arguments map[string]any) string {
	b, err := ijson.Marshal(map[string]any{"call_id": "c1", "tool": tool, "arguments": arguments})
	if err != nil {
		panic(err) // of constants and names
	}
	return string(b)
}

func read(path string) string { return call("read_document", map[string]any{"path": path}) }

func calculate(tool string) string { return call(tool, map[string]any{"op": "add", "a": 1, "b": 1}) }

// draft is a proposal to record a draft of that name.
func draft(id string) string {
	return call("record_draft", map[string]any{"draft_id": id, "purpose": "inventory-summary", "body": "There are 84 labels.",
		"idempotency_key": id})
}

const (
	readable   = "/warehouse/labels.txt"
	unreadable = "/restricted/planning.txt"
)
