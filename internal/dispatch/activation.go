package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// What concerns no task is recorded under the zero TaskKey. It has a row among the tasks for the sake of its revision, and
// no profile and no actor: nothing can be proposed for it.

// NewContent keeps bytes under their digest.
func NewContent(b []byte) Content {
	sum := sha256.Sum256(b)
	return Content{Digest: hex.EncodeToString(sum[:]), Bytes: b}
}

// activate puts on record that decisions are made under a snapshot's version, unless that is the last thing that was put
// on record of versions. No decision can be committed before, and the first is made at the moment: the activation is not later.
func (d *Dispatcher) activate(ctx context.Context, p *pinned, moment time.Time) error {
	if p.active.Load() {
		return nil
	}
	select {
	case p.activating <- struct{}{}:
		defer func() { <-p.activating }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.active.Load() {
		return nil
	}
	release, err := d.store.Hold(ctx, TaskKey{})
	if err != nil {
		return err
	}
	defer release()
	err = d.record(ctx, func(t Task) (Commit, bool, error) {
		version, err := d.activeVersion(ctx)
		if err != nil || version == p.Version {
			return Commit{}, false, err
		}
		if moment.Before(t.Updated) {
			moment = t.Updated
		}
		c, err := nextActivation(t, p.Snapshot, moment)
		return c, true, err
	})
	if err == nil {
		p.active.Store(true)
	}
	return err
}

// activeVersion is the last that was put on record; empty if none was.
func (d *Dispatcher) activeVersion(ctx context.Context) (string, error) {
	last, found, err := d.store.LastEntry(ctx, "", KindActivation)
	if err != nil || !found {
		return "", err
	}
	var e ActivationEntry
	if err := ijson.Unmarshal(last.Body, &e); err != nil {
		return "", fmt.Errorf("the last activation in the log cannot be read: %w", err)
	}
	return e.PolicyVersion, nil
}

// record puts on record what concerns no task: compute gives the commit for their common row as it is, which is the zero Task
// before the first, and false if there is nothing to do.
func (d *Dispatcher) record(ctx context.Context, compute func(Task) (Commit, bool, error)) error {
	for range attempts {
		state, err := d.store.Load(ctx, TaskKey{}, Lookup{})
		if err != nil && !errors.Is(err, ErrUnknownTask) {
			return err
		}
		commit, some, err := compute(state.Task)
		if err != nil || !some {
			return err
		}
		err = d.store.Apply(ctx, commit)
		if !errors.Is(err, ErrMoved) && !errors.Is(err, ErrTaskExists) {
			return err
		}
	}
	return ErrUnavailable
}

func nextActivation(t Task, s *Snapshot, now time.Time) (Commit, error) {
	c := begin(t, now)
	e := ActivationEntry{PolicyVersion: s.Version, By: s.By}
	if s.Kept != nil {
		policy, config, err := s.Kept()
		if err != nil {
			return Commit{}, fmt.Errorf("policy %s cannot be kept: %w", s.Version, err)
		}
		c.Contents = []Content{NewContent(policy), NewContent(config)}
		e.Policy, e.Config = c.Contents[0].Digest, c.Contents[1].Digest
	}
	return c, c.record(KindActivation, now, &e.EntryHeader, &e)
}

// Baseline is the commit by which a store puts on record that so many entries are older than its tree.
func Baseline(entries int64, now time.Time) (Commit, error) {
	c := begin(Task{}, now.UTC().Truncate(time.Millisecond))
	e := BaselineEntry{Entries: entries}
	return c, c.record(KindBaseline, c.Task.Updated, &e.EntryHeader, &e)
}
