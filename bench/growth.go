package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/snapshot"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// What grows. Each is measured twice: for one caller, who mostly waits for the disk, and for 64, whose syncs are shared, so
// that little but the work itself is left. Keys are random everywhere.
var growth = []subject{
	grows("readable", "1,000,000 readable documents over 10", withReadable),
	grows("tools", "3,000 tools over 3", withTools),
	grows("tasks", "1,000,000 tasks over 100", withTasks),
	grows("pending", "1,000,000 calls that wait for a person over 100", withPending),
	grows("entries", "1,000,000 entries over none", withEntries),
}

// world is what dispatches meet: a snapshot, a state, and how to draw the next dispatch for one of some callers.
type world struct {
	snap *dispatch.Snapshot
	*state
	draw func(caller, callers int) work
}

func grows(name, what string, build func(ctx context.Context, e *env, big bool) (world, error)) subject {
	return subject{
		specs: []spec{
			{"growth-" + name + "/1", "a dispatch of one caller, with " + what, 1.2, atMost, ""},
			{"growth-" + name + "/64", "a dispatch of 64 callers, with " + what, 1.2, atMost, ""},
		},
		open: func(ctx context.Context, e *env) ([]duel, error) {
			small, err := build(ctx, e, false)
			if err != nil {
				return nil, err
			}
			big, err := build(ctx, e, true)
			if err != nil {
				return nil, err
			}
			one, each := e.size(200, 3), e.size(32, 1)
			return []duel{{big.side(1, one), small.side(1, one)}, {big.side(64, each), small.side(64, each)}}, nil
		},
	}
}

func (w world) side(callers, each int) side {
	return w.dispatches(w.snap, callers, each, func(caller, n int) []work {
		out := make([]work, n)
		for i := range out {
			out[i] = w.draw(caller, callers)
		}
		return out
	})
}

// anyOf draws one of the things that belong to a caller, so that no two callers draw the same at a time.
func anyOf[T any](things []T, caller, callers int) T {
	return things[caller+callers*rand.IntN((len(things)-caller+callers-1)/callers)]
}

// withReadable has a dispatch read any of the documents that its profile opens.
func withReadable(ctx context.Context, e *env, big bool) (world, error) {
	paths := make([]string, 10)
	if big {
		paths = make([]string, e.size(1_000_000, 100))
	}
	targets, documents := map[string]bool{}, map[string]map[string]string{}
	for i := range paths {
		paths[i] = "/any/" + name('d') + ".txt"
		targets[paths[i]] = true
		documents[paths[i]] = map[string]string{"text": "7 packs; 12 labels per pack.", "version": "v1", "content_type": "text/plain"}
	}
	resources, err := ijson.Marshal(map[string]any{"readable": map[string]any{"warehouse": targets}})
	if err != nil {
		return world{}, err
	}
	texts, err := ijson.Marshal(documents)
	if err != nil {
		return world{}, err
	}
	_, made, err := shipped(ctx, func(c *config.Config) {
		c.Resources, c.Documents = &config.Part{JSON: resources}, &config.Part{JSON: texts}
	})
	if err != nil {
		return world{}, err
	}
	return inTasks(ctx, e, "readable", big, made, size{tasks: 1000}, func() work {
		return work{proposal: read(paths[rand.IntN(len(paths))]), want: dispatch.StatusOK}
	})
}

// withTools has a dispatch use any of the tools, all of which do the same.
func withTools(ctx context.Context, e *env, big bool) (world, error) {
	tools := 3
	if big {
		tools = e.size(3000, 30)
	}
	calls := make([]string, tools)
	_, made, err := shipped(ctx, func(c *config.Config) {
		def, p := c.Tools["calculate"], c.Profiles[profile]
		c.Tools, p.Tools = map[string]config.Tool{}, nil
		for i := range calls {
			tool := name('c')
			calls[i] = calculate(tool)
			c.Tools[tool], p.Tools = def, append(p.Tools, tool)
		}
		// The documents of the built-in configuration want a tool that reads them.
		c.Documents, c.Profiles[profile] = &config.Part{JSON: ijson.Raw("{}")}, p
	})
	if err != nil {
		return world{}, err
	}
	return inTasks(ctx, e, "tools", big, made, size{tasks: 1000}, func() work {
		return work{proposal: calls[rand.IntN(len(calls))], want: dispatch.StatusOK}
	})
}

func withTasks(ctx context.Context, e *env, big bool) (world, error) {
	tasks := 100
	if big {
		tasks = e.size(1_000_000, 200)
	}
	return withState(ctx, e, "tasks", big, size{tasks: tasks}, func() work { return work{proposal: read(readable), want: dispatch.StatusOK} })
}

// withPending has every dispatch ask for another approval, in tasks of which each has some that wait already.
func withPending(ctx context.Context, e *env, big bool) (world, error) {
	s := size{tasks: e.size(100_000, 100), pending: 100}
	if big {
		s.pending = e.size(1_000_000, 1000)
	}
	return withState(ctx, e, "pending", big, s, func() work {
		return work{proposal: draft(name('d')), want: dispatch.StatusApprovalRequired}
	})
}

func withEntries(ctx context.Context, e *env, big bool) (world, error) {
	s := size{tasks: e.size(10_000, 100)}
	if big {
		s.entries = e.size(1_000_000, 1000)
	}
	return withState(ctx, e, "entries", big, s, func() work { return work{proposal: read(readable), want: dispatch.StatusOK} })
}

func withState(ctx context.Context, e *env, name string, big bool, s size, next func() work) (world, error) {
	_, made, err := shipped(ctx)
	if err != nil {
		return world{}, err
	}
	return inTasks(ctx, e, name, big, made, s, next)
}

// inTasks is a world whose dispatches are spread over the tasks of a state.
func inTasks(ctx context.Context, e *env, name string, big bool, made snapshot.Made, s size, next func() work) (world, error) {
	tasks, t, err := s.tasksOf(ctx)
	if err != nil {
		return world{}, err
	}
	st, err := newState(ctx, e.file(fmt.Sprintf("%s-%t.db", name, big)), func(store *sqlite.Store) error {
		return s.fill(ctx, store, t, tasks)
	})
	if err != nil {
		return world{}, err
	}
	// A large state is no other for some rounds more; a small one would be.
	st.kept = big
	return world{made.Snapshot, st, func(caller, callers int) work {
		w := next()
		w.task = anyOf(tasks, caller, callers)
		return w
	}}, nil
}

// size is how much of everything a state holds, spread evenly over its tasks.
type size struct{ tasks, pending, entries int }

func (s size) tasksOf(ctx context.Context) (tasks []string, t template, err error) {
	t, err = newTemplate(ctx)
	for range s.tasks {
		tasks = append(tasks, name('t'))
	}
	return tasks, t, err
}

// fill puts tasks with what they hold into a store, as its Apply takes them: a state that govern would not make is none
// that it must be fast with.
func (s size) fill(ctx context.Context, store *sqlite.Store, t template, tasks []string) error {
	share := func(all, i int) int { return all*(i+1)/s.tasks - all*i/s.tasks }
	err := prepare(len(tasks), func(i int) error {
		return store.Apply(ctx, t.task(keyOf(tasks[i]), share(s.pending, i), share(s.entries, i)))
	})
	if err != nil {
		return err
	}
	return s.check(ctx, store, tasks)
}

// check asserts that a store holds what it should, as far as a few tasks show.
func (s size) check(ctx context.Context, store *sqlite.Store, tasks []string) error {
	pending, entries, few := 0, 0, tasks[:min(len(tasks), 100)]
	for _, task := range few {
		state, err := store.Load(ctx, keyOf(task), dispatch.Lookup{})
		if err != nil {
			return err
		}
		pending += state.Pending
		for _, err := range store.Entries(ctx, who.Tenant, task) {
			if err != nil {
				return err
			}
			entries++
		}
	}
	if pending != s.pending*len(few)/s.tasks || entries != s.entries*len(few)/s.tasks {
		return fmt.Errorf("%d tasks of %+v have %d approvals and %d entries", len(few), s, pending, entries)
	}
	return nil
}

// task is a commit that makes a task as it is after some steps: with calls that wait for a person, and entries.
func (t template) task(key dispatch.TaskKey, pending, entries int) dispatch.Commit {
	c := dispatch.Commit{Task: t.before.Task}
	c.Task.TaskKey, c.Task.Revision = key, 1
	for range pending {
		a := *t.before.Approval
		a.ID, a.Task = "ap-"+name('a')[:len(a.ID)-len("ap-")], key
		a.Signature = (name('0')[1:] + name('0')[1:] + name('0')[1:] + name('0')[1:])[:len(a.Signature)]
		a.State, a.Votes, a.ExpiresAtStep = dispatch.Pending, nil, 0
		c.Approvals = append(c.Approvals, dispatch.ApprovalChange{Approval: a})
	}
	for i := range entries {
		e := t.commit.Entries[i%len(t.commit.Entries)]
		e.Task, e.Step, e.N = key, 1+i/len(t.commit.Entries), i%len(t.commit.Entries)
		c.Task.Steps, c.Task.Entries = e.Step, e.N+1
		c.Entries = append(c.Entries, e)
	}
	return c
}
