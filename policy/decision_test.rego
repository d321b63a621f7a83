# One test for each row of the order table, then the order itself: every row against the rows after it.
package policy_test

import data.policy

profiles := {"lab": {
	"tools": {"read_document": true, "calculate": true, "record_draft": true},
	"readable": {"warehouse": true},
	"writable": {},
}}

# A permitted read, with everything as it should be.
read := {
	"now": {"rfc3339": "2026-01-01T00:00:00.000Z", "epoch": 1767225600},
	"mode": "enforce",
	"task": {
		"tenant": "default", "id": "labels-1", "actor": "learner", "profile": "lab",
		"scopes": {"read:document": true, "write:draft": true},
	},
	"call": {
		"id": "a1", "tool": "read_document", "arguments": {"path": "/warehouse/labels.txt"},
		"target": "/warehouse/labels.txt", "keyed": false, "signature": "00", "malformed": null, "violations": [],
	},
	"tool": {
		"name": "read_document", "version": "1", "effect": "read", "outside": false, "approval": "by_rule",
		"scopes": ["read:document"], "cost": 0, "resource": "readable",
	},
	"state": {
		"step": 1, "max_steps": 20, "cancelled": false, "deadline": null, "budgets": {}, "approval": null, "operation": null,
		"unsettled": null, "write_started": false, "pending": {"count": 0, "limit": 10}, "target_exists": false,
	},
}

# A permitted write that nobody has approved yet.
draft := object.union(read, {
	"call": {
		"tool": "record_draft", "target": "labels-note", "keyed": true,
		"arguments": {"draft_id": "labels-note", "idempotency_key": "draft-1"},
	},
	"tool": {"name": "record_draft", "effect": "write", "approval": "always", "scopes": ["write:draft"], "resource": ""},
})

approved := {
	"state": "approved", "expires_at_step": 4, "policy_version": "unversioned", "mode": "enforce",
	"expires_at": {"rfc3339": "2026-01-02T00:00:00.000Z", "epoch": 1767312000},
	"votes": [{"reviewer": "ann", "decision": "approved", "lifetime": 3, "time": "2026-01-01T00:00:00.000Z"}],
}

# The same write with a person's approval.
granted := object.union(draft, {"state": {"approval": approved}})

committed := {"state": "committed", "same_signature": true, "has_result": true, "repeatable": false}

unknown := {"state": "unknown", "same_signature": true, "has_result": false, "repeatable": true}

# The same write by a tool outside, which was called, remembers the key, and did not answer.
lost := object.union(granted, {
	"tool": {"outside": true},
	"state": {"operation": unknown, "approval": object.union(approved, {"state": "consumed"})},
})

asked(call) := decision if decision := policy.decision with input as call with data.profiles as profiles

status(call) := asked(call).status

# Each row of the table, as what makes a call fall under it. Putting them on top of one another shows their order.
rows := [
	{"status": "cancelled", "change": {"state": {"cancelled": true}}},
	{"status": "deadline_exceeded", "change": {"state": {"deadline": {"rfc3339": "2025-12-31T00:00:00.000Z", "epoch": 1767139200}}}},
	{"status": "budget_exhausted", "change": {"state": {"step": 21}}},
	{"status": "invalid_proposal", "change": {"call": {"malformed": "it is not JSON"}}},
	{"status": "tool_denied", "change": {"task": {"profile": "other"}}},
	{"status": "invalid_arguments", "change": {"call": {"violations": [{"path": "/body", "message": "too long"}]}}},
	{"status": "scope_denied", "change": {"tool": {"scopes": ["write:draft", "send:mail"]}}},
	{"status": "resource_denied", "change": {"tool": {"resource": "readable"}, "call": {"target": "/restricted/planning.txt"}}},
	{"status": "idempotency_conflict", "change": {"state": {"operation": object.union(committed, {"same_signature": false})}}},
	{"status": "replayed", "change": {"state": {"operation": committed}}},
	{"status": "in_progress", "change": {"state": {"operation": object.union(unknown, {"state": "started"})}}},
	{"status": "in_progress", "change": {"state": {"unsettled": "started"}}},
	{"status": "in_progress", "change": {"state": {"write_started": true}}},
	{"status": "outcome_unknown", "change": {"state": {"operation": object.union(unknown, {"repeatable": false})}}},
	{"status": "outcome_unknown", "change": {"state": {"unsettled": "unknown"}}},
	{"status": "resumed", "dry_run": "outcome_unknown", "change": {"tool": {"outside": true}, "state": {"operation": unknown, "budgets": {}}}},
	{"status": "budget_exhausted", "code": "budget_spent", "change": {"state": {"budgets": {"attempts": {"limit": 3, "spent": 3, "reserved": 0}}}}},
	{"status": "approval_required", "change": {"state": {"approval": null}}},
	{"status": "approval_rejected", "change": {"state": {"approval": object.union(approved, {"state": "rejected"})}}},
	{"status": "approval_expired", "change": {"state": {"approval": object.union(approved, {"state": "expired"})}}},
	{"status": "invalid_state", "change": {"state": {"approval": object.union(approved, {"state": "consumed"})}}},
	{"status": "pending_limit", "change": {"state": {"approval": null, "pending": {"count": 10, "limit": 10}}}},
	{"status": "target_exists", "change": {"state": {"target_exists": true}}},
]

test_order[note] if {
	some i, row in rows
	some j, later in rows
	j > i

	# Both change the same fact, which can have one value only, so the later one would take the earlier one away.
	not shared(row.change, later.change)
	note := sprintf("%s before %s", [row.status, later.status])
	answer := asked(object.union(object.union(granted, later.change), row.change))
	answer.status == row.status
	answer.reasons[0].code == object.get(row, "code", row.status)
}

shared(a, b) if {
	some part, facts in a
	some fact in object.keys(facts)
	fact in object.keys(b[part])
}

# Not one of the pairs above may be lost to a slip in the table: this is how many there are.
test_order_covers_the_table if count({pair |
	some i, row in rows
	some j, later in rows
	j > i
	not shared(row.change, later.change)
	pair := [i, j]
}) == 231

test_ok if asked(read) == {
	"effect": "allow", "status": "ok", "policy_version": "unversioned",
	"reasons": [{"code": "ok", "message": "the call is allowed"}],
}

test_cancelled if falls_under("cancelled", "deny")

test_deadline_exceeded if falls_under("deadline_exceeded", "deny")

test_budget_exhausted if falls_under("budget_exhausted", "deny")

test_invalid_proposal if falls_under("invalid_proposal", "deny")

test_tool_denied if falls_under("tool_denied", "deny")

test_invalid_arguments if falls_under("invalid_arguments", "deny")

test_scope_denied if falls_under("scope_denied", "deny")

test_resource_denied if falls_under("resource_denied", "deny")

test_idempotency_conflict if falls_under("idempotency_conflict", "deny")

test_replayed if falls_under("replayed", "replay")

test_in_progress if falls_under("in_progress", "deny")

test_outcome_unknown if falls_under("outcome_unknown", "deny")

test_resumed if falls_under("resumed", "resume")

test_approval_required if falls_under("approval_required", "require_approval")

test_approval_rejected if falls_under("approval_rejected", "deny")

test_approval_expired if falls_under("approval_expired", "deny")

test_invalid_state if falls_under("invalid_state", "deny")

test_pending_limit if falls_under("pending_limit", "deny")

test_target_exists if falls_under("target_exists", "deny")

# Exactly the documented members, and the retry and the terms only where they belong.
falls_under(name, effect) if {
	some row in rows
	row.status == name
	answer := asked(object.union(granted, row.change))
	answer.status == name
	answer.effect == effect
	every reason in answer.reasons { reason.code == name }
	object.keys(answer) == ({"effect", "status", "reasons", "policy_version"} | {"retryable" | name == "in_progress"}) | {"approval" | effect == "require_approval"}
}

test_policy_version if {
	answer := asked(read) with data.govern.version as "lab-1@sha256:00"
	answer.policy_version == "lab-1@sha256:00"
}

# Positive evidence: a fact that is missing, or is not what Go would ever put there, gives nothing.
test_nothing_without_its_fact[note] if {
	some note, path in {
		"mode": "/mode", "cancelled": "/state/cancelled", "step": "/state/step", "max_steps": "/state/max_steps",
		"deadline": "/state/deadline", "malformed": "/call/malformed", "violations": "/call/violations",
		"the tool's name": "/tool/name", "its scopes": "/tool/scopes", "its resource class": "/tool/resource",
		"the task's scopes": "/task/scopes", "profile": "/task/profile", "operation": "/state/operation",
		"unsettled": "/state/unsettled", "another write": "/state/write_started", "budgets": "/state/budgets", "now": "/now", "all of the call": "/call", "the tool": "/tool", "the state": "/state", "the task": "/task",
		"an approval's votes": "/state/approval/votes", "its last step": "/state/approval/expires_at_step",
		"its time": "/state/approval/expires_at", "its state": "/state/approval/state",
	}
	answer := asked(json.remove(granted, [path]))
	not answer.effect in {"allow", "replay"}
}

test_no_replay_without_its_fact[note] if {
	replay := object.union(draft, {"state": {"operation": committed}})
	some note, path in {
		"cancelled": "/state/cancelled", "malformed": "/call/malformed", "violations": "/call/violations",
		"the tool": "/tool", "profile": "/task/profile", "its state": "/state/operation/state",
		"its signature": "/state/operation/same_signature",
	}
	asked(json.remove(replay, [path])).effect == "deny"
}

test_no_resume_without_its_fact[note] if {
	asked(lost).effect == "resume"
	some note, path in {
		"mode": "/mode", "cancelled": "/state/cancelled", "malformed": "/call/malformed", "violations": "/call/violations",
		"the tool": "/tool", "profile": "/task/profile", "its effect": "/tool/effect", "outside": "/tool/outside",
		"operation": "/state/operation", "its state": "/state/operation/state", "its signature": "/state/operation/same_signature",
		"may it be repeated": "/state/operation/repeatable", "unsettled": "/state/unsettled",
		"another write": "/state/write_started", "budgets": "/state/budgets",
	}
	asked(json.remove(lost, [path])).effect == "deny"
}

test_nobody_is_asked_without_its_fact[note] if {
	some note, path in {
		"cancelled": "/state/cancelled", "malformed": "/call/malformed", "violations": "/call/violations",
		"the tool": "/tool", "profile": "/task/profile", "operation": "/state/operation", "approval": "/state/approval",
		"unsettled": "/state/unsettled", "another write": "/state/write_started", "budgets": "/state/budgets",
		"pending": "/state/pending", "limit": "/state/pending/limit",
	}
	asked(json.remove(draft, [path])).effect == "deny"
}

test_other_mode_is_not_allowed[note] if {
	some note, mode in {"no word of ours": "dryrun", "upper case": "ENFORCE", "empty": "", "null": null}
	answer := asked(object.union(granted, {"mode": mode}))
	answer.effect == "deny"
	answer.status == "invalid_state"
	answer.reasons[0].code == "no_rule_matched"
}

test_no_input_is_denied if {
	answer := policy.decision with input as {}
	answer.effect == "deny"
}
