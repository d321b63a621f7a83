package storetest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

var spans = []part{
	{"every part of a log is what its ends and its limit say", func(t *testing.T, s dispatch.Store) {
		z, a := apply(t, s, create(key("z"))), apply(t, s, create(key("a")))
		elsewhere := apply(t, s, create(dispatch.TaskKey{Tenant: "elsewhere", ID: "z"}))
		for range 4 {
			c := step(z)
			c.Entries = append(c.Entries, entry(z.TaskKey, c.Task.Steps, 1, dispatch.KindAction), entry(z.TaskKey, c.Task.Steps, 2, dispatch.KindDecision))
			c.Task.Entries = 3
			z, a, elsewhere = apply(t, s, c), apply(t, s, step(a)), apply(t, s, step(elsewhere))
		}
		for _, kind := range []dispatch.Kind{dispatch.KindTask, dispatch.KindDecision, dispatch.KindAction, dispatch.KindReview} {
			for _, task := range []string{"", "z", "a", "none"} {
				var all []dispatch.Entry
				for _, e := range read(t, s, tenant, task) {
					if e.Kind == kind {
						all = append(all, e)
					}
				}
				everyPart(t, all, dispatch.Entry.Place, func(span dispatch.Span[dispatch.Place]) iter.Seq2[dispatch.Entry, error] {
					return s.EntriesIn(t.Context(), tenant, task, kind, span)
				})
			}
		}
	}},
	{"every part of the approvals is what its ends and its limit say", func(t *testing.T, s dispatch.Store) {
		one, two := apply(t, s, create(key("z"))), apply(t, s, create(key("a")))
		foreign := create(dispatch.TaskKey{Tenant: "elsewhere", ID: "z"})
		foreign.Approvals = []dispatch.ApprovalChange{ask(foreign.Task, "foreign", "signature-1")}
		apply(t, s, foreign)
		for i := range 8 {
			name := fmt.Sprint(9 - i)
			first, second := ask(one, "z"+name, "signature-"+name), ask(two, "a"+name, "signature-"+name)
			one, two = judged(t, s, one, first), judged(t, s, two, second)
			switch i % 3 {
			case 1:
				one = judged(t, s, one, move(first.Approval, dispatch.Rejected))
			case 2:
				two = judged(t, s, two, move(second.Approval, dispatch.Approved))
			}
		}
		for _, task := range []string{"", "z", "a", "none"} {
			for waiting, states := range map[bool][]dispatch.ApprovalState{true: {dispatch.Pending}, false: nil} {
				all, err := s.Approvals(t.Context(), tenant, task, states...)
				require.NoError(t, err)
				everyPart(t, all, func(a dispatch.Approval) string { return a.ID }, func(span dispatch.Span[string]) iter.Seq2[dispatch.Approval, error] {
					return s.ApprovalsIn(t.Context(), tenant, task, waiting, span)
				})
			}
		}
	}},
	{"every part of the tasks is what its ends and its limit say", func(t *testing.T, s dispatch.Store) {
		for _, id := range append([]string{"b", "B", "a-1", "a\x00b"}, oddNames[:12]...) {
			if _, err := s.Task(t.Context(), key(id)); err != nil {
				apply(t, s, create(key(id)))
			}
		}
		apply(t, s, create(key("\U0010FFFF\U0010FFFF")))
		apply(t, s, create(dispatch.TaskKey{Tenant: "elsewhere", ID: "c"}))
		all, err := s.Tasks(t.Context(), tenant)
		require.NoError(t, err)
		everyPart(t, all, taskID, func(span dispatch.Span[string]) iter.Seq2[dispatch.Task, error] {
			return s.TasksIn(t.Context(), tenant, span)
		})
	}},
	{"a part that begins or ends at no row is refused", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		judged(t, s, task, ask(task, "a1", "signature-1"))
		foreign := create(dispatch.TaskKey{Tenant: "elsewhere", ID: "labels-2"})
		foreign.Approvals = []dispatch.ApprovalChange{ask(foreign.Task, "a2", "signature-1")}
		apply(t, s, foreign)

		for _, place := range []dispatch.Place{{}, {Task: "labels-1", Step: 1, N: 1}, {Task: "labels-1", Step: 2}, {Task: "labels-2"}} {
			refusesEnds(t, place, func(span dispatch.Span[dispatch.Place]) iter.Seq2[dispatch.Entry, error] {
				return s.EntriesIn(t.Context(), tenant, "", dispatch.KindDecision, span)
			})
		}
		apply(t, s, create(key("labels-3")))
		refusesEnds(t, dispatch.Place{Task: "labels-3"}, func(span dispatch.Span[dispatch.Place]) iter.Seq2[dispatch.Entry, error] {
			return s.EntriesIn(t.Context(), tenant, "labels-1", dispatch.KindTask, span)
		})
		for _, id := range []string{"", "a2", "a1 ", "labels-1"} {
			refusesEnds(t, id, func(span dispatch.Span[string]) iter.Seq2[dispatch.Approval, error] {
				return s.ApprovalsIn(t.Context(), tenant, "", true, span)
			})
		}
		for _, id := range []string{"", "labels-2", "labels-1 ", "a1"} {
			refusesEnds(t, id, func(span dispatch.Span[string]) iter.Seq2[dispatch.Task, error] {
				return s.TasksIn(t.Context(), tenant, span)
			})
		}
	}},
	{"what is added between two parts comes once, at its place", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("m")))
		decisions := func(span dispatch.Span[dispatch.Place]) []int {
			var steps []int
			for e, err := range s.EntriesIn(t.Context(), tenant, "", dispatch.KindDecision, span) {
				require.NoError(t, err)
				steps = append(steps, e.Step)
			}
			return steps
		}
		for range 3 {
			task = apply(t, s, step(task))
		}
		third := dispatch.Place{Task: "m", Step: 3}
		assert.Empty(t, decisions(dispatch.Span[dispatch.Place]{After: &third}))
		for range 2 {
			task = apply(t, s, step(task))
		}
		assert.Equal(t, []int{4, 5}, decisions(dispatch.Span[dispatch.Place]{After: &third}))
		assert.Equal(t, []int{1, 2}, decisions(dispatch.Span[dispatch.Place]{Before: &third, Limit: 2, Last: true}))

		apply(t, s, create(key("z")))
		m := "m"
		assert.Equal(t, []string{"z"}, taken(t, s.TasksIn(t.Context(), tenant, dispatch.Span[string]{After: &m}), taskID))
		apply(t, s, create(key("p")))
		assert.Equal(t, []string{"p", "z"}, taken(t, s.TasksIn(t.Context(), tenant, dispatch.Span[string]{After: &m}), taskID))
	}},
	{"a call that was decided still marks its place among those that wait", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		a, b, c := ask(task, "a", "signature-1"), ask(task, "b", "signature-2"), ask(task, "c", "signature-3")
		task = judged(t, s, task, c, b, a)
		judged(t, s, task, move(b.Approval, dispatch.Rejected))
		id := func(a dispatch.Approval) string { return a.ID }
		assert.Equal(t, []string{"a"}, taken(t, s.ApprovalsIn(t.Context(), tenant, "", true, dispatch.Span[string]{After: &b.ID}), id))
		assert.Equal(t, []string{"c"}, taken(t, s.ApprovalsIn(t.Context(), tenant, "", true, dispatch.Span[string]{Before: &b.ID}), id))
	}},
	{"long parts and long rows are read to their end", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		const all = 2_100
		c := step(task)
		c.Entries = nil
		for n := range all {
			e := entry(task.TaskKey, c.Task.Steps, n, dispatch.KindDecision)
			if n%600 == 0 {
				e.Body = ijson.Raw(`"` + string(make([]byte, 1<<20)) + `"`)
			}
			c.Entries = append(c.Entries, e)
		}
		apply(t, s, c)
		numbers := func(span dispatch.Span[dispatch.Place]) []int {
			return taken(t, s.EntriesIn(t.Context(), tenant, "", dispatch.KindDecision, span), func(e dispatch.Entry) int { return e.N })
		}
		at := func(n int) *dispatch.Place { return &dispatch.Place{Task: "labels-1", Step: 1, N: n} }
		count := func(from, until int) (list []int) {
			for n := from; n < until; n++ {
				list = append(list, n)
			}
			return list
		}
		assert.Equal(t, count(0, all), numbers(dispatch.Span[dispatch.Place]{}))
		for _, limit := range []int{499, 500, 501, 1_000, 1_999} {
			assert.Equal(t, count(0, limit), numbers(dispatch.Span[dispatch.Place]{Limit: limit}), limit)
			assert.Equal(t, count(all-limit, all), numbers(dispatch.Span[dispatch.Place]{Limit: limit, Last: true}), limit)
			assert.Equal(t, count(51, 51+limit), numbers(dispatch.Span[dispatch.Place]{After: at(50), Limit: limit}), limit)
			assert.Equal(t, count(2_050-limit, 2_050), numbers(dispatch.Span[dispatch.Place]{Before: at(2_050), Limit: limit, Last: true}), limit)
		}
	}},
	{"a consumer of a part that stops or writes while it reads holds nothing up", func(t *testing.T, s dispatch.Store) {
		task := apply(t, s, create(key("labels-1")))
		for range 3 {
			task = apply(t, s, step(task))
		}
		for range s.EntriesIn(t.Context(), tenant, "", dispatch.KindDecision, dispatch.Span[dispatch.Place]{}) {
			break
		}
		var seen []int
		for e, err := range s.EntriesIn(t.Context(), tenant, "", dispatch.KindDecision, dispatch.Span[dispatch.Place]{Limit: 3, Last: true}) {
			require.NoError(t, err)
			seen = append(seen, e.Step)
			task = apply(t, s, step(task))
		}
		assert.Equal(t, []int{1, 2, 3}, seen, "the last ones are those of when the reading began")
		for range s.TasksIn(t.Context(), tenant, dispatch.Span[string]{}) {
			task = apply(t, s, step(task))
		}
	}},
	{"what is added in the middle while the last rows are read pushes none of them out", func(t *testing.T, s dispatch.Store) {
		const all, part = 512, 510 // more than one transaction reads
		name := func(n int) string { return fmt.Sprintf("t%03d", n) }
		for n := range all {
			apply(t, s, create(key(name(n))))
		}
		before := name(all - 1)
		var seen []string
		for task, err := range s.TasksIn(t.Context(), tenant, dispatch.Span[string]{Before: &before, Limit: part, Last: true}) {
			require.NoError(t, err)
			if seen = append(seen, task.ID); len(seen) == 1 {
				apply(t, s, create(key(name(all-3)+"-added")))
			}
		}
		assert.Equal(t, name(1), seen[0])
		assert.Equal(t, []string{name(all - 3), name(all-3) + "-added", name(all - 2)}, seen[len(seen)-3:])
	}},
	{"a context that is over gives no part", func(t *testing.T, s dispatch.Store) {
		apply(t, s, create(key("labels-1")))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range s.EntriesIn(ctx, tenant, "", dispatch.KindTask, dispatch.Span[dispatch.Place]{}) {
			assert.ErrorIs(t, err, context.Canceled)
		}
		for _, err := range s.TasksIn(ctx, tenant, dispatch.Span[string]{}) {
			assert.ErrorIs(t, err, context.Canceled)
		}
	}},
}

func taskID(t dispatch.Task) string { return t.ID }

// taken reads a listing to its end.
func taken[Row, Value any](t *testing.T, rows iter.Seq2[Row, error], value func(Row) Value) (all []Value) {
	t.Helper()
	for row, err := range rows {
		require.NoError(t, err)
		all = append(all, value(row))
	}
	return all
}

// everyPart compares all parts of a listing with what the whole says.
func everyPart[Row, Name any](t *testing.T, all []Row, name func(Row) Name, read func(dispatch.Span[Name]) iter.Seq2[Row, error]) {
	t.Helper()
	itself := func(row Row) Row { return row }
	for after := -1; after < len(all); after++ {
		for before := 0; before <= len(all); before++ {
			within := all[min(after+1, before):before]
			for _, limit := range []int{0, 1, 3, len(all), len(all) + 1} {
				for _, last := range []bool{false, true} {
					want := within
					switch {
					case limit == 0 || limit >= len(want):
					case last:
						want = want[len(want)-limit:]
					default:
						want = want[:limit]
					}
					span := dispatch.Span[Name]{Limit: limit, Last: last}
					if after >= 0 {
						row := name(all[after])
						span.After = &row
					}
					if before < len(all) {
						row := name(all[before])
						span.Before = &row
					}
					got := taken(t, read(span), itself)
					require.True(t, len(want) == 0 && len(got) == 0 || assert.ObjectsAreEqual(slices.Clone(want), got),
						"after %d, before %d, limit %d, last %t: %v, and not %v", after, before, limit, last, got, want)
				}
			}
		}
	}
}

func refusesEnds[Row, Name any](t *testing.T, name Name, read func(dispatch.Span[Name]) iter.Seq2[Row, error]) {
	t.Helper()
	for _, span := range []dispatch.Span[Name]{{After: &name}, {Before: &name}, {Before: &name, Limit: 3, Last: true}} {
		times := 0
		for _, err := range read(span) {
			times++
			assert.ErrorIs(t, err, dispatch.ErrUnknownRow, "%v", name)
		}
		assert.Equal(t, 1, times, "%v: once, and nothing else", name)
	}
}
