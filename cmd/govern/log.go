package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/journal"
)

func (a *app) logCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "log", Short: "Read what was decided and what took place, and prove it",
		Long: `The decision log has a row for every judged proposal. The action log has one only for each operation that
ran, reads and calculations too. The trace tells one task's story: proposals, decisions, reviews, actions, results.
Activations say which policy was in force when. All are readings of the same entries, which nothing changes or removes;
export and follow write the entries themselves.

Checkpoints and proofs let somebody else see that: a checkpoint says what the log was at one moment, signed; a proof
shows that an entry is in it, or that a later log only added to it.`,
	})
	cmd.AddCommand(a.logDecisions(), a.logActions(), a.logTrace(), a.logActivations(), a.logExport(), a.logFollow(), a.logConfirm(),
		a.logCheckpoint(), a.logProve(), a.logConsistency(), a.logVerifyProof(), a.logVerify())
	return cmd
}

func (a *app) logDecisions() *cobra.Command {
	var task string
	var inputs bool
	cmd := &cobra.Command{Use: "decisions", Short: "A row for every judged proposal", Args: args(),
		Example: "  govern log decisions --last 20\n  govern log decisions --task labels-1 --inputs --format json"}
	paging := pagingFlags(cmd, "the latest last")
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&task, "task", "", "only of the task with this `ID`")
	cmd.Flags().BoolVar(&inputs, "inputs", false, "with --format json: also what the policy saw")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		if inputs && !f.json() {
			return misuse(fmt.Errorf("--inputs goes with --format json"))
		}
		return writeLog(a, cmd, s, paging, s.principal.Tenant, task, a.list(f, "TASK", "STEP", "CALL", "TOOL", "TARGET", "EFFECT", "STATUS", "REASON"),
			dispatch.KindDecision, journal.Decisions, rows[journal.Decision, dispatch.Place]{
				name: func(d journal.Decision) dispatch.Place { return d.Place },
				show: func(d journal.Decision, cursor string) (any, []string, error) {
					if !inputs {
						d.Input = nil
					}
					return decisionView{d, cursor},
						[]string{d.Task, fmt.Sprint(d.Step), text(d.CallID), d.Tool, d.Target, string(d.Effect), string(d.Status), reason(d)}, nil
				},
				empty: "no decisions yet",
			})
	})
	return cmd
}

// decisionView is a row of the decision log as programs read it.
type decisionView struct {
	journal.Decision
	Cursor string `json:"cursor,omitzero"`
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
	cmd := &cobra.Command{Use: "actions", Short: "A row for every operation that ran", Args: args(),
		Example: "  govern log actions\n  govern log actions --limit 100 --format json"}
	paging := pagingFlags(cmd, "the latest last")
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&task, "task", "", "only of the task with this `ID`")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		return writeLog(a, cmd, s, paging, s.principal.Tenant, task, a.list(f, "TASK", "STEP", "CALL", "TOOL", "TARGET", "OPERATION", "STATUS", "APPROVED BY"),
			dispatch.KindAction, journal.Actions, rows[journal.Action, dispatch.Place]{
				name: func(x journal.Action) dispatch.Place { return x.Place },
				show: func(x journal.Action, cursor string) (any, []string, error) {
					return actionView{x, cursor},
						[]string{x.Task, fmt.Sprint(x.Step), x.CallID, x.Tool, x.Target, x.Operation, actionStatus(x), strings.Join(x.Reviewers, ", ")}, nil
				},
				empty: "nothing has run yet",
			})
	})
	return cmd
}

// actionStatus also tells people who found it out, where no outcome was heard.
func actionStatus(x journal.Action) string {
	if x.Settled == "" {
		return string(x.Status)
	}
	return fmt.Sprintf("%s (%s)", x.Status, x.Settled)
}

// actionView is a row of the action log as programs read it.
type actionView struct {
	journal.Action
	Cursor string `json:"cursor,omitzero"`
}

func (a *app) logActivations() *cobra.Command {
	cmd := &cobra.Command{Use: "activations", Short: "A row for every time that decisions came under another policy", Args: args(),
		Example: "  govern log activations\n  govern log activations --last 1 --format json"}
	paging := pagingFlags(cmd, "the latest last")
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		return writeLog(a, cmd, s, paging, "", "", a.list(f, "TIME", "VERSION", "BY", "POLICY", "CONFIG"),
			dispatch.KindActivation, activations, rows[journal.Activation, dispatch.Place]{
				name: func(x journal.Activation) dispatch.Place { return x.Place },
				show: func(x journal.Activation, cursor string) (any, []string, error) {
					const start = 12 // programs get the whole of a digest
					return activationView{x, cursor}, []string{x.Time, x.PolicyVersion, x.By, shorten(x.Policy, start), shorten(x.Config, start)}, nil
				},
				empty: "nothing was decided yet",
			})
	})
	return cmd
}

// activations says all of what it reads by itself.
func activations(_ context.Context, _ journal.Source, entries iter.Seq2[dispatch.Entry, error]) iter.Seq2[journal.Activation, error] {
	return journal.Activations(entries)
}

// activationView is an activation as programs read it.
type activationView struct {
	journal.Activation
	Cursor string `json:"cursor,omitzero"`
}

// writeLog writes a part of a log, which reads entries of one kind. A task that does not exist is an error, not an
// empty list.
func writeLog[Row any](a *app, cmd *cobra.Command, s *system, p *paging, tenant, task string, l *list, kind dispatch.Kind,
	reading func(context.Context, journal.Source, iter.Seq2[dispatch.Entry, error]) iter.Seq2[Row, error], r rows[Row, dispatch.Place]) error {
	words, err := s.filtered(cmd, task, "log", cmd.Name())
	if err != nil {
		return err
	}
	g, err := pageOf[dispatch.Place](p, s, words...)
	if err != nil {
		return err
	}
	r.read = func(span dispatch.Span[dispatch.Place]) iter.Seq2[Row, error] {
		return reading(cmd.Context(), s.store, s.store.EntriesIn(cmd.Context(), tenant, task, kind, span))
	}
	return writePage(a.stderr, l, g, r)
}

// filtered adds a filter by task, if there is one, to the words of a command. The task must exist.
func (s *system) filtered(cmd *cobra.Command, task string, words ...string) ([]string, error) {
	if task == "" {
		return words, nil
	}
	if _, err := s.anyTask(cmd, task); err != nil {
		return nil, err
	}
	return append(words, "--task", task), nil
}

func (a *app) logTrace() *cobra.Command {
	cmd := &cobra.Command{Use: "trace", Short: "One task's story, event by event", Args: args(), Example: "  govern log trace --task labels-1 --format json"}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().String("task", "", "the `ID` of the task (GOVERN_TASK)")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		if _, err := s.anyTask(cmd, s.config.Task); err != nil {
			return err
		}
		l := a.list(f, "E", "KIND", "CALL", "STATUS", "WHAT")
		for e, err := range journal.Trace(s.store.Entries(cmd.Context(), s.principal.Tenant, s.config.Task)) {
			if err != nil {
				return err
			}
			if err := l.add(e, fmt.Sprint(e.E), e.Kind, e.Call, string(e.Status), what(e)); err != nil {
				return err
			}
		}
		return l.end("nothing has happened yet")
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
