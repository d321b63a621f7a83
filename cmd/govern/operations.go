package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/failpoint"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func (a *app) operationsCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "operations", Short: "List, show and settle operations",
		Long: `An operation is one intended effect, under the key that names it across attempts. That of a call to a tool outside of
govern is on record as started before the first byte is sent. If nobody then hears what came of it, because an answer was lost
or the process died, its outcome is unknown, and nothing is sent again unless the tool remembers the key of the call.

An unknown outcome is settled by asking the tool, where its definition says how (govern operations lookup; a call that meets
one does it by itself), or by an operator who has found out (govern operations resolve). Neither executes anything.`,
	})
	cmd.AddCommand(a.operationsList(), a.operationsShow(), a.operationsLookup(), a.operationsResolve())
	return cmd
}

// operationView is an operation as people and programs read it.
type operationView struct {
	Operation string                  `json:"operation"`
	State     dispatch.OperationState `json:"state"`
	Task      string                  `json:"task"`
	Actor     string                  `json:"actor"`
	Tool      string                  `json:"tool"`
	Target    string                  `json:"target,omitzero"`
	Key       string                  `json:"key,omitzero"`
	// Step is the dispatch that called last, and Run counts the calls.
	Step      int    `json:"step"`
	Run       int    `json:"run"`
	Signature string `json:"signature"`
	// Outward is the key by which the tool knows it.
	Outward       string `json:"outward,omitzero"`
	Since         string `json:"since,omitzero"`
	Lease         string `json:"lease,omitzero"`
	Lookups       int    `json:"lookups,omitzero"`
	Approval      string `json:"approval,omitzero"`
	PolicyVersion string `json:"policy_version,omitzero"`
	// Call and Result have seals for what is sensitive.
	Call        ijson.Raw `json:"call,omitzero"`
	Result      ijson.Raw `json:"result,omitzero"`
	ResultKnown *bool     `json:"result_known,omitzero"`
}

func operationOf(o dispatch.Operation, now time.Time) operationView {
	v := operationView{Operation: o.ID, State: o.StateAt(now), Task: o.Task.ID, Actor: o.Actor, Tool: o.Tool, Target: o.Target, Key: o.Key, Step: o.Step,
		Run: o.Run, Signature: o.Signature, Outward: o.Outward, Lookups: o.Lookups, Approval: o.Approval, PolicyVersion: o.PolicyVersion,
		Call: o.Proposal, Result: o.Result}
	if !o.Since.IsZero() {
		v.Since, v.Lease = dispatch.FormatTime(o.Since), dispatch.FormatTime(o.Lease)
	}
	if v.State == dispatch.Committed && o.Result == nil {
		v.ResultKnown = new(bool)
	}
	return v
}

func (a *app) operationsList() *cobra.Command {
	var task string
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List operations that are under way or whose outcome is unknown", Args: args(),
		Example: "  govern operations list\n  govern operations list --all --task labels-1 --format json",
	}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&task, "task", "", "only of the task with this `ID`")
	cmd.Flags().BoolVar(&all, "all", false, "also those that took place, and those of which nothing did")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		if _, err := s.filtered(cmd, task, "operations", "list"); err != nil {
			return err
		}
		states := []dispatch.OperationState{dispatch.Started, dispatch.Unknown}
		empty := "no operation is under way, and no outcome is unknown"
		if all {
			states, empty = nil, "no operations yet"
		}
		found, err := s.store.Operations(cmd.Context(), s.principal.Tenant, task, states...)
		if err != nil {
			return err
		}
		l := a.list(f, "OPERATION", "STATE", "TASK", "STEP", "TOOL", "TARGET", "KEY", "SINCE")
		for _, o := range found {
			v := operationOf(o, failpoint.Now())
			if err := l.add(v, v.Operation, string(v.State), v.Task, fmt.Sprint(v.Step), v.Tool, v.Target, shorten(v.Key, 60), v.Since); err != nil {
				return err
			}
		}
		return l.end(empty)
	})
	return cmd
}

func (a *app) operationsShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show ID", Short: "Show one operation, and what is on record of it", Args: args("the ID of an operation"),
		Example: "  govern operations show op-0123456789abcdef"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		o, err := s.operation(cmd, given[0])
		if err != nil {
			return err
		}
		return a.showOperation(cmd, s, f, o)
	})
	return cmd
}

// operation finds one by its id.
func (s *system) operation(cmd *cobra.Command, id string) (dispatch.Operation, error) {
	o, err := s.store.Operation(cmd.Context(), s.principal.Tenant, id)
	if !errors.Is(err, dispatch.ErrUnknownOperation) {
		return o, err
	}
	all, listErr := s.store.Operations(cmd.Context(), s.principal.Tenant, "", dispatch.Started, dispatch.Unknown)
	if listErr != nil {
		return o, err
	}
	var ids []string
	for _, o := range all {
		ids = append(ids, o.ID)
	}
	return o, misuse(fmt.Errorf("there is no operation %q", id)).near(id, ids, "govern operations list --all shows what there is")
}

func (a *app) showOperation(cmd *cobra.Command, s *system, f *format, o dispatch.Operation) error {
	v := operationOf(o, failpoint.Now())
	if f.json() {
		return writeJSON(a.stdout, v)
	}
	calls := "once"
	if v.Run > 1 {
		calls = fmt.Sprintf("%d times", v.Run)
	}
	result := string(v.Result)
	if v.ResultKnown != nil {
		result = "not known"
	}
	for _, row := range [][2]string{{"operation", v.Operation}, {"state", string(v.State)}, {"task", v.Task}, {"actor", v.Actor}, {"tool", v.Tool},
		{"target", v.Target}, {"key", v.Key}, {"called", fmt.Sprintf("%s, last at step %d", calls, v.Step)}, {"since", v.Since}, {"lease", v.Lease},
		{"outward", v.Outward}, {"approval", v.Approval}, {"signature", v.Signature}, {"policy", v.PolicyVersion}, {"call", string(v.Call)}, {"result", result}} {
		if row[1] != "" {
			fmt.Fprintf(a.stdout, "%-9s %s\n", row[0], printable(row[1]))
		}
	}
	if err := a.showHistory(cmd, s, o); err != nil {
		return err
	}
	if v.State == dispatch.Unknown {
		fmt.Fprintf(a.stdout, "\nNobody knows whether it took place. Ask the tool's own records, by the outward key if they have it; then say what is so:\n  %s\n  %s\n",
			s.command("operations", "resolve", o.ID, "--committed", "--reason", "TEXT"), s.command("operations", "resolve", o.ID, "--absent", "--reason", "TEXT"))
	}
	return nil
}

// showHistory tells what the record has of an operation, in its order.
func (a *app) showHistory(cmd *cobra.Command, s *system, o dispatch.Operation) error {
	for e, err := range s.store.Entries(cmd.Context(), o.Task.Tenant, o.Task.ID) {
		if err != nil {
			return err
		}
		line, err := toldOf(o.ID, e)
		if err != nil {
			return err
		}
		if line != "" {
			fmt.Fprintln(a.stdout, printable(line))
		}
	}
	return nil
}

// toldOf is what an entry says of an operation; nothing if it is about another thing.
func toldOf(id string, e dispatch.Entry) (string, error) {
	switch e.Kind {
	case dispatch.KindDecision:
		var d dispatch.DecisionEntry
		if err := ijson.Unmarshal(e.Body, &d); err != nil || d.Started == nil || d.Started.Operation != id {
			return "", err
		}
		return fmt.Sprintf("%s  started at step %d, to end by %s", d.Time, d.Step, d.Started.Deadline), nil
	case dispatch.KindOutcome:
		var d dispatch.OutcomeEntry
		if err := ijson.Unmarshal(e.Body, &d); err != nil || d.Operation != id {
			return "", err
		}
		said := []string{fmt.Sprintf("%s  outcome of step %d: %s, %s", d.Time, d.Dispatch, d.Status, d.State)}
		if d.Late {
			said = append(said, "too late: it had been settled or called anew")
		}
		for _, reason := range d.Reasons {
			said = append(said, reason.Message)
		}
		return strings.TrimSpace(strings.Join(append(said, d.Detail), "  ")), nil
	case dispatch.KindSettlement:
		var d dispatch.SettlementEntry
		if err := ijson.Unmarshal(e.Body, &d); err != nil || d.Operation != id {
			return "", err
		}
		return strings.TrimSpace(fmt.Sprintf("%s  found %s by %s  %s  %s", d.Time, d.State, cmp.Or(d.By, "the tool's look-up"), d.Reason, d.Detail)), nil
	}
	return "", nil
}

func (a *app) operationsLookup() *cobra.Command {
	cmd := &cobra.Command{Use: "lookup ID", Short: "Ask the tool what became of an operation", Args: args("the ID of an operation"),
		Long: `Ask the tool of an operation whose outcome is unknown what became of it, in the way that its definition states. The answer
goes on record, also if it is none. Nothing is called again.`,
		Example: "  govern operations lookup op-0123456789abcdef"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		if _, err := s.operation(cmd, given[0]); err != nil {
			return err
		}
		if _, err := s.config.Secrets(); err != nil {
			return misuse(err)
		}
		o, err := s.dispatcher.LookUp(cmd.Context(), s.principal.Tenant, given[0])
		if err != nil {
			return err
		}
		if err := a.showOperation(cmd, s, f, o); err != nil {
			return err
		}
		if o.StateAt(failpoint.Now()) == dispatch.Unknown {
			return quietError(exitUnknown)
		}
		return nil
	})
	return cmd
}

func (a *app) operationsResolve() *cobra.Command {
	var committed, absent bool
	var result, reason string
	cmd := &cobra.Command{Use: "resolve ID", Short: "Say what became of an operation", Args: args("the ID of an operation"),
		Long: `Put on record, with a reason, what became of an operation whose outcome is unknown. Nothing is executed.

--committed says that it took place: the same call is answered from the record from then on, with the result if one is given.
--absent says that nothing took place and that nothing will: the key is free, and the same call asks anew. It can be said only
once the call's lease and the tool's settle time are over. If you are wrong, the effect can come about twice.`,
		Example: "  govern operations resolve op-0123456789abcdef --absent --reason 'not in the ledger of 2 May'\n" +
			"  govern operations resolve op-0123456789abcdef --committed --result '{\"id\":\"p-7\"}' --reason 'found in the ledger'"}
	cmd.Flags().BoolVar(&committed, "committed", false, "it took place")
	cmd.Flags().BoolVar(&absent, "absent", false, "nothing took place")
	cmd.Flags().StringVar(&result, "result", "", "what the call gave, as the tool says it: `JSON`, or @FILE with JSON in it")
	cmd.Flags().StringVar(&reason, "reason", "", "how you know: `TEXT` for the record")
	f := formatFlag(cmd, "text", "json")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case committed == absent:
			return misuse(errors.New("give --committed or --absent, and not both"))
		case absent && cmd.Flags().Changed("result"):
			return misuse(errors.New("--result goes with --committed: what did not take place gave nothing"))
		case strings.TrimSpace(reason) == "":
			return misuse(errors.New("the resolution needs --reason")).hint("say how you know: it stays on record")
		}
		return nil
	}
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		r := dispatch.Resolution{State: dispatch.Absent, Reason: reason, By: operator()}
		if committed {
			r.State = dispatch.Committed
		}
		if cmd.Flags().Changed("result") {
			var err error
			if r.Result, err = readResult(cmd.Context(), result); err != nil {
				return err
			}
		}
		if _, err := s.operation(cmd, given[0]); err != nil {
			return err
		}
		o, err := s.dispatcher.Resolve(cmd.Context(), s.principal.Tenant, given[0], r)
		if err != nil {
			return err
		}
		if f.json() {
			return writeJSON(a.stdout, operationOf(o, failpoint.Now()))
		}
		fmt.Fprintf(a.stdout, "operation %s is on record as %s\n", o.ID, o.State)
		return nil
	})
	return cmd
}

// readResult reads the flag's JSON, or the file that it names.
func readResult(ctx context.Context, flag string) (ijson.Raw, error) {
	text := []byte(flag)
	if file, ok := strings.CutPrefix(flag, "@"); ok {
		f, err := os.Open(file)
		if err != nil {
			return nil, fileError(file, err)
		}
		defer f.Close()
		if text, err = readAtMost(ctx, f, ijson.DefaultLimits.Bytes); err != nil {
			return nil, fileError(file, err)
		}
	}
	canonical, err := ijson.Canonical(text, ijson.DefaultLimits)
	if err != nil {
		return nil, misuse(fmt.Errorf("--result is not I-JSON: %w", err)).hint("give JSON, such as '{\"id\":\"p-7\"}', or @FILE")
	}
	return slices.Clip(canonical), nil
}
