package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/journal"
)

// The formats of whole entries. The first has an entry's own bytes.
const (
	formatJSONL = "jsonl"
	formatOPA   = "opa"
	formatText  = "text"
)

// entryLines writes those entries that filters choose, a line each.
type entryLines struct {
	w       io.Writer
	filter  journal.Filter
	match   func(dispatch.Entry) (bool, error)
	form    func(dispatch.Entry) ([]byte, error)
	written int64
}

// record is the log as entryLines reads it: in its order, and what belongs to an entry wherever that stands.
type record interface {
	journal.Log
	journal.Source
}

func (a *app) entryLines(ctx context.Context, log record, w io.Writer, f *filters, choice string) (*entryLines, error) {
	l := &entryLines{w: w, filter: f.Filter}
	l.match = func(e dispatch.Entry) (bool, error) { return l.filter.Match(ctx, log, e) }
	switch choice {
	case formatJSONL:
		l.form = func(e dispatch.Entry) ([]byte, error) { return e.Body, nil }
	case formatText:
		l.form = func(e dispatch.Entry) ([]byte, error) { return []byte(printable(brief(e))), nil }
	case formatOPA:
		if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, string(dispatch.KindDecision)) {
			return nil, misuse(fmt.Errorf("--format opa has decisions alone, and --kind leaves them out"))
		}
		l.filter.Kinds = []string{string(dispatch.KindDecision)}
		events := journal.NewOPALog(log, log, version().Version)
		l.form = func(e dispatch.Entry) ([]byte, error) {
			event, err := events.Event(ctx, e)
			if err != nil {
				return nil, err
			}
			return ijson.Marshal(event)
		}
	}
	if isTerminal(w) {
		// A terminal obeys some characters that JSON need not escape. Escaped, they are the same JSON.
		exact := l.form
		l.form = func(e dispatch.Entry) ([]byte, error) {
			line, err := exact(e)
			return []byte(visible(string(line), jsonEscape)), err
		}
	}
	return l, nil
}

// write writes an entry in one piece, if it is wanted.
func (l *entryLines) write(e dispatch.Entry) error {
	if wanted, err := l.match(e); err != nil || !wanted {
		return err
	}
	line, err := l.form(e)
	if err != nil {
		return err
	}
	if _, err := l.w.Write(append(line[:len(line):len(line)], '\n')); err != nil {
		return unwritten(err)
	}
	l.written++
	return nil
}

// unwritten is about an output that takes no more. That somebody who read it has seen enough is no fault to speak of.
func unwritten(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return err
	}
	return &failure{code: exitBroken, err: fmt.Errorf("the output ends early, since it could not be written: %w", err),
		fix: "nothing of the log is lost; see that there is room for the output"}
}

// inBrief are the parts of an entry that its line for people has.
var inBrief = []string{"/call_id", "/tool", "/input/call/tool", "/target", "/input/call/target", "/decision/effect", "/decision", "/status",
	"/actor", "/reviewer", "/act", "/by", "/policy_version"}

// brief is an entry on one line for people.
func brief(e dispatch.Entry) string {
	time, _ := journal.Member(e, "/time")
	parts := []string{time, fmt.Sprintf("%-10s", e.Kind), fmt.Sprintf("%s/%s %d.%d", cmp.Or(e.Task.Tenant, "-"), cmp.Or(e.Task.ID, "-"), e.Step, e.N)}
	for _, pointer := range inBrief {
		if text, ok := journal.Member(e, pointer); ok && text != "" {
			parts = append(parts, shorten(text, widestCell))
		}
	}
	return strings.Join(parts, " ")
}

// beyond explains a place that the log does not have.
func beyond(err error) error {
	if short, ok := errors.AsType[*journal.ShortError](err); ok {
		return misuse(fmt.Errorf("--from %d: %w", short.From, err)).hint("the first entry is number 0, and what comes next is --from " + fmt.Sprint(short.Size))
	}
	return changedLog(err)
}

// changedLog says what to do about a log that is not what its tree covers.
func changedLog(err error) error {
	if errors.Is(err, journal.ErrOtherLog) {
		return (&failure{code: exitBroken, err: err}).hint("see what it was with: govern log verify")
	}
	return err
}
