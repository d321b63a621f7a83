package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/snapshot"
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
			one, callers, each := e.size(200, 3), e.size(64, 3), e.size(32, 1)
			return []duel{{big.side(1, one), small.side(1, one)}, {big.side(callers, each), small.side(callers, each)}}, nil
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

func withState(ctx context.Context, e *env, what string, big bool, s size, next func() work) (world, error) {
	t, err := sample()
	if err != nil {
		return world{}, err
	}
	return inTasks(ctx, e, what, big, t.made, s, next)
}

// inTasks is a world whose dispatches are spread over the tasks of a state.
func inTasks(ctx context.Context, e *env, what string, big bool, made snapshot.Made, s size, next func() work) (world, error) {
	t, err := sample()
	if err != nil {
		return world{}, err
	}
	st, tasks, err := s.fill(ctx, e, fmt.Sprintf("%s-%t", what, big), t)
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
