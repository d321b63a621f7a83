# Rows 10 and 11: once is once, and a known result is told only to who may have it.
package policy_test

operation(state, same, result) := object.union(
	draft,
	{"state": {"operation": {"state": state, "same_signature": same, "has_result": result, "repeatable": false}}},
)

test_operations[note] if {
	some note, case in {
		"committed": {"call": operation("committed", true, true), "want": "replayed"},
		"committed, another call": {"call": operation("committed", false, true), "want": "idempotency_conflict"},
		"committed, result not known": {"call": operation("committed", true, false), "want": "replayed"},
		"started": {"call": operation("started", true, false), "want": "in_progress"},
		"started, another call": {"call": operation("started", false, false), "want": "idempotency_conflict"},
		"unknown": {"call": operation("unknown", true, false), "want": "outcome_unknown"},
		"unknown, another call": {"call": operation("unknown", false, false), "want": "idempotency_conflict"},
		"unknown, with a result": {"call": operation("unknown", true, true), "want": "outcome_unknown"},
		"absent": {"call": operation("absent", true, false), "want": "approval_required"},
		"absent, another call": {"call": operation("absent", false, false), "want": "approval_required"},
		"committed, signature unclear": {"call": operation("committed", null, true), "want": "outcome_unknown"},
		"started, signature unclear": {"call": operation("started", null, true), "want": "in_progress"},
		"unknown, signature unclear": {"call": operation("unknown", null, true), "want": "outcome_unknown"},
		"another word": {"call": operation("authorised", true, true), "want": "outcome_unknown"},
		"another word, another call": {"call": operation("authorised", false, true), "want": "outcome_unknown"},
		"another case": {"call": operation("Committed", true, true), "want": "outcome_unknown"},
		"another case of nothing": {"call": operation("Absent", true, true), "want": "outcome_unknown"},
		"empty": {"call": operation("", true, true), "want": "outcome_unknown"},
		"no state": {"call": operation(null, true, true), "want": "outcome_unknown"},
		"no object": {"call": object.union(draft, {"state": {"operation": "absent"}}), "want": "outcome_unknown"},
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

# Whatever an operation is in, unless nothing of it took place, the call neither runs nor is put before a person.
test_an_operation_stops_the_effect[note] if {
	some state in ["committed", "started", "unknown", "Absent", ""]
	some same in [true, false]
	some asked_before, approval in {
		"not asked": null, "approved": approved, "consumed": object.union(approved, {"state": "consumed"}),
	}
	note := sprintf("%q, same %v, %s", [state, same, asked_before])
	answer := asked(object.union(operation(state, same, true), {"state": {"approval": approval}}))
	not answer.effect in {"allow", "require_approval"}
}

test_nothing_took_place[note] if {
	some note, operation in {
		"of this call": {"state": "absent", "same_signature": true, "has_result": false, "repeatable": false},
		"of another call": {"state": "absent", "same_signature": false, "has_result": false, "repeatable": false},
		"which could be repeated": {"state": "absent", "same_signature": true, "has_result": false, "repeatable": true},
	}
	status(object.union(granted, {"state": {"operation": operation}})) == "ok"
}

# What else of the task is open stops a call, with a key or without one.
test_open_operations[note] if {
	some keyed in [true, false]
	some what, case in {
		"nothing": {"change": {}, "want": "ok"},
		"the same effect, under way": {"change": {"unsettled": "started"}, "want": "in_progress"},
		"the same effect, not known": {"change": {"unsettled": "unknown"}, "want": "outcome_unknown"},
		"the same effect, another word": {"change": {"unsettled": "lost"}, "want": "outcome_unknown"},
		"the same effect, another case": {"change": {"unsettled": "Started"}, "want": "outcome_unknown"},
		"the same effect, false": {"change": {"unsettled": false}, "want": "outcome_unknown"},
		"another write": {"change": {"write_started": true}, "want": "in_progress"},
		"another write, unclear": {"change": {"write_started": null}, "want": "invalid_state"},
		"another write, another word": {"change": {"write_started": "true"}, "want": "invalid_state"},
		"both, not known": {"change": {"unsettled": "unknown", "write_started": true}, "want": "in_progress"},
	}
	note := sprintf("%s, keyed %v", [what, keyed])
	status(object.union(object.union(granted, {"call": {"keyed": keyed}}), {"state": case.change})) == case.want
}

# A person is not asked for what would have to wait.
test_open_operations_come_before_the_question[note] if {
	some note, change in {"the same effect": {"unsettled": "started"}, "not known": {"unsettled": "unknown"}, "another write": {"write_started": true}}
	asked(object.union(draft, {"state": change})).effect == "deny"
}

# Only writes wait for writes. What does not say that it is none is one.
test_another_write_and_the_effect[note] if {
	some note, case in {
		"a read": {"effect": "read", "want": "ok"},
		"a calculation": {"effect": "pure", "want": "ok"},
		"a write": {"effect": "write", "want": "in_progress"},
		"another word": {"effect": "readonly", "want": "in_progress"},
		"null": {"effect": null, "want": "in_progress"},
	}
	status(object.union(read, {"tool": {"effect": case.effect}, "state": {"write_started": true}})) == case.want
}

test_open_operations_in_a_dry_run[note] if {
	some note, case in {
		"nothing": {"change": {}, "want": "dry_run"},
		"the same effect, under way": {"change": {"unsettled": "started"}, "want": "in_progress"},
		"the same effect, not known": {"change": {"unsettled": "unknown"}, "want": "outcome_unknown"},
		"another write": {"change": {"write_started": true}, "want": "in_progress"},
		"its own, not known": {"change": {"operation": unknown}, "want": "outcome_unknown"},
		"its own, of which nothing took place": {"change": {"operation": object.union(unknown, {"state": "absent"})}, "want": "dry_run"},
	}
	call := object.union(granted, {"mode": "dry_run", "tool": {"outside": true}})
	status(object.union(call, {"state": case.change})) == case.want
}

test_resume[note] if {
	some note, case in {
		"as it should be": {"change": {}, "want": "resumed"},
		"not repeatable": {"change": {"state": {"operation": {"repeatable": false}}}, "want": "outcome_unknown"},
		"perhaps repeatable": {"change": {"state": {"operation": {"repeatable": null}}}, "want": "outcome_unknown"},
		"another call": {"change": {"state": {"operation": {"same_signature": false}}}, "want": "idempotency_conflict"},
		"signature unclear": {"change": {"state": {"operation": {"same_signature": null}}}, "want": "outcome_unknown"},
		"under way": {"change": {"state": {"operation": {"state": "started"}}}, "want": "in_progress"},
		"done": {"change": {"state": {"operation": {"state": "committed"}}}, "want": "replayed"},
		"another word": {"change": {"state": {"operation": {"state": "lapsed"}}}, "want": "outcome_unknown"},
		"the same effect, under way": {"change": {"state": {"unsettled": "started"}}, "want": "in_progress"},
		"the same effect, not known": {"change": {"state": {"unsettled": "unknown"}}, "want": "outcome_unknown"},
		"the same effect, another word": {"change": {"state": {"unsettled": "lost"}}, "want": "outcome_unknown"},
		"another write": {"change": {"state": {"write_started": true}}, "want": "in_progress"},
		"another write, unclear": {"change": {"state": {"write_started": null}}, "want": "outcome_unknown"},
		"another write, and not repeatable": {
			"change": {"state": {"operation": {"repeatable": false}, "write_started": true}},
			"want": "in_progress",
		},
		"a dry run": {"change": {"mode": "dry_run"}, "want": "outcome_unknown"},
		"another mode": {"change": {"mode": "ENFORCE"}, "want": "outcome_unknown"},
		"a read": {"change": {"tool": {"effect": "read"}}, "want": "outcome_unknown"},
		"a tool inside": {"change": {"tool": {"outside": false}}, "want": "outcome_unknown"},
	}
	status(object.union(lost, case.change)) == case.want
}

# Nobody is asked again, and nothing is taken for granted of the approval that was used.
test_resume_asks_nobody[note] if {
	some note, change in {
		"nobody asked": {"approval": null},
		"approval consumed": {"approval": object.union(approved, {"state": "consumed"})},
		"expired": {"approval": object.union(approved, {"state": "expired"})},
		"target there": {"target_exists": true},
		"queue full": {"pending": {"count": 10, "limit": 10}},
	}
	answer := asked(object.union(lost, {"state": change}))
	object.keys(answer) == {"effect", "status", "reasons", "policy_version"}
	answer.effect == "resume"
}

test_replay_and_resume_come_after_authority[note] if {
	some known, call in {"committed": operation("committed", true, true), "unknown": lost}
	some what, case in {
		"cancelled": {"change": {"state": {"cancelled": true}}, "want": "cancelled"},
		"no budget": {"change": {"state": {"step": 21}}, "want": "budget_exhausted"},
		"tool taken away": {"change": {"task": {"profile": "gone"}}, "want": "tool_denied"},
		"violations": {"change": {"call": {"violations": [{"path": "", "message": "no"}]}}, "want": "invalid_arguments"},
		"scope taken away": {"change": {"tool": {"scopes": ["send:mail"]}}, "want": "scope_denied"},
		"target taken away": {"change": {"tool": {"resource": "readable"}}, "want": "resource_denied"},
	}
	note := sprintf("%s, %s", [known, what])
	status(object.union(call, case.change)) == case.want
}

test_replay_comes_before_conditions_on_a_new_effect[note] if {
	some note, change in {
		"nobody asked": {"approval": null},
		"approval consumed": {"approval": object.union(approved, {"state": "consumed"})},
		"rejected": {"approval": object.union(approved, {"state": "rejected"})},
		"expired": {"approval": object.union(approved, {"state": "expired"})},
		"target there": {"target_exists": true},
		"queue full": {"pending": {"count": 10, "limit": 10}},
		"the same effect, not known": {"unsettled": "unknown"},
		"another write": {"write_started": true},
	}
	status(object.union(operation("committed", true, true), {"state": change})) == "replayed"
}
