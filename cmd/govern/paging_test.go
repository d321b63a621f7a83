package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/journal"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// Rows of one moment are told apart (B092): page by page, forwards and backwards, every row comes once and in one order.
func TestB092PagesHoldEveryRowOnce(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (*sqlite.Store, error){
		"file": func(t *testing.T) (*sqlite.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "govern.db"), sqlite.Options{})
		},
		"memory": func(t *testing.T) (*sqlite.Store, error) { return sqlite.OpenMemory(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			const decided, waiting, tasks = 500, 50, 5
			l := newLab(t, budget(decided))
			store, err := open(t)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			l.store = store
			l.serve()
			for i := range tasks {
				l.create(fmt.Sprintf("t-%d", i), l.who.Actor)
			}
			for i := range decided {
				l.task = fmt.Sprintf("t-%d", i%tasks)
				if i < waiting {
					l.propose(draft("c", "idempotency_key", fmt.Sprintf("draft-%d", i)))
				} else {
					l.propose(add("c"))
				}
			}
			s := &system{governed: l.governed, store: l.store, dispatcher: l.dispatcher, principal: l.who}

			decisions := rows[journal.Decision, dispatch.Place]{
				read: func(span dispatch.Span[dispatch.Place]) iter.Seq2[journal.Decision, error] {
					return journal.Decisions(t.Context(), l.store, l.store.EntriesIn(t.Context(), l.who.Tenant, "", dispatch.KindDecision, span))
				},
				name: func(d journal.Decision) dispatch.Place {
					assert.Equal(t, dispatch.FormatTime(l.now), d.Time)
					return d.Place
				},
			}
			var places []dispatch.Place
			for i := range decided {
				places = append(places, dispatch.Place{Task: fmt.Sprintf("t-%d", i%tasks), Step: 1 + i/tasks})
			}
			assert.Equal(t, places, walk(t, s, decisions, "after"))
			assert.Equal(t, places, walk(t, s, decisions, "before"))

			approvals := rows[dispatch.Approval, string]{
				read: func(span dispatch.Span[string]) iter.Seq2[dispatch.Approval, error] {
					return l.store.ApprovalsIn(t.Context(), l.who.Tenant, "", true, span)
				},
				name: func(a dispatch.Approval) string { return a.ID },
			}
			ids := walk(t, s, approvals, "after")
			assert.Equal(t, ids, walk(t, s, approvals, "before"))
			var asked []string
			for _, id := range ids {
				a, err := l.store.Approval(t.Context(), l.who.Tenant, id)
				require.NoError(t, err)
				asked = append(asked, string(a.Proposal))
			}
			require.Len(t, asked, waiting)
			for i, proposal := range asked {
				assert.Contains(t, proposal, fmt.Sprintf(`"draft-%d"`, i), "in the order in which they were asked for")
			}
		})
	}
}

// walk goes through a listing by sevens, with the cursors that it is given and nothing else, and gives the names in the
// order of the listing. Backwards it begins with the last page.
func walk[Row, Name any](t *testing.T, s *system, r rows[Row, Name], flag string) (all []Name) {
	t.Helper()
	r.show = func(row Row, cursor string) (any, []string, error) {
		return map[string]any{"name": r.name(row), "cursor": cursor}, nil, nil
	}
	p := &paging{limit: 7, given: map[string]bool{"limit": true}}
	if flag == "before" {
		p = &paging{last: 7, given: map[string]bool{"last": true}}
	}
	for pages := 0; ; pages++ {
		require.Less(t, pages, 100, "there is an end")
		g, err := pageOf[Name](p, s, "list")
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, writePage(io.Discard, (&app{stdout: &out}).list(&format{choice: "json"}), g, r))
		var names []Name
		var cursors []string
		for line := range strings.Lines(out.String()) {
			var row struct {
				Name   Name   `json:"name"`
				Cursor string `json:"cursor"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			names, cursors = append(names, row.Name), append(cursors, row.Cursor)
		}
		if len(names) == 0 {
			return all
		}
		require.LessOrEqual(t, len(names), 7)
		p = &paging{limit: 7, given: map[string]bool{"limit": true, flag: true}}
		if flag == "after" {
			all, p.after = append(all, names...), cursors[len(cursors)-1]
		} else {
			all, p.before = slices.Concat(names, all), cursors[0]
		}
	}
}
