package dispatch

import (
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Facts are everything that a decision is made on, gathered by Go from trusted state.
type Facts struct {
	// Now is the store's time of this dispatch.
	Now  time.Time
	Mode Mode
	// Door is the way in, and Attempt counts the decisions that this dispatch needed, from 1.
	Door    string
	Attempt int
	// Step is the number allotted to this dispatch.
	Step int
	State
	Call Call
	// Profile is nil when the task's profile is gone.
	Profile *Profile
	// Tool is nil when no such tool is registered.
	Tool *Definition
	// Definition is the digest of Tool.
	Definition string
	// Outward is a key that nobody has used, for a call of an outside tool that has none of its own.
	Outward string
	// Asked is the canonical form of Input: what the policy was asked, and what is recorded.
	Asked ijson.Raw
	input Input
}

// approval is the approval that counts for this call. One that was withdrawn, or given for another definition
// of the tool, counts as none.
func (f *Facts) approval() *Approval {
	a := f.State.Approval
	if a == nil || a.State == Withdrawn || a.Definition != f.Definition {
		return nil
	}
	return a
}

// outdated is the open approval of this call that was given for another definition of its tool, or nil. It serves
// nothing more: a definition that comes back must not wake it up again.
func (f *Facts) outdated() *Approval {
	if a := f.State.Approval; f.Tool != nil && a.Open() && a.Definition != f.Definition {
		return a
	}
	return nil
}

// waiting counts the calls of the task that wait for a person, beside an outdated one that is about to be withdrawn.
func (f *Facts) waiting() int {
	if a := f.outdated(); a != nil && a.State == Pending {
		return f.Pending - 1
	}
	return f.Pending
}

// crowded says whether as many of the task's calls wait for a person as may.
func (f *Facts) crowded() bool {
	return f.Profile != nil && f.waiting() >= f.Profile.MaxPending
}

// fix settles what the policy is asked, and so what is recorded.
func (f *Facts) fix(door string, attempt int) (err error) {
	f.Door, f.Attempt = door, attempt
	f.input = f.Input()
	f.Asked, err = ijson.Marshal(f.input)
	return err
}

// Input is what a policy sees: its wire form is the contract that docs/policy.md describes field by field.
type Input struct {
	Now  Moment     `json:"now"`
	Mode Mode       `json:"mode"`
	Task InputTask  `json:"task"`
	Call InputCall  `json:"call"`
	Tool *InputTool `json:"tool"`
	// State is trusted state; nothing in it comes from the agent.
	State InputState `json:"state"`
}

// Moment is one point in time, in the two forms that policies want.
type Moment struct {
	RFC3339 string `json:"rfc3339"`
	Epoch   int64  `json:"epoch"`
}

// InputTask is input.task.
type InputTask struct {
	Tenant  string          `json:"tenant"`
	ID      string          `json:"id"`
	Actor   string          `json:"actor"`
	Profile string          `json:"profile"`
	Scopes  map[string]bool `json:"scopes"`
}

// InputCall is input.call: the one place where the agent's bytes appear.
type InputCall struct {
	ID         string      `json:"id"`
	Tool       string      `json:"tool"`
	Arguments  ijson.Raw   `json:"arguments"`
	Target     *string     `json:"target"`
	Keyed      bool        `json:"keyed"`
	Signature  *string     `json:"signature"`
	Malformed  *string     `json:"malformed"`
	Violations []Violation `json:"violations"`
}

// InputTool is input.tool.
type InputTool struct {
	Name     string       `json:"name"`
	Version  string       `json:"version"`
	Effect   ToolEffect   `json:"effect"`
	Outside  bool         `json:"outside"`
	Approval ApprovalRule `json:"approval"`
	Scopes   []string     `json:"scopes"`
	Cost     int64        `json:"cost"`
	Resource string       `json:"resource"`
	Labels   []string     `json:"labels"`
}

// InputState is input.state.
type InputState struct {
	Step         int             `json:"step"`
	MaxSteps     int             `json:"max_steps"`
	Cancelled    bool            `json:"cancelled"`
	Deadline     *Moment         `json:"deadline"`
	Budgets      InputBudgets    `json:"budgets"`
	Approval     *InputApproval  `json:"approval"`
	Operation    *InputOperation `json:"operation"`
	Unsettled    *OperationState `json:"unsettled"`
	WriteStarted bool            `json:"write_started"`
	Pending      InputPending    `json:"pending"`
	TargetExists bool            `json:"target_exists"`
}

// InputApproval is input.state.approval.
type InputApproval struct {
	State         ApprovalState `json:"state"`
	Votes         []Vote        `json:"votes"`
	ExpiresAtStep int           `json:"expires_at_step"`
	ExpiresAt     Moment        `json:"expires_at"`
	PolicyVersion string        `json:"policy_version"`
	Mode          Mode          `json:"mode"`
}

// InputOperation is input.state.operation.
type InputOperation struct {
	State         OperationState `json:"state"`
	SameSignature bool           `json:"same_signature"`
	HasResult     bool           `json:"has_result"`
	Repeatable    bool           `json:"repeatable"`
}

// InputPending is input.state.pending.
type InputPending struct {
	Count int `json:"count"`
	Limit int `json:"limit"`
}

// Input gives the facts the form that the policy sees.
func (f *Facts) Input() Input {
	in := Input{
		Now:  moment(f.Now),
		Mode: f.Mode,
		Task: InputTask{Tenant: f.Task.Tenant, ID: f.Task.ID, Actor: f.Task.Actor, Profile: f.Task.Profile, Scopes: map[string]bool{}},
		Call: InputCall{ID: f.Call.ID, Tool: f.Call.Tool, Arguments: or(f.Call.SealedArguments, f.Call.Arguments), Target: optional(f.Call.Target),
			Keyed: f.Call.Key != "", Signature: optional(f.Call.Signature), Malformed: optional(f.Call.Malformed), Violations: f.Call.Violations},
		State: InputState{
			Step: f.Step, MaxSteps: f.Step, Cancelled: f.Task.Cancelled, TargetExists: f.TargetExists,
			Pending: InputPending{Count: f.waiting()},
		},
	}
	if in.Call.Arguments == nil {
		in.Call.Arguments = ijson.Raw("{}")
	}
	if in.Call.Violations == nil {
		in.Call.Violations = []Violation{}
	}
	// Without its profile a task has no budget that could be spent, and no tool.
	if f.Profile != nil {
		in.State.MaxSteps, in.State.Pending.Limit = f.Profile.MaxSteps, f.Profile.MaxPending
		in.State.Budgets = f.Profile.Budgets.After(f.Task, f.Now)
		for _, s := range f.Profile.Scopes {
			in.Task.Scopes[s] = true
		}
	}
	if f.Tool != nil && f.Profile != nil {
		in.Tool = &InputTool{Name: f.Tool.Name, Version: f.Tool.Version, Effect: f.Tool.Effect, Outside: f.Tool.IsOutside(),
			Approval: f.Tool.Approval, Scopes: append([]string{}, f.Tool.Scopes...), Cost: f.Tool.Cost, Resource: f.Tool.Resource,
			Labels: append([]string{}, f.Tool.Labels...)}
	}
	if !f.Task.Deadline.IsZero() {
		m := moment(f.Task.Deadline)
		in.State.Deadline = &m
	}
	if a := f.approval(); a != nil {
		in.State.Approval = &InputApproval{State: a.State, Votes: append([]Vote{}, a.Votes...), ExpiresAtStep: a.ExpiresAtStep,
			ExpiresAt: moment(a.ExpiresAt), PolicyVersion: a.PolicyVersion, Mode: a.Mode}
	}
	if o := f.Operation; o != nil {
		in.State.Operation = &InputOperation{State: o.StateAt(f.Now), SameSignature: o.Signature == f.Call.Signature, HasResult: len(o.Result) > 0,
			Repeatable: f.repeatable(o)}
	}
	for i := range f.Open {
		f.beside(&in.State, &f.Open[i])
	}
	return in
}

// beside adds what an open operation means for a call that is another's.
func (f *Facts) beside(in *InputState, o *Operation) {
	if f.Operation != nil && o.ID == f.Operation.ID {
		return
	}
	state := o.StateAt(f.Now)
	in.WriteStarted = in.WriteStarted || state == Started
	if f.sameEffect(o) && (in.Unsettled == nil || state == Unknown) {
		in.Unsettled = &state
	}
}

// sameEffect says whether an open operation may have the effect of this call. Which arguments make an effect is said by the
// tool's definition, so under another one nobody can tell.
func (f *Facts) sameEffect(o *Operation) bool {
	return o.Effect == f.Call.Effect || o.Tool == f.Call.Tool && o.Definition != f.Definition
}

// unsettled is the other operation of this very effect whose outcome is not known, or nil.
func (f *Facts) unsettled() *Operation {
	for i := range f.Open {
		if o := &f.Open[i]; f.sameEffect(o) && o.StateAt(f.Now) == Unknown {
			return o
		}
	}
	return nil
}

// StateAt is where an operation stands at a moment: nobody hears any more of a call whose lease has ended.
func (o *Operation) StateAt(now time.Time) OperationState {
	if o.State == Started && now.After(o.Lease) {
		return Unknown
	}
	return o.State
}

// repeatable says whether the tool still remembers the key of an operation of this call, so that calling again is safe.
func (f *Facts) repeatable(o *Operation) bool {
	if f.Tool == nil || f.Tool.Recovery.Retention == 0 || o.Definition != f.Definition {
		return false
	}
	return f.Now.Add(f.Tool.Limits.Time.Duration()).Before(o.Since.Add(f.Tool.Recovery.Retention.Duration()))
}

func moment(t time.Time) Moment {
	return Moment{RFC3339: FormatTime(t), Epoch: t.Unix()}
}

// FormatTime writes a time as RFC 3339 in UTC with milliseconds, the resolution of every stored time.
func FormatTime(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
