package main

import (
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/journal"
)

func (a *app) logCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "log", Short: "Read what was decided and what took place",
		Long: `The decision log has a row for every judged proposal. The action log has one only for each operation that
ran, reads and calculations too. The trace tells one task's story: proposals, decisions, reviews, actions, results.
All three are readings of the same entries, which nothing changes or removes.`,
	})
	cmd.AddCommand(a.logDecisions(), a.logActions(), a.logTrace())
	return cmd
}

func (a *app) logDecisions() *cobra.Command {
	var task string
	var inputs bool
	cmd := &cobra.Command{Use: "decisions", Short: "A row for every judged proposal", Args: args(),
		Example: "  govern log decisions\n  govern log decisions --task labels-1 --inputs --format json"}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&task, "task", "", "only of the task with this `ID`")
	cmd.Flags().BoolVar(&inputs, "inputs", false, "with --format json: also what the policy saw")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		if inputs && !f.json() {
			return misuse(fmt.Errorf("--inputs goes with --format json"))
		}
		return stream(cmd, s, task, a.list(f, "TASK", "STEP", "CALL", "TOOL", "TARGET", "EFFECT", "STATUS", "REASON"), journal.Decisions,
			func(d journal.Decision) (any, []string) {
				if !inputs {
					d.Input = nil
				}
				return d, []string{d.Task, fmt.Sprint(d.Step), text(d.CallID), d.Tool, d.Target, string(d.Effect), string(d.Status), reason(d)}
			}, "no decisions yet")
	})
	return cmd
}

func reason(d journal.Decision) string {
	if d.Detail != "" {
		return d.Detail
	}
	var all []string
	for _, r := range d.Reasons {
		all = append(all, r.Message)
	}
	return strings.Join(all, "; ")
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func (a *app) logActions() *cobra.Command {
	var task string
	cmd := &cobra.Command{Use: "actions", Short: "A row for every operation that ran", Args: args(), Example: "  govern log actions"}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&task, "task", "", "only of the task with this `ID`")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		return stream(cmd, s, task, a.list(f, "TASK", "STEP", "CALL", "TOOL", "TARGET", "OPERATION", "STATUS", "APPROVED BY"), journal.Actions,
			func(x journal.Action) (any, []string) {
				return x, []string{x.Task, fmt.Sprint(x.Step), x.CallID, x.Tool, x.Target, x.Operation, string(x.Status), strings.Join(x.Reviewers, ", ")}
			}, "nothing has run yet")
	})
	return cmd
}

func (a *app) logTrace() *cobra.Command {
	cmd := &cobra.Command{Use: "trace", Short: "One task's story, event by event", Args: args(), Example: "  govern log trace --task labels-1 --format json"}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().String("task", "", "the `ID` of the task (GOVERN_TASK)")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		if _, err := s.anyTask(cmd, s.config.Task); err != nil {
			return err
		}
		return stream(cmd, s, s.config.Task, a.list(f, "E", "KIND", "CALL", "STATUS", "WHAT"), journal.Trace,
			func(e journal.Event) (any, []string) {
				return e, []string{fmt.Sprint(e.E), e.Kind, e.Call, string(e.Status), what(e)}
			}, "nothing has happened yet")
	})
	return cmd
}

// what sums an event up in one cell.
func what(e journal.Event) string {
	var parts []string
	for _, p := range []string{e.Task, e.Actor, e.Reviewer, e.Tool, string(e.Arguments), e.ProposalRef, e.Target, e.Operation, e.Source, e.Trust, string(e.Value)} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, " ")
}

// stream writes a reading of the entries row by row. A task that does not exist is an error, not an empty list.
func stream[Row any](cmd *cobra.Command, s *system, task string, l *list, reading func(iter.Seq2[dispatch.Entry, error]) iter.Seq2[Row, error],
	cells func(Row) (any, []string), empty string) error {
	if task != "" {
		if _, err := s.anyTask(cmd, task); err != nil {
			return err
		}
	}
	for row, err := range reading(s.store.Entries(cmd.Context(), s.principal.Tenant, task)) {
		if err != nil {
			return err
		}
		v, c := cells(row)
		if err := l.add(v, c...); err != nil {
			return err
		}
	}
	return l.end(empty)
}
