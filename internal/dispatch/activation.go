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
	for range attempts {
		some, err := d.activateOnce(ctx, p.Snapshot, moment)
		if err == nil {
			p.active.Store(true)
		}
		if !some || !errors.Is(err, ErrMoved) && !errors.Is(err, ErrTaskExists) {
			return err
		}
	}
	return ErrUnavailable
}

// activateOnce says whether there was something to put on record.
func (d *Dispatcher) activateOnce(ctx context.Context, s *Snapshot, moment time.Time) (some bool, err error) {
	state, err := d.store.Load(ctx, TaskKey{}, Lookup{})
	if err != nil && !errors.Is(err, ErrUnknownTask) {
		return false, err
	}
	last, found, err := d.store.LastEntry(ctx, "", KindActivation)
	if err != nil {
		return false, err
	}
	if found {
		var e ActivationEntry
		if err := ijson.Unmarshal(last.Body, &e); err != nil {
			return false, fmt.Errorf("the last activation in the log cannot be read: %w", err)
		}
		if e.PolicyVersion == s.Version {
			return false, nil
		}
	}
	if moment.Before(state.Task.Updated) {
		moment = state.Task.Updated
	}
	c, err := nextActivation(state.Task, s, moment)
	if err != nil {
		return false, err
	}
	return true, d.store.Apply(ctx, c)
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
