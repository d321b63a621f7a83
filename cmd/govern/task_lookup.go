package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/nearest"
)

// ensureTask makes the configured task at its first use, and finds any other.
func (s *system) ensureTask(ctx context.Context) error {
	for _, setting := range [][2]string{{"task", s.config.Task}, {"actor", s.config.Actor}} {
		if setting[1] == "" {
			return misuse(fmt.Errorf("no %s is set", setting[0])).hint("give --" + setting[0] + ", or add " + setting[0] + ": NAME to the configuration")
		}
	}
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
	owners := s.taskOwners(ctx)
	var names []string
	for name, actor := range owners {
		if actor == s.principal.Actor {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	fresh := id
	if _, taken := owners[id]; taken {
		fresh = nextName(id, owners)
	}
	unknown := misuse(fmt.Errorf("%s has no task %q", s.principal.Actor, id))
	if !dispatch.ValidName(id) {
		return unknown.near(id, names, "a task's name is 1 to 64 letters, digits, dots, underscores or hyphens, beginning with a letter or digit")
	}
	create := "make one with " + s.createTask(fresh, s.principal.Actor, s.defaultProfile())
	if near, ok := nearest.Name(id, names); ok {
		return unknown.hint("did you mean " + near + "? Or " + create)
	}
	return unknown.hint(create)
}

// taskOwners gives every task that exists or is configured, with its actor.
func (s *system) taskOwners(ctx context.Context) map[string]string {
	owners := map[string]string{}
	for name, t := range s.config.Tasks {
		owners[name] = t.Actor
	}
	list, err := s.store.Tasks(ctx, s.principal.Tenant)
	if err != nil {
		return owners // it is for a hint; the command itself says what is wrong
	}
	for _, t := range list {
		owners[t.ID] = t.Actor
	}
	return owners
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
