package main

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/failpoint"
)

// withState makes a command that works on the state that is there.
func (a *app) withState(do func(*cobra.Command, *system, []string) error) func(*cobra.Command, []string) error {
	return a.onState(true, do)
}

// withNewState makes a command that can be the first to work on a state.
func (a *app) withNewState(do func(*cobra.Command, *system, []string) error) func(*cobra.Command, []string) error {
	return a.onState(false, do)
}

func (a *app) onState(mustExist bool, do func(*cobra.Command, *system, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, given []string) (err error) {
		s, err := a.start(cmd, mustExist)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		return do(cmd, s, given)
	}
}

func (a *app) taskCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "task", Short: "List, show and make tasks",
		Long: `A task is one piece of delegated work: an actor, a profile that says what it may do, and a budget of steps
that every judged proposal spends. A profile can also bound what runs take. A spent or cancelled task never comes back;
make another.`,
	})
	cmd.AddCommand(a.taskList(), a.taskShow(), a.taskCreate())
	return cmd
}

// taskView is a task as people and programs read it.
type taskView struct {
	Task     string `json:"task"`
	Profile  string `json:"profile"`
	Actor    string `json:"actor"`
	State    string `json:"state"`
	Steps    int    `json:"steps"`
	MaxSteps int    `json:"max_steps"`
	// Budgets are those that the profile states.
	Budgets  dispatch.InputBudgets `json:"budgets,omitzero"`
	Deadline string                `json:"deadline,omitzero"`
	Pending  int                   `json:"pending"`
	// Started and Unknown count the operations that are under way, and those of which nobody knows what became of them.
	Started   int    `json:"started,omitzero"`
	Unknown   int    `json:"unknown,omitzero"`
	UpdatedAt string `json:"updated_at"`
	Cursor    string `json:"cursor,omitzero"`
}

func (s *system) taskView(state dispatch.State) taskView {
	t := state.Task
	v := taskView{Task: t.ID, Profile: t.Profile, Actor: t.Actor, State: "active", Steps: t.Steps,
		MaxSteps: s.config.Profiles[t.Profile].MaxSteps, Budgets: s.budgets(t), Pending: state.Pending, UpdatedAt: dispatch.FormatTime(t.Updated)}
	for _, o := range state.Open {
		if o.StateAt(failpoint.Now()) == dispatch.Started {
			v.Started++
		} else {
			v.Unknown++
		}
	}
	if !t.Deadline.IsZero() {
		v.Deadline = dispatch.FormatTime(t.Deadline)
	}
	switch {
	case t.Cancelled:
		v.State = "cancelled"
	case !t.Deadline.IsZero() && !time.Now().Before(t.Deadline):
		v.State = "out of time"
	case t.Steps >= v.MaxSteps:
		v.State = "spent"
	}
	return v
}

// operations says how many of the task's operations are open.
func (v taskView) operations() []string {
	var said []string
	if v.Started > 0 {
		said = append(said, fmt.Sprintf("%d under way", v.Started))
	}
	if v.Unknown > 0 {
		said = append(said, fmt.Sprintf("%d of unknown outcome", v.Unknown))
	}
	return said
}

// budgets are those of a task's profile, with what the task has spent of each.
func (s *system) budgets(t dispatch.Task) dispatch.InputBudgets {
	return dispatch.Budgets(s.config.Profiles[t.Profile].Budgets).After(t, failpoint.Now())
}

// budgetRows names each stated budget and says what is spent of it.
func budgetRows(b dispatch.InputBudgets) [][2]string {
	var rows [][2]string
	for _, row := range []struct {
		name string
		*dispatch.InputBudget
	}{{"cost", b.Cost}, {"attempts", b.Attempts}, {"output", b.Output}} {
		if row.InputBudget != nil {
			said := fmt.Sprintf("%d of %d", row.Spent, row.Limit)
			if row.Reserved > 0 {
				said += fmt.Sprintf(", %d reserved", row.Reserved)
			}
			rows = append(rows, [2]string{row.name, said})
		}
	}
	return rows
}

func (a *app) taskList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tasks that exist", Args: args(), Example: "  govern task list"}
	paging := pagingFlags(cmd, "by their names")
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		g, err := pageOf[string](paging, s, "task", "list")
		if err != nil {
			return err
		}
		if err := s.dispatcher.Expire(cmd.Context(), s.principal.Tenant); err != nil {
			return err
		}
		return writePage(a.stderr, a.list(f, "TASK", "PROFILE", "ACTOR", "STATE", "STEPS", "PENDING"), g, rows[dispatch.Task, string]{
			read: func(span dispatch.Span[string]) iter.Seq2[dispatch.Task, error] {
				return s.store.TasksIn(cmd.Context(), s.principal.Tenant, span)
			},
			name: func(t dispatch.Task) string { return t.ID },
			show: func(t dispatch.Task, cursor string) (any, []string, error) {
				state, err := s.store.Load(cmd.Context(), t.TaskKey, dispatch.Lookup{})
				if err != nil {
					return nil, nil, err
				}
				v := s.taskView(state)
				v.Cursor = cursor
				steps := fmt.Sprintf("%d of %d", v.Steps, v.MaxSteps)
				for _, row := range budgetRows(v.Budgets) {
					steps += ", " + row[0] + " " + row[1]
				}
				return v, []string{v.Task, v.Profile, v.Actor, strings.Join(append([]string{v.State}, v.operations()...), ", "), steps, fmt.Sprint(v.Pending)}, nil
			},
			empty: "no tasks yet; configured ones are made at their first use, others with govern task create",
		})
	})
	return cmd
}

func (a *app) taskShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show ID", Short: "Show one task", Args: args("the ID of a task"), Example: "  govern task show labels-1"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		t, err := s.anyTask(cmd, given[0])
		if err != nil {
			return err
		}
		state, err := s.store.Load(cmd.Context(), t.TaskKey, dispatch.Lookup{})
		if err != nil {
			return err
		}
		v := s.taskView(state)
		if f.json() {
			return writeJSON(a.stdout, v)
		}
		rows := [][2]string{{"task", v.Task}, {"profile", v.Profile}, {"actor", v.Actor}, {"state", v.State},
			{"steps", fmt.Sprintf("%d of %d", v.Steps, v.MaxSteps)}}
		rows = append(rows, budgetRows(v.Budgets)...)
		rows = append(rows, [2]string{"pending", fmt.Sprint(v.Pending)}, [2]string{"calls", strings.Join(v.operations(), ", ")}, [2]string{"deadline", v.Deadline}, [2]string{"updated", v.UpdatedAt})
		for _, row := range rows {
			if row[1] != "" {
				fmt.Fprintf(a.stdout, "%-9s %s\n", row[0], printable(row[1]))
			}
		}
		return nil
	})
	return cmd
}

// anyTask finds a task, whoever's it is: the command line is the operator's.
func (s *system) anyTask(cmd *cobra.Command, id string) (dispatch.Task, error) {
	t, err := s.store.Task(cmd.Context(), dispatch.TaskKey{Tenant: s.principal.Tenant, ID: id})
	if !errors.Is(err, dispatch.ErrUnknownTask) {
		return t, err
	}
	tasks, listErr := s.store.Tasks(cmd.Context(), s.principal.Tenant)
	if listErr != nil {
		return t, err
	}
	var names []string
	for _, t := range tasks {
		names = append(names, t.ID)
	}
	return t, misuse(fmt.Errorf("there is no task %q", id)).near(id, names, "govern task list shows what there is; a configured task is made at its first use")
}

// writeTask writes a task as JSON, as it is after a change.
func (a *app) writeTask(cmd *cobra.Command, s *system, key dispatch.TaskKey) error {
	state, err := s.store.Load(cmd.Context(), key, dispatch.Lookup{})
	if err != nil {
		return err
	}
	return writeJSON(a.stdout, s.taskView(state))
}

func (a *app) taskCreate() *cobra.Command {
	var profile, actor, deadline string
	cmd := &cobra.Command{
		Use: "create ID", Short: "Make a task", Args: args("an ID for the task"),
		Long: `Make a task with a fresh budget of steps. It changes no policy: a profile of the configuration says what it
may do.`,
		Example: "  govern task create labels-2\n  govern task create count-7 --profile warehouse --actor maya --deadline 8h",
	}
	cmd.Flags().StringVar(&profile, "profile", "", "the `NAME` of a configured profile (default: that of the task in use, or the only one)")
	cmd.Flags().StringVar(&actor, "actor", "", "on behalf of this `NAME` (default: the configuration's actor)")
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&deadline, "deadline", "", "when its time is up: RFC 3339, or a `DURATION` from now such as 8h")
	cmd.RunE = a.withNewState(func(cmd *cobra.Command, s *system, given []string) error {
		t := dispatch.Task{TaskKey: dispatch.TaskKey{Tenant: s.principal.Tenant, ID: given[0]}, Profile: profile, Actor: s.principal.Actor}
		names := slices.Sorted(maps.Keys(s.config.Profiles))
		if t.Profile == "" {
			t.Profile = s.defaultProfile()
		}
		if t.Profile == "" {
			return misuse(errors.New("the task needs --profile")).hint(fmt.Sprintf("there is %q", names))
		}
		if !slices.Contains(names, t.Profile) {
			return misuse(fmt.Errorf("there is no profile %q", t.Profile)).near(t.Profile, names, fmt.Sprintf("there is %q", names))
		}
		if deadline != "" {
			var err error
			if t.Deadline, err = parseDeadline(deadline, time.Now()); err != nil {
				return err
			}
		}
		if err := s.dispatcher.CreateTask(cmd.Context(), t, operator()); err != nil {
			if errors.Is(err, dispatch.ErrTaskExists) {
				return &failure{code: exitDenied, err: fmt.Errorf("there is a task %q already", t.ID), fix: "choose another name; govern task list shows what there is"}
			}
			return err
		}
		if f.json() {
			return a.writeTask(cmd, s, t.TaskKey)
		}
		fmt.Fprintf(a.stdout, "made task %s for %s with profile %s: %s\n", t.ID, t.Actor, t.Profile, plural(s.config.Profiles[t.Profile].MaxSteps, "step"))
		return nil
	})
	return cmd
}

func parseDeadline(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(d).UTC().Truncate(time.Millisecond), nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil && t.After(now) && t.UTC().Year() <= 9999 {
		return t.UTC().Truncate(time.Millisecond), nil
	}
	return time.Time{}, misuse(fmt.Errorf("--deadline is %q", s)).hint("give a moment that is still to come, such as 2030-01-31T17:00:00Z, or a duration from now with its unit, such as 8h")
}

func (a *app) cancelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "End a task for good", Args: args("the ID of a task"),
		Long: `End a task: nothing of it is judged or replayed any more, and what waited or was approved is withdrawn.
What has taken place stays.`,
		Example: "  govern cancel labels-1",
	}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		key := dispatch.TaskKey{Tenant: s.principal.Tenant, ID: given[0]}
		_, err := s.store.Task(cmd.Context(), key)
		if configured, ok := s.config.Tasks[key.ID]; ok && errors.Is(err, dispatch.ErrUnknownTask) {
			// A configured task can be cancelled before its first use.
			err := s.dispatcher.EnsureTask(cmd.Context(), dispatch.Task{TaskKey: key, Profile: configured.Profile, Actor: configured.Actor}, operator())
			if err != nil {
				return err
			}
		}
		t, err := s.anyTask(cmd, key.ID)
		if err != nil {
			return err
		}
		if err := s.dispatcher.Cancel(cmd.Context(), key, operator()); err != nil {
			return err
		}
		if f.json() {
			return a.writeTask(cmd, s, key)
		}
		if t.Cancelled {
			fmt.Fprintf(a.stdout, "task %s was cancelled already\n", t.ID)
			return nil
		}
		fmt.Fprintf(a.stdout, "task %s is cancelled; what it has done stays\n", t.ID)
		return nil
	})
	return cmd
}
