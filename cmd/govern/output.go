package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// format is a --format flag.
type format struct {
	choice string
	among  []string
}

func formatFlag(cmd *cobra.Command, among ...string) *format {
	f := &format{choice: among[0], among: among}
	cmd.Flags().Var(f, "format", "output as "+strings.Join(among, " or "))
	return f
}

func (f *format) String() string { return f.choice }
func (f *format) Type() string   { return strings.Join(f.among, "|") }
func (f *format) json() bool     { return f.choice == "json" }

func (f *format) Set(s string) error {
	for _, a := range f.among {
		if s == a {
			f.choice = s
			return nil
		}
	}
	return fmt.Errorf("there is %s", strings.Join(f.among, ", "))
}

// list writes rows as they come: a table, or a JSON object a line.
type list struct {
	w       io.Writer
	format  *format
	headers []string
	table   *tabwriter.Writer
	rows    int
}

func (a *app) list(f *format, headers ...string) *list {
	return &list{w: a.stdout, format: f, headers: headers}
}

// flushEvery bounds what a table holds back to line up its columns.
const flushEvery = 200

func (l *list) add(v any, cells ...string) error {
	if l.format.json() {
		return writeJSON(l.w, v)
	}
	if l.table == nil {
		l.table = tabwriter.NewWriter(l.w, 0, 4, 2, ' ', 0)
		fmt.Fprintln(l.table, strings.Join(l.headers, "\t"))
	}
	for i, c := range cells {
		cells[i] = printable(c)
	}
	if _, err := fmt.Fprintln(l.table, strings.Join(cells, "\t")); err != nil {
		return err
	}
	l.rows++
	if l.rows%flushEvery == 0 {
		return l.table.Flush()
	}
	return nil
}

// end writes what is held back, and for people what an empty list means.
func (l *list) end(empty string) error {
	if l.table != nil {
		return l.table.Flush()
	}
	if !l.format.json() {
		_, err := fmt.Fprintln(l.w, empty)
		return err
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	b, err := ijson.Encode(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// printable shows a text on one line, with escapes for everything that a terminal would not show as itself:
// control characters, and those that hide or reorder others.
func printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\uFFFD' && s[i] != "\uFFFD"[0]:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
