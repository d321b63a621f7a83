# Rows 4 and 6: what the reasons say.
package policy_test

test_invalid_proposal_says_why if {
	answer := asked(object.union(read, {"tool": null, "call": {"malformed": "more after the value"}}))
	answer.reasons == [{"code": "invalid_proposal", "message": "this is not a proposal: more after the value"}]
}

test_invalid_arguments_names_each_violation if {
	violations := [
		{"path": "/body", "message": "longer than 400"},
		{"path": "", "message": "missing draft_id"},
		{"path": "/a~1b", "message": "not allowed"},
	]
	answer := asked(object.union(read, {"call": {"violations": violations}}))
	answer.reasons == [
		{"code": "invalid_arguments", "message": "/body: longer than 400"},
		{"code": "invalid_arguments", "message": "missing draft_id"},
		{"code": "invalid_arguments", "message": "/a~1b: not allowed"},
	]
}

# A violation for each time, not for each text.
test_invalid_arguments_keeps_equal_violations if {
	violation := {"path": "/body", "message": "not allowed"}
	count(asked(object.union(read, {"call": {"violations": [violation, violation]}})).reasons) == 2
}
