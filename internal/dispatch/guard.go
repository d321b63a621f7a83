package dispatch

// check refuses a decision that its own facts forbid. A wrong policy can then allow too much, but never twice,
// never unrecorded, and never what a person had to see.
func (d Decision) check(in Input, version string) error {
	if d.PolicyVersion != version {
		return malformed("the decision carries policy version %q, not %q", d.PolicyVersion, version)
	}
	if !statusForm.MatchString(string(d.Status)) {
		return malformed("the status is not lower-case letters, digits and underscores")
	}
	if executionOnly[d.Status] {
		return malformed("a policy cannot give the status %s", d.Status)
	}
	want, core := effectOf[d.Status]
	if !core {
		want = Deny
	}
	if d.Effect != want {
		return malformed("the status %s goes with the effect %s, not %q", d.Status, want, d.Effect)
	}
	if d.Approval != nil {
		if err := d.Approval.check(); err != nil {
			return malformed("%v", err)
		}
	}
	switch d.Effect {
	case Allow:
		return d.checkAllow(in)
	case Replay:
		if err := in.runnable(); err != nil {
			return err
		}
		if !in.State.Operation.replayable() {
			return malformed("replay needs a committed operation of this very call, with its result")
		}
	case RequireApproval:
		if d.Approval == nil {
			return malformed("require_approval needs its terms in approval")
		}
		if err := in.runnable(); err != nil {
			return err
		}
		if a := in.State.Approval; a != nil && (a.State == Rejected || a.State == Expired) {
			return malformed("require_approval cannot ask again for a call that is %s", a.State)
		}
		if in.State.Operation != nil {
			return malformed("require_approval for an operation that is committed")
		}
	}
	return nil
}

func (d Decision) checkAllow(in Input) error {
	if err := in.runnable(); err != nil {
		return err
	}
	if in.State.Operation != nil {
		return malformed("allow for an operation that is committed")
	}
	if in.Tool.Effect == Write && in.State.TargetExists {
		return malformed("allow for a target that exists")
	}
	if d.Approval == nil && in.Tool.Approval == ByRule {
		return nil
	}
	a := in.State.Approval
	switch {
	case a == nil || a.State != Approved:
		return malformed("allow without the approval that %s demands", in.Call.Tool)
	case in.State.Step > a.ExpiresAtStep || in.Now.Epoch > a.ExpiresAt.Epoch:
		return malformed("allow under an approval that has expired")
	case d.Approval != nil && !d.Approval.met(a.Votes, in.Task.Actor):
		return malformed("allow under an approval whose votes do not meet the terms")
	}
	return nil
}

// runnable says whether there is anything at all that could run or be asked for.
func (in Input) runnable() error {
	switch {
	case in.Mode != Enforce:
		return malformed("unknown mode %q", in.Mode)
	case in.State.Cancelled:
		return malformed("the task is cancelled")
	case in.State.Step > in.State.MaxSteps:
		return malformed("the step budget is spent")
	case in.Call.Malformed != nil || in.Tool == nil || len(in.Call.Violations) > 0:
		return malformed("there is no well-formed call of a known tool")
	}
	return nil
}

func (o *InputOperation) replayable() bool {
	return o != nil && o.State == "committed" && o.SameSignature && o.HasResult
}
