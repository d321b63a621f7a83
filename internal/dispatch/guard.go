package dispatch

// check refuses a decision that its own facts forbid. A wrong policy can then allow too much, but never twice,
// never unrecorded, and never what a person had to see.
func (d Decision) check(in Input, version string) error {
	if d.PolicyVersion != version {
		return malformed("the decision carries policy version %q, not %q", d.PolicyVersion, version)
	}
	want, core := effectOf[d.Status]
	if !core {
		want = Deny
	}
	if !core && !statusForm.MatchString(string(d.Status)) {
		return malformed("the status is not lower-case letters, digits and underscores")
	}
	if executionOnly[d.Status] {
		return malformed("a policy cannot give the status %s", d.Status)
	}
	if d.Effect != want {
		return malformed("the status %s goes with the effect %s, not %q", d.Status, want, d.Effect)
	}
	if d.Status == StatusPolicyError && (len(d.Reasons) == 0 || d.Retryable) {
		return malformed("the status policy_error needs a reason, and is not retryable")
	}
	if d.Approval != nil {
		if d.Effect != Allow && d.Effect != RequireApproval && d.Effect != Simulate {
			return malformed("the effect %s takes no approval", d.Effect)
		}
		if err := d.Approval.check(); err != nil {
			return malformed("%v", err)
		}
	}
	if d.Retryable && d.Effect != Deny {
		return malformed("the effect %s is not retryable", d.Effect)
	}
	switch d.Effect {
	case Allow:
		return d.checkAllow(in)
	case Replay:
		if err := in.runnable(); err != nil {
			return err
		}
		if !in.State.Operation.replayable() {
			return malformed("replay needs a committed operation of this very call")
		}
	case Resume:
		return in.resumable()
	case RequireApproval:
		return d.checkAsk(in)
	case Simulate:
		if in.Mode != DryRun {
			return malformed("simulate in the mode %s", in.Mode)
		}
		if err := in.runnable(); err != nil {
			return err
		}
		if err := in.fresh(); err != nil {
			return err
		}
		return in.affordable()
	}
	return nil
}

func (d Decision) checkAsk(in Input) error {
	if d.Approval == nil {
		return malformed("require_approval needs its terms in approval")
	}
	if err := in.runnable(); err != nil {
		return err
	}
	if err := in.fresh(); err != nil {
		return err
	}
	a := in.State.Approval
	switch {
	case a == nil || a.State == Consumed || a.State == Withdrawn:
		if in.State.Pending.Count >= in.State.Pending.Limit {
			return malformed("require_approval over the limit of calls that wait for a person")
		}
	case a.State == Rejected || a.State == Expired || in.lapsed():
		return malformed("require_approval cannot ask again for a call that was rejected or has expired; a person can reopen it")
	}
	return nil
}

func (d Decision) checkAllow(in Input) error {
	if err := in.runnable(); err != nil {
		return err
	}
	if err := in.affordable(); err != nil {
		return err
	}
	if err := in.fresh(); err != nil {
		return err
	}
	if in.Mode == DryRun && (in.Tool.changes() || in.Tool.Outside) {
		return malformed("allow for a write, or for what reaches outside, in a dry run")
	}
	if in.Tool.Effect == Write && in.State.TargetExists {
		return malformed("allow for a target that exists")
	}
	if a := in.State.Approval; a != nil && a.State == Rejected {
		return malformed("allow for a call that a person rejected")
	}
	if d.Approval == nil {
		if in.Tool.Approval == ByRule {
			return nil
		}
		return malformed("allow without the terms of the approval that %s demands", in.Call.Tool)
	}
	a := in.State.Approval
	switch {
	case a == nil || a.State != Approved || a.Mode != in.Mode:
		return malformed("allow without the approval that it demands")
	case in.lapsed():
		return malformed("allow under an approval that has expired")
	case !d.Approval.met(a.Votes, in.Task.Actor):
		return malformed("allow under an approval whose votes do not meet the terms")
	}
	return nil
}

// lapsed says whether the approval, while it is open, is past its last step or its time.
func (in Input) lapsed() bool {
	a := in.State.Approval
	return in.Now.Epoch > a.ExpiresAt.Epoch || a.State == Approved && in.State.Step > a.ExpiresAtStep
}

// runnable says whether there is anything at all that could run or be asked for.
func (in Input) runnable() error {
	switch {
	case in.Mode != Enforce && in.Mode != DryRun:
		return malformed("unknown mode %q", in.Mode)
	case in.State.Cancelled:
		return malformed("the task is cancelled")
	case in.State.Deadline != nil && in.Now.Epoch >= in.State.Deadline.Epoch:
		return malformed("the task's time is up")
	case in.State.Step > in.State.MaxSteps:
		return malformed("the step budget is spent")
	case in.Call.Malformed != nil || in.Tool == nil || len(in.Call.Violations) > 0:
		return malformed("there is no well-formed call of a known tool")
	}
	return nil
}

// fresh says whether the call would be a new effect, and whether no other is in its way.
func (in Input) fresh() error {
	switch o := in.State.Operation; {
	case o != nil && o.State != Absent:
		return malformed("a new effect for an operation that is %s", o.State)
	case in.State.Unsettled != nil:
		return malformed("a new effect while another operation of the same effect is %s", *in.State.Unsettled)
	case in.State.WriteStarted && in.Tool.changes():
		return malformed("a new effect while another write of the task is under way")
	}
	return nil
}

// resumable says whether the call may be made once more, under the key that it had.
func (in Input) resumable() error {
	if err := in.runnable(); err != nil {
		return err
	}
	o := in.State.Operation
	switch {
	case in.Mode != Enforce:
		return malformed("resume in the mode %s", in.Mode)
	case in.Tool.Effect != Write || !in.Tool.Outside:
		return malformed("resume of what is no write outside")
	case o == nil || o.State != Unknown || !o.SameSignature || !o.Repeatable:
		return malformed("resume needs an unknown operation of this very call, which can be repeated")
	case in.State.Unsettled != nil:
		return malformed("resume while another operation of the same effect is %s", *in.State.Unsettled)
	case in.State.WriteStarted:
		return malformed("resume while another write of the task is under way")
	}
	return in.affordable()
}

// changes says whether the tool may change something: it does unless it says that it does not.
func (t *InputTool) changes() bool { return t.Effect != Pure && t.Effect != Read }

func (o *InputOperation) replayable() bool {
	return o != nil && o.State == Committed && o.SameSignature
}
