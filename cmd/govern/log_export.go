package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/journal"
)

func (a *app) logExport() *cobra.Command {
	var from, limit count
	var output string
	cmd := &cobra.Command{Use: "export", Short: "Write the entries themselves, one a line", Args: args(),
		Long: `Writes the entries of the log, of every tenant and task and those of none, in the order of the log. Each line is the bytes
of one entry, exactly (where the output is a terminal, characters that it would obey are escaped). What all of them
are, without a filter and from the first on, is what govern log verify recomputes the tree over the log from.

Entries are numbered from 0, without gaps and for good. The last line on standard error is "next: --from N": with it the
next export goes on where this one ended, whatever was filtered out. Without filters, whoever has N lines from the
first on goes on with --from N. --limit ends after so many lines.

--format opa writes decisions alone, as events of OPA's decision log. --output writes a new file, whole or not at all.

` + filtersHelp,
		Example: `  govern log export --output entries.jsonl
  govern log export --from 200 --limit 100
  govern log export --kind decision --status ok --since 24h
  govern log export --format opa --task labels-1`}
	f := filterFlags(cmd)
	format := formatFlag(cmd, formatJSONL, formatOPA)
	cmd.Flags().Var(&from, "from", "begin with the entry number `N`; the first is 0")
	cmd.Flags().Var(&limit, "limit", "at most `N` lines")
	cmd.Flags().StringVar(&output, "output", "", "write this new `FILE`, for this user alone to read, instead of standard output")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		if err := f.read(time.Now()); err != nil {
			return err
		}
		if from < 0 || cmd.Flags().Changed("limit") && limit < 1 {
			return misuse(errors.New("--from counts from 0, and --limit from 1"))
		}
		x := &export{app: a, log: s.store, filters: f, format: format, from: int64(from), limit: int64(limit), output: output}
		var err error
		if output == "" {
			err = x.write(cmd.Context(), a.stdout)
		} else {
			err = writeWhole(output, func(file *checkedWriter) error { return x.write(cmd.Context(), file) })
		}
		if err == nil {
			x.report()
		}
		return err
	})
	return cmd
}

// export is one run of the command.
type export struct {
	*app
	log         record
	filters     *filters
	format      *format
	from, limit int64
	output      string
	// What was done: how many lines, and up to before which entry.
	written, upTo int64
}

func (x *export) write(ctx context.Context, w io.Writer) error {
	walk, err := journal.Begin(ctx, x.log, x.from)
	if err != nil {
		return beyond(err)
	}
	// That of this moment: an export ends, however quickly others append.
	head, err := x.log.Head(ctx)
	if err != nil {
		return err
	}
	lines, err := x.entryLines(ctx, x.log, w, x.filters, x.format.choice)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(w, 64<<10)
	lines.w = buffer
	progress, shown := isTerminal(x.stderr) && !isTerminal(w), time.Now()
	for e, err := range walk.To(ctx, head) {
		if err != nil {
			return errors.Join(changedLog(err), buffer.Flush())
		}
		if err := lines.write(e); err != nil {
			return err
		}
		if progress && time.Since(shown) > time.Second {
			shown = time.Now()
			fmt.Fprintf(x.stderr, "\r%d of %d entries\r", walk.Next(), head.Size)
		}
		if lines.written == x.limit && x.limit > 0 {
			break
		}
	}
	if err := buffer.Flush(); err != nil {
		return unwritten(err)
	}
	if err := walk.Check(ctx); err != nil {
		return changedLog(err)
	}
	x.written, x.upTo = lines.written, walk.Next()
	return nil
}

// report tells people how much that was, and everybody how to go on.
func (x *export) report() {
	fmt.Fprintf(x.stderr, "exported %d of the %d entries from number %d on\n", x.written, x.upTo-x.from, x.from)
	if x.from == 0 && !x.filters.any() && x.format.choice == formatJSONL {
		file := "FILE"
		if x.output != "" {
			file = shellWord(x.output)
		}
		fmt.Fprintf(x.stderr, "to verify them, also elsewhere: govern log verify %s\n", file)
	}
	x.next(x.upTo)
}
