# Row 14: every state of an approval against its limits, and whose word counts.
package policy_test

import data.policy

one_vote := [{"reviewer": "ann", "decision": "approved", "lifetime": 3, "time": "2026-01-01T00:00:00.000Z"}]

# The draft of decision_test.rego at step 5, with an approval in this state. Its last second is 1767225600, the present
# one of the samples, unless the case says otherwise.
draft_with(state, change) := object.union(draft, {"state": {
	"step": 5,
	"approval": object.union(
		{
			"state": state, "votes": one_vote, "expires_at_step": 5, "policy_version": "unversioned", "mode": "enforce",
			"expires_at": {"rfc3339": "2026-01-01T00:00:00.000Z", "epoch": 1767225600},
		},
		change,
	),
}})

last_second := {"expires_at": {"rfc3339": "2026-01-01T00:00:00.000Z", "epoch": 1767225600}}

too_late := {"expires_at": {"rfc3339": "2025-12-31T23:59:59.000Z", "epoch": 1767225599}}

last_step := {"expires_at_step": 5}

step_over := {"expires_at_step": 4}

test_states[note] if {
	some note, case in {
		"pending": {"call": draft_with("pending", {"votes": [], "expires_at_step": 0}), "want": "approval_required"},
		"pending, last second": {"call": draft_with("pending", last_second), "want": "approval_required"},
		"pending, too late": {"call": draft_with("pending", too_late), "want": "approval_expired"},
		"pending, with enough votes": {"call": draft_with("pending", {"votes": one_vote}), "want": "approval_required"},
		"approved": {"call": draft_with("approved", {}), "want": "ok"},
		"approved, last step": {"call": draft_with("approved", last_step), "want": "ok"},
		"approved, step over": {"call": draft_with("approved", step_over), "want": "approval_expired"},
		"approved, last second": {"call": draft_with("approved", last_second), "want": "ok"},
		"approved, too late": {"call": draft_with("approved", too_late), "want": "approval_expired"},
		"approved, no vote": {"call": draft_with("approved", {"votes": []}), "want": "approval_required"},
		"rejected": {"call": draft_with("rejected", {}), "want": "approval_rejected"},
		"rejected, too late": {"call": draft_with("rejected", too_late), "want": "approval_rejected"},
		"rejected, step over": {"call": draft_with("rejected", step_over), "want": "approval_rejected"},
		"expired": {"call": draft_with("expired", {}), "want": "approval_expired"},
		"expired, in time": {"call": draft_with("expired", {"expires_at_step": 99}), "want": "approval_expired"},
		"consumed, keyed": {"call": draft_with("consumed", {}), "want": "invalid_state"},
		"consumed, keyed, too late": {"call": draft_with("consumed", too_late), "want": "invalid_state"},
		"consumed, not keyed": {"call": unkeyed("consumed"), "want": "approval_required"},
		"consumed, keyed, nothing took place": {"call": absent(draft_with("consumed", {})), "want": "approval_required"},
		"consumed, key unclear, nothing took place": {
			"call": object.union(absent(draft_with("consumed", {})), {"call": {"keyed": null}}),
			"want": "invalid_state",
		},
		"approved, nothing took place": {"call": absent(draft_with("approved", {})), "want": "ok"},
		"approved, nothing took place, too late": {"call": absent(draft_with("approved", too_late)), "want": "approval_expired"},
		"rejected, nothing took place": {"call": absent(draft_with("rejected", {})), "want": "approval_rejected"},
		"none, nothing took place": {"call": absent(draft), "want": "approval_required"},
		"withdrawn": {"call": draft_with("withdrawn", {}), "want": "approval_required"},
		"withdrawn, too late": {"call": draft_with("withdrawn", too_late), "want": "approval_required"},
		"none": {"call": draft, "want": "approval_required"},
		"another word": {"call": draft_with("granted", {}), "want": "invalid_state"},
		"another word, not keyed": {"call": unkeyed("granted"), "want": "invalid_state"},
		"consumed, key unclear": {
			"call": object.union(draft_with("consumed", {}), {"call": {"keyed": null}}),
			"want": "invalid_state",
		},
		"another case": {"call": draft_with("Approved", {}), "want": "invalid_state"},
		"no word": {"call": draft_with("", {}), "want": "invalid_state"},
		"true": {"call": draft_with(true, {}), "want": "invalid_state"},
	}
	status(case.call) == case.want
}

absent(call) := object.union(call, {"state": {"operation": object.union(unknown, {"state": "absent"})}})

unkeyed(state) := object.union(draft_with(state, {}), {"call": {"keyed": false}})

# The limit is on what waits: it stops what would join the queue, and nothing that is in it already.
test_pending_limit_states[note] if {
	full := {"state": {"pending": {"count": 10, "limit": 10}}}
	some note, case in {
		"none": {"call": draft, "want": "pending_limit"},
		"withdrawn": {"call": draft_with("withdrawn", {}), "want": "pending_limit"},
		"consumed, not keyed": {"call": unkeyed("consumed"), "want": "pending_limit"},
		"consumed, nothing took place": {"call": absent(draft_with("consumed", {})), "want": "pending_limit"},
		"pending": {"call": draft_with("pending", {}), "want": "approval_required"},
		"approved": {"call": draft_with("approved", {}), "want": "ok"},
		"approved, too few votes": {"call": draft_with("approved", {"votes": []}), "want": "approval_required"},
		"consumed, keyed": {"call": draft_with("consumed", {}), "want": "invalid_state"},
		"rejected": {"call": draft_with("rejected", {}), "want": "approval_rejected"},
	}
	status(object.union(case.call, full)) == case.want
}

test_pending_limit_boundary[note] if {
	some note, case in {
		"one below": {"pending": {"count": 9, "limit": 10}, "want": "approval_required"},
		"at it": {"pending": {"count": 10, "limit": 10}, "want": "pending_limit"},
		"over it": {"pending": {"count": 11, "limit": 10}, "want": "pending_limit"},
		"none may wait": {"pending": {"count": 0, "limit": 0}, "want": "pending_limit"},
	}
	status(object.union(draft, {"state": {"pending": case.pending}})) == case.want
}

# A tool goes without a person only if it says exactly "by_rule", whatever its effect.
test_who_is_asked[note] if {
	some note, case in {
		"write, always": {"tool": {"effect": "write", "approval": "always"}, "want": "approval_required"},
		"write, by rule": {"tool": {"effect": "write", "approval": "by_rule"}, "want": "ok"},
		"write, empty": {"tool": {"effect": "write", "approval": ""}, "want": "approval_required"},
		"write, never": {"tool": {"effect": "write", "approval": "never"}, "want": "approval_required"},
		"write, null": {"tool": {"effect": "write", "approval": null}, "want": "approval_required"},
		"write, another case": {"tool": {"effect": "write", "approval": "BY_RULE"}, "want": "approval_required"},
		"write, a longer word": {"tool": {"effect": "write", "approval": "by_rule_of_thumb"}, "want": "approval_required"},
		"read, always": {"tool": {"effect": "read", "approval": "always"}, "want": "approval_required"},
		"read, by rule": {"tool": {"effect": "read", "approval": "by_rule"}, "want": "ok"},
		"pure, always": {"tool": {"effect": "pure", "approval": "always"}, "want": "approval_required"},
		"no effect, empty": {"tool": {"effect": "", "approval": ""}, "want": "approval_required"},
	}
	status(object.union(draft, {"tool": case.tool})) == case.want
}

# A tool that asks for nobody looks at no approval that is there, but for a person's no.
test_by_rule_ignores_approvals[note] if {
	some note in ["pending", "approved", "consumed", "expired", "withdrawn"]
	status(object.union(draft_with(note, too_late), {"tool": {"approval": "by_rule"}})) == "ok"
}

test_terms_are_carried[note] if {
	some note, case in {
		"asking": {"call": draft, "want": {"approvers": 1, "lifetime": 10, "ttl": "24h"}},
		"waiting": {"call": draft_with("pending", {}), "want": {"approvers": 1, "lifetime": 10, "ttl": "24h"}},
		"allowed": {"call": draft_with("approved", {}), "want": {"approvers": 1, "lifetime": 10, "ttl": "24h"}},
		"nobody asked": {"call": read, "want": "none"},
		"denied": {"call": draft_with("rejected", {}), "want": "none"},
	}
	object.get(asked(case.call), "approval", "none") == case.want
}

vote(reviewer) := {"reviewer": reviewer, "decision": "approved", "lifetime": 3, "time": "2026-01-01T00:00:00.000Z"}

# The votes must meet the terms as they are now, not as they were when they were cast.
test_votes[note] if {
	some note, case in {
		"one of one": {"terms": {"approvers": 1}, "votes": [vote("ann")], "want": "ok"},
		"none of one": {"terms": {"approvers": 1}, "votes": [], "want": "approval_required"},
		"one of two": {"terms": {"approvers": 2}, "votes": [vote("ann")], "want": "approval_required"},
		"two of two": {"terms": {"approvers": 2}, "votes": [vote("ann"), vote("ben")], "want": "ok"},
		"three of two": {"terms": {"approvers": 2}, "votes": [vote("ann"), vote("ben"), vote("cem")], "want": "ok"},
		"one person twice": {"terms": {"approvers": 2}, "votes": [vote("ann"), vote("ann")], "want": "approval_required"},
		"zero means one": {"terms": {"approvers": 0}, "votes": [], "want": "approval_required"},
		"no number means one": {"terms": {"ttl": "1h"}, "votes": [], "want": "approval_required"},
		"no number, one vote": {"terms": {"ttl": "1h"}, "votes": [vote("ann")], "want": "ok"},
		"a rejection": {
			"terms": {"approvers": 1}, "votes": [vote("ann"), object.union(vote("ben"), {"decision": "rejected"})],
			"want": "approval_required",
		},
		"another word": {
			"terms": {"approvers": 1}, "votes": [object.union(vote("ann"), {"decision": "Approved"})],
			"want": "approval_required",
		},
		"the actor": {"terms": {"approvers": 1}, "votes": [vote("learner")], "want": "ok"},
		"the actor, who must not": {
			"terms": {"approvers": 1, "distinct_from_actor": true}, "votes": [vote("learner")],
			"want": "approval_required",
		},
		"another person": {"terms": {"approvers": 1, "distinct_from_actor": true}, "votes": [vote("ann")], "want": "ok"},
		"the actor does not make two": {
			"terms": {"approvers": 2, "distinct_from_actor": true}, "votes": [vote("learner"), vote("ann")],
			"want": "approval_required",
		},
		"the actor's rejection counts": {
			"terms": {"approvers": 1, "distinct_from_actor": true},
			"votes": [vote("ann"), object.union(vote("learner"), {"decision": "rejected"})],
			"want": "approval_required",
		},
		"a lifetime as long as allowed": {"terms": {"lifetime": 3}, "votes": [vote("ann")], "want": "ok"},
		"a longer lifetime than allowed now": {"terms": {"lifetime": 2}, "votes": [vote("ann")], "want": "approval_required"},
		"no reason": {"terms": {"reason_required": true}, "votes": [vote("ann")], "want": "approval_required"},
		"an empty reason": {
			"terms": {"reason_required": true}, "votes": [object.union(vote("ann"), {"reason": ""})],
			"want": "approval_required",
		},
		"a reason": {
			"terms": {"reason_required": true}, "votes": [object.union(vote("ann"), {"reason": "checked"})],
			"want": "ok",
		},
	}
	call := draft_with("approved", {"votes": case.votes})
	answer := policy.decision with input as call with data.profiles as profiles with policy._terms as case.terms
	answer.status == case.want
}

# A person's no to this very call stands, also where no rule asks for a person any more.
test_a_rejection_stands_where_nobody_asks[note] if {
	some note, case in {
		"rejected": {"approval": {"state": "rejected"}, "status": "approval_rejected"},
		"expired": {"approval": {"state": "expired"}, "status": "ok"},
		"never asked for": {"approval": null, "status": "ok"},
	}
	call := object.union(read, {"state": {"approval": case.approval}})
	answer := asked(call)
	answer.status == case.status
}
