package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/opa"
	"github.com/policy-dispatch/govern/internal/watch"
)

// live is the system of a process that keeps up with its files. Changes of them are taken up whole or not at all. It is
// safe for concurrent use.
type live struct {
	// now is replaced in one step, with configuration, tools, policy and dispatcher.
	now atomic.Pointer[system]
	// turn has room for the one who looks at the files.
	turn  chan struct{}
	files *watch.Watcher[governed]
}

// startLive is start for a process that runs for long.
func (a *app) startLive(cmd *cobra.Command) (*live, error) {
	began := time.Now()
	s, err := a.startFrom(cmd, false, a.loadToCall)
	if err != nil {
		return nil, err
	}
	return newLive(s, began, func() (governed, error) { return a.loadToCall(cmd) }), nil
}

// newLive keeps up with the files that a system was loaded from since began.
func newLive(s *system, began time.Time, load func() (governed, error)) *live {
	l := &live{turn: make(chan struct{}, 1)}
	l.now.Store(s)
	l.files = watch.New(func() (governed, watch.List, error) {
		g, err := load()
		return g, g.files, err
	}, s.files, began)
	return l
}

// files are those that configuration, tools and policy are read from, as they are now.
func (g governed) files() []string {
	return slices.Concat(g.config.Files(), opa.FilesAt(g.config.Policy), opa.FilesAt(g.config.Org), opa.FilesAt(g.config.Site))
}

// system gives the system for the next dispatch: a new one if the files have changed and can be used. If they cannot be
// used it says why, once, and what was loaded before stays.
func (l *live) system(ctx context.Context, say func(format string, args ...any)) (*system, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s := l.now.Load()
	g, changed, err := l.files.Changed(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !changed {
		return s, nil
	}
	if err == nil {
		err = s.sameProcess(g)
	}
	if err == nil {
		var stored error
		if err, stored = s.sameTask(ctx, g); stored != nil {
			l.files.Again()
			return nil, stored
		}
	}
	if err != nil {
		why := linesOf(fmt.Errorf("the changed files are not used, and policy %s stays: %w", s.snapshot.Version, err))
		say("%s", strings.Join(append(why, hint(err)), "\n"))
		return s, nil
	}
	next := newSystem(g, s.store)
	l.now.Store(next)
	if s.snapshot.Version != g.snapshot.Version {
		say("policy %s is in use from now on", g.snapshot.Version)
	}
	return next, nil
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
	if !reflect.DeepEqual(s.config.Log, g.config.Log) {
		return errors.New("log has changed, which takes a new start")
	}
	return nil
}

// sameTask refuses to configure the task in use otherwise than it was created, as the next start would.
func (s *system) sameTask(ctx context.Context, g governed) (refused, fault error) {
	given, ok := g.config.Tasks[s.config.Task]
	if !ok {
		return nil, nil
	}
	have, err := s.store.Task(ctx, s.key())
	if errors.Is(err, dispatch.ErrUnknownTask) {
		return nil, nil // it is made as the configuration says
	}
	if err != nil {
		return nil, err
	}
	for _, kept := range [][3]string{{"profile", have.Profile, given.Profile}, {"actor", have.Actor, given.Actor}} {
		if kept[1] != kept[2] {
			return g.config.Fault("/tasks/"+s.config.Task+"/"+kept[0],
				fmt.Sprintf("has changed from %s to %s, and a task keeps what it was created with; configure one of another name", kept[1], kept[2])), nil
		}
	}
	return nil, nil
}
