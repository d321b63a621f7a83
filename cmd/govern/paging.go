package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/cursor"
	"github.com/policy-dispatch/govern/internal/dispatch"
)

// paging is the flags that choose a part of a listing.
type paging struct {
	limit, last   count
	after, before string
	// given are the names of those that were: an empty cursor is one too, and a wrong one.
	given map[string]bool
}

// mostRows bounds a page. Who wants more wants everything, and needs no page for that.
const mostRows = 10_000

// pagingHelp explains the flags, in the help of every command that has them.
const pagingHelp = `Without flags everything is listed. --limit gives the first rows and --last the last ones; the order stays. Where there
are more, the commands for what comes before and after are printed to the standard error.

With --format json and any of these flags, each row has its cursor. Give the last row's to --after to go on, or the
first row's to --before to go back; a page without rows is the end. A cursor stays good while rows are added. It belongs
to this state and to this listing: give it with the same filters.`

// pagingFlags adds the flags to a command whose rows come in an order that needs saying.
func pagingFlags(cmd *cobra.Command, order string) *paging {
	p := &paging{given: map[string]bool{}}
	cmd.Flags().Var(&p.limit, "limit", "at most `N` rows, 1 to 10000: the first ones, or with --before those just before it")
	cmd.Flags().Var(&p.last, "last", "the last `N` rows, 1 to 10000")
	cmd.Flags().StringVar(&p.after, "after", "", "only rows after the one with this `CURSOR`")
	cmd.Flags().StringVar(&p.before, "before", "", "only rows before the one with this `CURSOR`")
	cmd.Long = cmd.Short + ", " + order + ".\n\n" + pagingHelp
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return p.check(cmd) }
	return p
}

func (p *paging) check(cmd *cobra.Command) error {
	for _, f := range []struct {
		name   string
		number *count
	}{{"limit", &p.limit}, {"last", &p.last}, {"after", nil}, {"before", nil}} {
		if !cmd.Flags().Changed(f.name) {
			continue
		}
		p.given[f.name] = true
		if f.number != nil && (*f.number < 1 || *f.number > mostRows) {
			return misuse(fmt.Errorf("--%s is %d", f.name, *f.number)).hint(fmt.Sprintf("give a number from 1 to %d", mostRows))
		}
	}
	switch {
	case p.given["after"] && p.given["before"]:
		return misuse(errors.New("--after and --before exclude each other"))
	case p.given["last"] && len(p.given) > 1:
		return misuse(errors.New("--last goes alone")).hint("--before CURSOR --limit N gives the rows just before one")
	}
	return nil
}

// page is the part of a listing that flags choose. Rows have names, which cursors carry.
type page[Name any] struct {
	*paging
	s *system
	// words are the command and its filters: what a cursor belongs to.
	words []string
	span  dispatch.Span[Name]
}

// pageOf reads the flags' cursors.
func pageOf[Name any](p *paging, s *system, words ...string) (*page[Name], error) {
	g := &page[Name]{paging: p, s: s, words: words}
	g.span.Limit, g.span.Last = int(p.limit), p.given["before"]
	if p.given["last"] {
		g.span.Limit, g.span.Last = int(p.last), true
	}
	for _, end := range []struct {
		flag, cursor string
		row          **Name
	}{{"after", p.after, &g.span.After}, {"before", p.before, &g.span.Before}} {
		if !p.given[end.flag] {
			continue
		}
		var name Name
		err := cursor.Read(s.store.Key(), s.principal.Tenant, g.listing(), end.cursor, &name)
		var other *cursor.OtherError
		switch {
		case errors.As(err, &other):
			return nil, misuse(fmt.Errorf("--%s: this is a cursor of govern %s", end.flag, other.Listing)).hint("give it to exactly that, with these filters and no others; each listing has its own")
		case errors.Is(err, cursor.ErrForged):
			return nil, misuse(fmt.Errorf("--%s: this is no cursor that this state has given", end.flag)).hint("copy one whole, as it was printed for this state")
		case err != nil:
			return nil, err
		}
		*end.row = &name
	}
	return g, nil
}

func (g *page[Name]) listing() string { return strings.Join(g.words, " ") }

// cursor is that of a row, if the command gives any.
func (g *page[Name]) cursor(row Name) (string, error) {
	if len(g.given) == 0 {
		return "", nil
	}
	return cursor.Make(g.s.store.Key(), g.s.principal.Tenant, g.listing(), row)
}

// rows is how a command shows a listing.
type rows[Row, Name any] struct {
	read func(dispatch.Span[Name]) iter.Seq2[Row, error]
	name func(Row) Name
	// show gives a row for programs, with its cursor if it has one, and for people.
	show  func(row Row, cursor string) (any, []string, error)
	empty string
}

// writePage writes the part of a listing that was asked for, row by row, and to w for people how to go on.
func writePage[Row, Name any](w io.Writer, l *list, g *page[Name], r rows[Row, Name]) error {
	var first, last *Name
	for row, err := range r.read(g.span) {
		if errors.Is(err, dispatch.ErrUnknownRow) {
			return misuse(errors.New("this state does not have the row that the cursor is of")).hint("it is older than the cursor; begin without one")
		}
		if err != nil {
			return err
		}
		name := r.name(row)
		cursor, err := g.cursor(name)
		if err != nil {
			return err
		}
		v, cells, err := r.show(row, cursor)
		if err != nil {
			return err
		}
		if err := l.add(v, cells...); err != nil {
			return err
		}
		if last = &name; first == nil {
			first = last
		}
	}
	if g.span.After != nil || g.span.Before != nil {
		r.empty = "no rows there"
	}
	if err := l.end(r.empty); err != nil || l.format.json() || g.span.Limit == 0 || first == nil {
		return err
	}
	for _, way := range []struct {
		where, flag string
		from        *Name
		next        dispatch.Span[Name]
	}{
		{"before", "--before", first, dispatch.Span[Name]{Before: first, Limit: 1, Last: true}},
		{"after", "--after", last, dispatch.Span[Name]{After: last, Limit: 1}},
	} {
		for _, err := range r.read(way.next) {
			if err != nil {
				return err
			}
			cursor, err := g.cursor(*way.from)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "to see the rows %s these:\n  %s\n", way.where, g.s.command(append(slices.Clone(g.words), "--limit", fmt.Sprint(g.span.Limit), way.flag, cursor)...))
		}
	}
	return nil
}
