# Row 14: does a person have to agree, and has one?
package policy

# What every approval must meet. This is the rule to edit; the members are
#
#   approvers            how many distinct people must approve, 1 to 10
#   lifetime             the most steps that a vote may grant, 1 to 10: a vote that granted more does not count
#   ttl                  how long the approval may wait and be used, such as "24h", at most 720h
#   distinct_from_actor  true: a vote of the actor on whose behalf the call is proposed does not count
#   reason_required      true: a vote without a reason does not count
#   roles                a vote counts only if its reviewer held one of them, such as ["lead"]
#   stages               [{name, approvers, roles}]: each has enough people, with one of its roles, before the next begins
#
# The organisation and the site can only ask for more. What they and this rule ask for is merged in terms.rego.
_terms := {
	"approvers": 1,
	"lifetime": 10,
	"ttl": "24h",
}

# METADATA
# title: A person must approve
# description: |
#   The tool, or a layer's require_approval, asks for a person, and none has approved this exact call yet: it was not
#   asked for before, it waits, or its votes do not meet the terms that hold now. The votes that it has are kept. There is
#   a reason for whoever asks: the tool, and each member of require_approval.
# custom:
#   code: approval_required
#   effect: require_approval
#   message: a person must approve this call
#   remedy: Review the call, and approve or reject it.
approval_required := object.union(_answer(meta), {"approval": _demanded, "reasons": reasons}) if {
	meta := rego.metadata.rule()
	of_tool := [{"code": meta.custom.code, "message": meta.custom.message} | input.tool.approval != "by_rule"]
	reasons := array.concat(of_tool, _reasons_of(_asking))
}

# METADATA
# title: Nobody could approve
# description: |
#   The roles that the core and the layers ask for have none in common, for the approval or for one of its stages. It is
#   no use to ask anybody.
# custom:
#   code: approval_impossible
#   status: invalid_state
#   effect: deny
#   message: this call needs an approval that nobody could give
#   remedy: The rules ask for a reviewer with roles that exclude one another. Let them have a role in common, or name stages.
approval_impossible := object.union(_answer(meta), {"status": meta.custom.status}) if meta := rego.metadata.rule()

# METADATA
# title: A person rejected the call
# description: It stays rejected until a person reopens it.
# custom:
#   code: approval_rejected
#   effect: deny
#   message: a person rejected this call
#   remedy: If that was a mistake, reopen the approval and review it again.
approval_rejected := _answer(rego.metadata.rule())

# METADATA
# title: The approval has expired
# description: |
#   Nobody answered in time, or the call was approved and did not come within the granted steps and time. The last
#   granted step, and the second of expires_at, still count.
# custom:
#   code: approval_expired
#   effect: deny
#   message: the approval of this call has expired
#   remedy: If the call is still wanted, reopen the approval and review it again.
approval_expired := _answer(rego.metadata.rule())

# METADATA
# title: Too many calls wait for a person
# description: The call needs a person, and as many of the task's calls as may wait for one already do.
# custom:
#   code: pending_limit
#   effect: deny
#   message: too many calls of this task wait for a person
#   remedy: Review what waits. If the limit is too low for this work, raise max_pending in the task's profile.
pending_limit := _answer(rego.metadata.rule())

# METADATA
# title: The approval was used, and its effect is not there
# description: The approval of a call with an idempotency key was consumed, and no operation has that key, not even an absent one.
# custom:
#   code: invalid_state
#   effect: deny
#   message: the approval of this call was used, but its operation is not recorded
#   remedy: The state is damaged or was changed by hand. Check the record before anything else is run.
invalid_state := _answer(rego.metadata.rule())

# Where the call stands with the people who review. A tool goes without them only if it says exactly "by_rule", and
# then only if no layer asks for them, and nobody has said no to this very call. An approval in a state that is not among these leaves this undefined, and gives
# nothing.
_approval := "not_demanded" if _nobody_demanded

else := "impossible" if _out_of_reach

else := "rejected" if input.state.approval.state == "rejected"

else := "expired" if _approval_lapsed

else := "given" if _approval_given

else := "pending" if input.state.approval.state in {"approved", "pending"}

else := "spent" if {
	input.state.approval.state == "consumed"
	input.call.keyed == true
	is_null(input.state.operation)
}

else := "unasked" if {
	_approval_unasked
	input.state.pending.count < input.state.pending.limit
}

else := "over_limit" if _approval_unasked

# The opposite of row 14.
_approved if _nobody_demanded

_approved if _approval_given

_nobody_demanded if {
	input.tool.approval == "by_rule"
	_unasked
	_unrejected
}

_unrejected if is_null(input.state.approval)

_unrejected if input.state.approval.state != "rejected"

_approval_awaited if {
	_permitted
	_fresh
	_undenied
	_affordable
	_approval in {"pending", "unasked"}
}

_approval_lapsed if input.state.approval.state == "expired"

_approval_lapsed if {
	input.state.approval.state in {"pending", "approved"}
	input.now.epoch > input.state.approval.expires_at.epoch
}

_approval_lapsed if {
	input.state.approval.state == "approved"
	input.state.step > input.state.approval.expires_at_step
}

# Approved, in time, and with votes that meet the terms as they are now. One rejection outweighs any number of approvals.
_approval_given if {
	input.state.approval.state == "approved"
	input.state.step <= input.state.approval.expires_at_step
	input.now.epoch <= input.state.approval.expires_at.epoch
	every vote in input.state.approval.votes { vote.decision == "approved" }
	count(_approving) >= max({1, object.get(_demanded, "approvers", 1)})
	_stages_complete
}

_approval_unasked if is_null(input.state.approval)

_approval_unasked if input.state.approval.state == "withdrawn"

_approval_unasked if {
	input.state.approval.state == "consumed"
	input.call.keyed == false
}

# What it was used for did not take place.
_approval_unasked if {
	input.state.approval.state == "consumed"
	input.call.keyed == true
	input.state.operation.state == "absent"
}

# What an allowed call carries of its approval: the terms, where one was demanded.
_approval_terms := {} if _nobody_demanded

else := {"approval": _demanded}
