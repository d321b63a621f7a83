package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// ensureTask makes the configured task at its first use, and finds any other.
func (s *system) ensureTask(ctx context.Context) error {
	t, ok := s.config.Tasks[s.config.Task]
	if ok {
		err := s.dispatcher.EnsureTask(ctx, dispatch.Task{TaskKey: s.key(), Profile: t.Profile, Actor: t.Actor}, operator())
		if errors.Is(err, dispatch.ErrTaskExists) {
			return misuse(err)
		}
		if err != nil {
			return err
		}
	}
	found, err := s.store.Task(ctx, s.key())
	if err == nil && found.Actor != s.principal.Actor {
		err = dispatch.ErrUnknownTask
	}
	if errors.Is(err, dispatch.ErrUnknownTask) {
		return s.unknownTask(ctx, s.config.Task)
	}
	return err
}

// unknownTask names the task and the nearest of those that this actor has.
func (s *system) unknownTask(ctx context.Context, id string) error {
	var names []string
	for name, t := range s.config.Tasks {
		if t.Actor == s.principal.Actor {
			names = append(names, name)
		}
	}
	if list, err := s.store.Tasks(ctx, s.principal.Tenant); err == nil {
		for _, t := range list {
			if t.Actor == s.principal.Actor {
				names = append(names, t.ID)
			}
		}
	}
	slices.Sort(names)
	return misuse(fmt.Errorf("%s has no task %q", s.principal.Actor, id)).
		near(id, slices.Compact(names), "make one with "+s.createTask(id, s.principal.Actor, s.defaultProfile()))
}

// defaultProfile is the profile of a task that is made without saying one: that of the task in use, or the only one.
// It is empty if there is no such profile.
func (s *system) defaultProfile() string {
	if t, ok := s.config.Tasks[s.config.Task]; ok {
		return t.Profile
	}
	if len(s.config.Profiles) == 1 {
		for name := range s.config.Profiles {
			return name
		}
	}
	return ""
}
