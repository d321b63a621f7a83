package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// reloader takes up changes of the files that a running process was started from: whole, or not at all.
type reloader struct {
	load func() (governed, error)
	// paths are what was read, and what the last attempt would have read.
	paths []string
	// seen is the digest of what was loaded, or could not be loaded; empty if that is not known.
	seen string
}

// newReloader looks after what was loaded since began.
func newReloader(g governed, began time.Time, load func() (governed, error)) *reloader {
	r := &reloader{load: load, paths: g.paths()}
	if now := markOf(r.paths); now.newest.Before(began.Add(-tick)) {
		r.seen = now.digest
	}
	return r
}

// tick is more than the resolution of a file's times: what was touched later than that before it was read may have been
// read half, and is loaded once more.
const tick = 20 * time.Millisecond

// paths are the files and folders that configuration, tools and policy were read from.
func (g *governed) paths() []string {
	paths := append([]string{}, g.config.Files()...)
	for _, list := range [][]string{g.config.Policy, g.config.Org, g.config.Site} {
		paths = append(paths, list...)
	}
	return paths
}

const (
	// settling is how long files must stay as they are before they are read: whoever writes one may not be done.
	settling = 20 * time.Millisecond
	// unsettled bounds how often they are waited for.
	unsettled = 50
)

var errUnsettled = errors.New("the files are being written to all the time")

// changed loads what has changed since the last look. It is false if nothing has.
func (r *reloader) changed(ctx context.Context) (governed, bool, error) {
	now := markOf(r.paths).digest
	if now == r.seen {
		return governed{}, false, nil
	}
	for range unsettled {
		if err := pause(ctx, settling); err != nil {
			return governed{}, false, err
		}
		before := markOf(r.paths).digest
		if before != now {
			now = before
			continue
		}
		g, err := r.load()
		if paths := union(r.paths, g.paths()); len(paths) > len(r.paths) {
			// What was loaded names other files than before, and nobody has waited for those.
			r.paths, now = paths, markOf(paths).digest
			continue
		}
		if markOf(r.paths).digest == now {
			r.seen = now
			return g, true, err
		}
	}
	r.seen = "" // what was seen last was not loaded
	return governed{}, true, errUnsettled
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refresh makes a change of the files hold from the next dispatch on. If they cannot be used it says why, and what was
// loaded before stays.
func (s *system) refresh(ctx context.Context, say func(format string, args ...any)) error {
	g, some, err := s.reloader.changed(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !some {
		return nil
	}
	if err == nil {
		err = s.sameProcess(g)
	}
	if err != nil {
		say("the changed files are not used, and policy %s stays: %v\n%s", s.snapshot.Version, err, hint(err))
		return nil
	}
	before := s.snapshot.Version
	s.governed = g
	s.dispatcher.Use(g.snapshot)
	if before != g.snapshot.Version {
		say("policy %s is in use from now on", g.snapshot.Version)
	}
	return nil
}

// sameProcess refuses what a running process cannot change.
func (s *system) sameProcess(g governed) error {
	for _, fixed := range []struct {
		key        string
		now, given any
	}{
		{"state", s.config.State, g.config.State}, {"task", s.config.Task, g.config.Task}, {"actor", s.config.Actor, g.config.Actor},
		{"limits.proposal_bytes", s.config.Limits.Proposals().Bytes, g.config.Limits.Proposals().Bytes},
	} {
		if fixed.now != fixed.given {
			return fmt.Errorf("%s has changed from %v to %v, which takes a new start", fixed.key, fixed.now, fixed.given)
		}
	}
	return nil
}
