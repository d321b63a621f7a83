package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

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

// count is a flag for a whole number as people write it: pflag's own would read 010 as 8.
type count int

func (c *count) String() string { return strconv.Itoa(int(*c)) }
func (c *count) Type() string   { return "number" }

func (c *count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("give a whole number")
	}
	*c = count(n)
	return nil
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

// widestCell bounds a cell: a table is as wide as its widest, and an agent chooses what stands in some.
const widestCell = 300

// shorten cuts a text to so many characters. What a person decides on is never shown through it alone.
func shorten(s string, most int) string {
	for i := range s {
		if most == 0 {
			return s[:i] + "…"
		}
		most--
	}
	return s
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
		cells[i] = printable(shorten(c, widestCell))
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
	_, err = io.WriteString(w, visible(string(b), jsonEscape)+"\n")
	return err
}

// blankBraille looks like a space, and counts as a symbol.
const blankBraille = '\u2800'

// jsonEscape is a character as JSON can write it in any string.
func jsonEscape(r rune) string {
	if r > 0xFFFF {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// printable shows a text on one line, with an escape for everything that a terminal would not show as itself.
func printable(s string) string {
	return visible(s, func(r rune) string {
		return strings.Trim(strconv.QuoteRuneToASCII(r), "'")
	})
}

// visible escapes what a terminal would obey or hide instead of showing it: control characters, characters that
// reorder their neighbours, spaces of odd kinds, characters without a shape, and marks that pile up on one letter.
func visible(s string, escape func(rune) string) string {
	var b strings.Builder
	marks := 0
	for i, r := range s {
		if unicode.Is(unicode.Mn, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && s[i] != "\uFFFD"[0]:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case marks <= 2 && r != blankBraille && strconv.IsPrint(r) &&
			!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Me):
			b.WriteRune(r)
		default:
			b.WriteString(escape(r))
		}
	}
	return b.String()
}

// checkedWriter remembers the first failure: a result that nobody could read is not one.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

func isTerminal(w any) bool {
	if c, ok := w.(*checkedWriter); ok {
		w = c.w
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
