package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func (a *app) reviewCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "review",
		Short: "See what waits for a person, and approve or reject it",
		Long: `A call that needs a person is stored and does not run. A review approves or rejects exactly that call:
its task, actor, tool and every argument. Approving executes nothing; the call runs when it is proposed again,
once, if the policy still allows it.`,
	})
	cmd.AddCommand(a.reviewList(), a.reviewShow(), a.reviewVote("approve", dispatch.Approved), a.reviewVote("reject", dispatch.Rejected), a.reviewReopen())
	return cmd
}

// approvalView is an approval as people and programs read it.
type approvalView struct {
	ID        string                 `json:"id"`
	Signature string                 `json:"signature"`
	State     dispatch.ApprovalState `json:"state"`
	Task      string                 `json:"task"`
	Actor     string                 `json:"actor"`
	Mode      dispatch.Mode          `json:"mode"`
	Step      int                    `json:"step"`
	// Proposal has seals for what is sensitive. Only govern review show gives the call itself.
	Proposal ijson.Raw `json:"proposal"`
	// Definition is the digest of the tool's definition, as govern tools show prints it.
	Definition    string          `json:"definition"`
	Terms         dispatch.Terms  `json:"terms"`
	Votes         []dispatch.Vote `json:"votes"`
	ExpiresAtStep int             `json:"expires_at_step,omitzero"`
	ExpiresAt     string          `json:"expires_at"`
	PolicyVersion string          `json:"policy_version"`
	// Progress says what a call that waits still needs.
	Progress *dispatch.Progress `json:"progress,omitzero"`
	Cursor   string             `json:"cursor,omitzero"`
}

func viewOf(a dispatch.Approval) approvalView {
	v := approvalView{ID: a.ID, Signature: a.Signature, State: a.State, Task: a.Task.ID, Actor: a.Actor, Mode: a.Mode, Step: a.Step, Proposal: a.Proposal, Definition: a.Definition,
		Terms: a.Terms, Votes: append([]dispatch.Vote{}, a.Votes...), ExpiresAtStep: a.ExpiresAtStep, ExpiresAt: dispatch.FormatTime(a.ExpiresAt), PolicyVersion: a.PolicyVersion}
	if a.State == dispatch.Pending {
		p := a.Progress()
		v.Progress = &p
	}
	return v
}

func (a *app) reviewList() *cobra.Command {
	var task string
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List what waits for a person", Args: args(),
		Example: "  govern review list\n  govern review list --all --task labels-1 --format json",
	}
	paging := pagingFlags(cmd, "what was asked for last at the end")
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&task, "task", "", "only of the task with this `ID`")
	cmd.Flags().BoolVar(&all, "all", false, "also what was decided, used, withdrawn or has expired")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		words, err := s.filtered(cmd, task, "review", "list")
		if err != nil {
			return err
		}
		if all {
			words = append(words, "--all")
		}
		g, err := pageOf[string](paging, s, words...)
		if err != nil {
			return err
		}
		if err := s.dispatcher.Expire(cmd.Context(), s.principal.Tenant); err != nil {
			return err
		}
		return writePage(a.stderr, a.list(f, "ID", "STATE", "TASK", "ACTOR", "STEP", "TOOL", "ARGUMENTS", "VOTES", "UNTIL"), g, rows[dispatch.Approval, string]{
			read: func(span dispatch.Span[string]) iter.Seq2[dispatch.Approval, error] {
				return s.store.ApprovalsIn(cmd.Context(), s.principal.Tenant, task, !all, span)
			},
			name: func(ap dispatch.Approval) string { return ap.ID },
			show: func(ap dispatch.Approval, cursor string) (any, []string, error) {
				v := viewOf(ap)
				v.Cursor = cursor
				arguments, _ := ijson.Lookup(ap.Proposal, "/arguments")
				return v, []string{ap.ID, string(ap.State), ap.Task.ID, ap.Actor, fmt.Sprint(ap.Step), ap.Tool(), shorten(string(arguments), 60), votes(ap), until(ap)}, nil
			},
			empty: "nothing waits for a person",
		})
	})
	return cmd
}

// votes says how far an approval has come: of the stage that waits, if it has stages.
func votes(a dispatch.Approval) string {
	p := a.Progress()
	for _, s := range p.Stages {
		if s.Name == p.Stage {
			return fmt.Sprintf("%s %d of %d", s.Name, s.Votes, s.Needed)
		}
	}
	return fmt.Sprintf("%d of %d", p.Votes, p.Needed)
}

func until(a dispatch.Approval) string {
	if a.State == dispatch.Approved {
		return fmt.Sprintf("step %d", a.ExpiresAtStep)
	}
	return dispatch.FormatTime(a.ExpiresAt)
}

func (a *app) reviewShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show the whole call that an approval covers", Args: args("the ID of an approval"),
		Long: `Shows the exact call, to whoever is to say yes or no to it. This is the one command that shows what a tool's
definition calls sensitive. Once the approval is consumed or withdrawn, that is gone, and seals stand in its place.`,
		Example: "  govern review show ap-0123456789abcdef",
	}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		if err := s.dispatcher.Expire(cmd.Context(), s.principal.Tenant); err != nil {
			return err
		}
		ap, err := s.store.Approval(cmd.Context(), s.principal.Tenant, given[0])
		if err != nil {
			return s.approvalError(cmd, given[0], err)
		}
		call, err := s.dispatcher.CallOf(ap)
		if err != nil {
			return err
		}
		if f.json() {
			v := viewOf(ap)
			v.Proposal = call
			return writeJSON(a.stdout, v)
		}
		return a.showApproval(s, ap)
	})
	return cmd
}

func (a *app) showApproval(s *system, ap dispatch.Approval) error {
	w := a.stdout
	row := func(name, value string) { fmt.Fprintf(w, "%-11s %s\n", name, printable(value)) }
	row("approval", ap.ID)
	row("state", string(ap.State))
	row("task", ap.Task.ID)
	row("actor", ap.Actor)
	if ap.Mode == dispatch.DryRun {
		row("mode", "dry run: approving it lets nothing run outside a dry run")
	}
	row("asked", fmt.Sprintf("at step %d as call %s, under policy %s", ap.Step, ap.CallID(), ap.PolicyVersion))
	row("tool", ap.Tool())
	row("definition", ap.Definition)
	escaped := a.showArguments(ap)
	row("size", fmt.Sprintf("%d bytes", len(ap.Call())))
	if ap.Exact != nil {
		row("sensitive", "some of this is shown here alone; lists and logs have seals in its place")
	}
	if escaped {
		row("warning", "the call has characters that would not show as themselves; they stand above as \\u escapes")
	}
	for _, v := range ap.Votes {
		said := fmt.Sprintf("%s by %s at %s", v.Decision, asWho(v), v.Time)
		if v.Reason != "" {
			said += ": " + v.Reason
		}
		row("vote", said)
	}
	row("needs", needs(ap))
	showStages(row, ap)
	row("until", until(ap))
	row("signature", ap.Signature)
	if ap.State == dispatch.Pending {
		row("may vote", mayVote(ap))
		fmt.Fprintf(w, "\nto approve exactly this:\n  %s\n", s.command("review", "approve", ap.ID, "--signature", ap.Signature))
	}
	return nil
}

// widestLine is where a value is broken. What an agent wrote never begins a line of the screen: it could pass for one
// of ours there.
const widestLine = 68

// showArguments shows every argument whole. Values stay JSON: 84 and "84", a line break and the two characters \n, are
// not the same call. It says whether anything had to be escaped.
func (a *app) showArguments(ap dispatch.Approval) (escaped bool) {
	arguments, _ := ijson.Lookup(ap.Call(), "/arguments")
	members, _ := ijson.Members(arguments)
	for _, m := range members {
		text := visible(m.Name, jsonEscape) + ": " + visible(string(m.Value), jsonEscape)
		escaped = escaped || text != m.Name+": "+string(m.Value)
		prefix := "  "
		for line := range slices.Chunk([]rune(text), widestLine) {
			fmt.Fprintln(a.stdout, prefix+string(line))
			prefix = "  | "
		}
	}
	return escaped
}

func needs(a dispatch.Approval) string {
	said := plural(a.Progress().Needed, "approver")
	if len(a.Terms.Roles) > 0 {
		said += ", each with the role " + strings.Join(a.Terms.Roles, " or ")
	}
	if a.Terms.DistinctFromActor {
		said += ", not the actor"
	}
	if a.Terms.ReasonRequired {
		said += ", each with a reason"
	}
	return said
}

func showStages(row func(name, value string), ap dispatch.Approval) {
	p := ap.Progress()
	for _, s := range p.Stages {
		said := fmt.Sprintf("%s: %d of %d", s.Name, s.Votes, s.Needed)
		if len(s.Roles) > 0 {
			said += ", with the role " + strings.Join(s.Roles, " or ")
		}
		if s.Name == p.Stage {
			said += " (waits now)"
		}
		row("stage", said)
	}
}

// asWho is a reviewer with what the vote was given as.
func asWho(v dispatch.Vote) string {
	who := v.Reviewer
	if len(v.Roles) > 0 {
		who += " (" + strings.Join(v.Roles, ", ") + ")"
	}
	if v.Stage != "" {
		who += ", stage " + v.Stage + ","
	}
	return who
}

// mayVote says whose approval would count now. Rejecting takes no role.
func mayVote(a dispatch.Approval) string {
	p := a.Progress()
	if p.Complete() {
		return "the votes meet the terms as they are now: whoever voted approves once more, and that completes it"
	}
	var roles []string
	if len(p.Roles) > 0 {
		roles = append(roles, strings.Join(p.Roles, " or "))
	}
	for _, s := range p.Stages {
		if s.Name == p.Stage && len(s.Roles) > 0 {
			roles = append(roles, strings.Join(s.Roles, " or "))
		}
	}
	said := "any reviewer"
	if len(roles) > 0 {
		said = "who has the role " + strings.Join(roles, ", and also ")
	}
	var except []string
	if a.Terms.DistinctFromActor {
		except = append(except, a.Actor)
	}
	except = append(except, a.Counted()...)
	if len(except) > 0 {
		said += "; not " + strings.Join(except, ", ")
	}
	if len(except)+len(roles) > 0 {
		said += "; any reviewer may reject"
	}
	return said
}

func (a *app) reviewVote(verb string, decision dispatch.ApprovalState) *cobra.Command {
	var signature, proposal, reason string
	var lifetime int
	var dryRun bool
	cmd := &cobra.Command{
		Use:   verb + " [ID --signature SIGNATURE | --proposal FILE]",
		Short: map[string]string{"approve": "Approve exactly one pending call", "reject": "Reject exactly one pending call"}[verb],
		Long: `Name the call by the ID of its approval together with the signature that govern review show printed, or by
the exact proposal in a file. The reviewer is the operating system's user, with the roles that the configuration's
reviewers give that name.`,
		Example: fmt.Sprintf("  govern review %s ap-0123456789abcdef --signature 9c41…\n  govern review %s --proposal call.json", verb, verb),
		Args:    atMostOne,
	}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&signature, "signature", "", "the `SIGNATURE` shown with the approval")
	cmd.Flags().StringVar(&proposal, "proposal", "", "the exact proposal, in a `FILE` or - for standard input")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "with --proposal: the approval that was asked for in a dry run")
	if decision == dispatch.Approved {
		cmd.Flags().Var((*count)(&lifetime), "lifetime", fmt.Sprintf("for how many `STEPS` it can be used, 1 to %d (default %d)", dispatch.MaxLifetime, dispatch.DefaultLifetime))
	}
	taskFlags(cmd)
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		who := operator()
		r := dispatch.Review{Reviewer: who, Roles: s.config.Reviewers[who].Roles, Decision: string(decision), Reason: reason}
		if cmd.Flags().Changed("lifetime") {
			r.Lifetime = &lifetime
		}
		return a.onApproval(cmd, s, given, signature, proposal, f, onApproval{
			byID: func(id string) (dispatch.Approval, error) {
				return s.dispatcher.Review(cmd.Context(), s.principal.Tenant, id, signature, r)
			},
			byProposal: func(b []byte) (dispatch.Approval, error) {
				return s.dispatcher.ReviewCall(cmd.Context(), s.principal, s.config.Task, s.mode(dryRun), b, r)
			},
		})
	})
	return cmd
}

func (a *app) reviewReopen() *cobra.Command {
	var signature, proposal, reason string
	var dryRun bool
	cmd := &cobra.Command{
		Use:     "reopen [ID --signature SIGNATURE | --proposal FILE]",
		Short:   "Let people vote again on a rejected or expired call",
		Example: "  govern review reopen ap-0123456789abcdef --signature 9c41…",
		Args:    atMostOne,
	}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&signature, "signature", "", "the `SIGNATURE` shown with the approval")
	cmd.Flags().StringVar(&proposal, "proposal", "", "the exact proposal, in a `FILE` or - for standard input")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "with --proposal: the approval that was asked for in a dry run")
	taskFlags(cmd)
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		return a.onApproval(cmd, s, given, signature, proposal, f, onApproval{
			byID: func(id string) (dispatch.Approval, error) {
				return s.dispatcher.Reopen(cmd.Context(), s.principal.Tenant, id, signature, operator(), reason)
			},
			byProposal: func(b []byte) (dispatch.Approval, error) {
				return s.dispatcher.ReopenCall(cmd.Context(), s.principal, s.config.Task, s.mode(dryRun), b, operator(), reason)
			},
		})
	})
	return cmd
}

// onApproval is the two ways of naming one approval.
type onApproval struct {
	byID       func(id string) (dispatch.Approval, error)
	byProposal func(proposal []byte) (dispatch.Approval, error)
}

func (a *app) onApproval(cmd *cobra.Command, s *system, given []string, signature, proposal string, f *format, do onApproval) error {
	if err := s.dispatcher.Expire(cmd.Context(), s.principal.Tenant); err != nil {
		return err
	}
	var ap dispatch.Approval
	var err error
	switch {
	case len(given) == 1 && proposal != "":
		return misuse(fmt.Errorf("%s takes the ID of an approval or --proposal, and not both", cmd.CommandPath())).hint("usage: " + cmd.UseLine())
	case len(given) == 0 && proposal == "":
		return misuse(fmt.Errorf("%s needs the ID of an approval, or --proposal", cmd.CommandPath())).hint("govern review list shows what waits")
	case proposal != "" && signature != "":
		return misuse(fmt.Errorf("%s takes --signature beside an ID, and not beside --proposal", cmd.CommandPath())).
			hint("the proposal itself says exactly which call is meant")
	case proposal == "" && (cmd.Flags().Changed("task") || cmd.Flags().Changed("actor") || cmd.Flags().Changed("dry-run")):
		return misuse(fmt.Errorf("%s takes --task, --actor and --dry-run beside --proposal, and not beside an ID", cmd.CommandPath())).
			hint("an approval's ID says which task, actor and mode it is for")
	case proposal != "":
		in, err := a.open(cmd.Context(), proposal)
		if err != nil {
			return err
		}
		defer in.Close()
		const remedy = "name a file that holds exactly the proposal that waits"
		most := s.snapshot.Limits.Bytes
		b, err := readAtMost(cmd.Context(), in, most)
		if err != nil {
			return err
		}
		if len(b) > most {
			return misuse(fmt.Errorf("%s: longer than %d bytes, and so no proposal", proposal, most)).hint(remedy)
		}
		ap, err = do.byProposal(b)
		switch {
		case errors.Is(err, dispatch.ErrUnknownTask):
			return s.unknownTask(cmd.Context(), s.config.Task)
		case errors.Is(err, dispatch.ErrNoProposal):
			return misuse(fmt.Errorf("%s: %w", proposal, err)).hint(remedy)
		case err != nil:
			return err
		}
	case signature == "":
		return misuse(fmt.Errorf("%s needs --signature beside the ID", cmd.CommandPath())).
			hint("look at the whole call first: govern review show " + given[0] + " prints its signature")
	default:
		if ap, err = do.byID(given[0]); err != nil {
			return s.approvalError(cmd, given[0], err)
		}
	}
	if f.json() {
		return writeJSON(a.stdout, viewOf(ap))
	}
	fmt.Fprintf(a.stdout, "%s is %s\n", ap.ID, ap.State)
	if ap.State == dispatch.Approved {
		a.sayUse(cmd.Context(), s, ap)
	}
	return nil
}

// sayUse tells how an approval is used, if its task has a step left for that.
func (a *app) sayUse(ctx context.Context, s *system, ap dispatch.Approval) {
	t, err := s.store.Task(ctx, ap.Task)
	if err != nil {
		return // it is approved all the same
	}
	last := ap.ExpiresAtStep
	if p, ok := s.config.Profiles[t.Profile]; ok {
		if t.Steps >= p.MaxSteps {
			fmt.Fprintf(a.stdout, "it cannot be used: task %s has used up its steps; the call must be proposed and approved in another task\n", t.ID)
			return
		}
		last = min(last, p.MaxSteps)
	}
	fmt.Fprintf(a.stdout, "it can be used once, up to step %d of task %s:\n  %s\n", last, t.ID,
		s.command(s.forMode(ap, s.forTask(t.ID, ap.Actor, "run", "--approved")...)...))
}

// approvalError names an approval that does not exist, and the nearest that does.
func (s *system) approvalError(cmd *cobra.Command, id string, err error) error {
	if !errors.Is(err, dispatch.ErrUnknownApproval) {
		return err
	}
	list, listErr := s.store.Approvals(cmd.Context(), s.principal.Tenant, "")
	if listErr != nil {
		return err
	}
	var ids []string
	for _, a := range list {
		ids = append(ids, a.ID)
	}
	return misuse(fmt.Errorf("there is no approval %q", id)).near(id, ids, "govern review list --all shows what there is")
}
