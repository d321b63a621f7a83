# Rows 1 to 3: where the limits are.
package policy_test

test_deadlines[note] if {
	some note, case in {
		"none": {"deadline": null, "want": "ok"},
		"a second left": {"deadline": {"epoch": 1767225601}, "want": "ok"},
		"now": {"deadline": {"epoch": 1767225600}, "want": "deadline_exceeded"},
		"a second ago": {"deadline": {"epoch": 1767225599}, "want": "deadline_exceeded"},
	}
	status(object.union(read, {"state": {"deadline": case.deadline}})) == case.want
}

test_steps[note] if {
	some note, case in {
		"first": {"step": 1, "max_steps": 20, "want": "ok"},
		"last": {"step": 20, "max_steps": 20, "want": "ok"},
		"one more": {"step": 21, "max_steps": 20, "want": "budget_exhausted"},
		"none at all": {"step": 1, "max_steps": 0, "want": "budget_exhausted"},
	}
	status(object.union(read, {"state": {"step": case.step, "max_steps": case.max_steps}})) == case.want
}

# The last step is good for every answer.
test_last_step[note] if {
	some note, case in {
		"a saved result": {"call": object.union(draft, {"state": {"operation": committed}}), "want": "replayed"},
		"a question to a person": {"call": draft, "want": "approval_required"},
		"an approved call": {"call": object.union(granted, {"state": {"approval": {"expires_at_step": 20}}}), "want": "ok"},
	}
	status(object.union(case.call, {"state": {"step": 20, "max_steps": 20}})) == case.want
}

# Cancelling stops what an approval or a saved result would otherwise give.
test_cancelled_beats[note] if {
	some note, change in {
		"an approved call": {"state": {"approval": approved}},
		"a replay": {"state": {"operation": committed}},
		"a question to a person": {},
	}
	status(object.union(draft, object.union(change, {"state": {"cancelled": true}}))) == "cancelled"
}
