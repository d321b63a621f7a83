# Rows 10 and 11: once is once, and a known result is told only to who may have it.
package policy_test

operation(state, same, result) := object.union(
	draft,
	{"state": {"operation": {"state": state, "same_signature": same, "has_result": result}}},
)

test_operations[note] if {
	some note, case in {
		"committed": {"call": operation("committed", true, true), "want": "replayed"},
		"committed, another call": {"call": operation("committed", false, true), "want": "idempotency_conflict"},
		"committed, result lost": {"call": operation("committed", true, false), "want": "outcome_unknown"},
		"started": {"call": operation("started", true, false), "want": "in_progress"},
		"started, another call": {"call": operation("started", false, false), "want": "idempotency_conflict"},
		"unknown": {"call": operation("unknown", true, false), "want": "outcome_unknown"},
		"unknown, another call": {"call": operation("unknown", false, false), "want": "idempotency_conflict"},
		"unknown, with a result": {"call": operation("unknown", true, true), "want": "outcome_unknown"},
		"committed, signature unclear": {"call": operation("committed", null, true), "want": "outcome_unknown"},
		"another word": {"call": operation("authorised", true, true), "want": "outcome_unknown"},
		"another case": {"call": operation("Committed", true, true), "want": "outcome_unknown"},
		"empty": {"call": operation("", true, true), "want": "outcome_unknown"},
	}
	status(case.call) == case.want
}

test_only_in_progress_is_retryable[note] if {
	some note, case in {
		"started": {"state": "started", "want": true},
		"unknown": {"state": "unknown", "want": false},
		"committed": {"state": "committed", "want": false},
	}
	object.get(asked(operation(case.state, true, true)), "retryable", false) == case.want
}

# Whatever an operation is in, the call neither runs nor is put before a person.
test_an_operation_stops_the_effect[note] if {
	some state in ["committed", "started", "unknown", "absent", ""]
	some same in [true, false]
	some asked_before, approval in {
		"not asked": null, "approved": approved, "consumed": object.union(approved, {"state": "consumed"}),
	}
	note := sprintf("%q, same %v, %s", [state, same, asked_before])
	answer := asked(object.union(operation(state, same, true), {"state": {"approval": approval}}))
	not answer.effect in {"allow", "require_approval"}
}

test_replay_comes_after_authority[note] if {
	some note, case in {
		"cancelled": {"change": {"state": {"cancelled": true}}, "want": "cancelled"},
		"no budget": {"change": {"state": {"step": 21}}, "want": "budget_exhausted"},
		"tool taken away": {"change": {"task": {"profile": "gone"}}, "want": "tool_denied"},
		"violations": {"change": {"call": {"violations": [{"path": "", "message": "no"}]}}, "want": "invalid_arguments"},
		"scope taken away": {"change": {"tool": {"scopes": ["send:mail"]}}, "want": "scope_denied"},
		"target taken away": {"change": {"tool": {"resource": "readable"}}, "want": "resource_denied"},
	}
	status(object.union(operation("committed", true, true), case.change)) == case.want
}

test_replay_comes_before_conditions_on_a_new_effect[note] if {
	some note, change in {
		"nobody asked": {"approval": null},
		"approval consumed": {"approval": object.union(approved, {"state": "consumed"})},
		"rejected": {"approval": object.union(approved, {"state": "rejected"})},
		"expired": {"approval": object.union(approved, {"state": "expired"})},
		"target there": {"target_exists": true},
		"queue full": {"pending": {"count": 10, "limit": 10}},
	}
	status(object.union(operation("committed", true, true), {"state": change})) == "replayed"
}
