# Row 15: a write creates, and never overwrites.
package policy_test

test_target_exists_for[note] if {
	some note, case in {
		"write": {"effect": "write", "want": "target_exists"},
		"no effect": {"effect": "", "want": "target_exists"},
		"unknown effect": {"effect": "Read", "want": "target_exists"},
		"null": {"effect": null, "want": "target_exists"},
		"read": {"effect": "read", "want": "ok"},
		"pure": {"effect": "pure", "want": "ok"},
	}
	there := object.union(granted, {"state": {"target_exists": true}, "tool": {"effect": case.effect}})
	status(there) == case.want
}

# Without a person, too.
test_target_exists_by_rule if {
	status(object.union(draft, {"state": {"target_exists": true}, "tool": {"approval": "by_rule"}})) == "target_exists"
}

# A person is asked, and can say no, before anybody learns that the target is taken.
test_target_exists_after_approval if {
	status(object.union(draft, {"state": {"target_exists": true}})) == "approval_required"
}
