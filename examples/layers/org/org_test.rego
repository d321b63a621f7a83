package org_test

import data.org

call(tool, target) := {"call": {"tool": tool, "target": target}}

test_reserved_ids[note] if {
	some note, case in {
		"of people": {"target": "official-notice", "want": {"reserved_draft"}},
		"in another case": {"target": "Official-notice", "want": {"reserved_draft"}},
		"the prefix alone": {"target": "official-", "want": {"reserved_draft"}},
		"of agents": {"target": "labels-note", "want": set()},
		"the word within": {"target": "labels-official-note", "want": set()},
		"no target": {"target": null, "want": set()},
	}
	found := org.forbid with input as call("record_draft", case.target)
	{member.status | some member in found} == case.want
	{member.code | some member in found} == case.want
}

test_reading_is_not_reserved if {
	count(org.forbid) == 0 with input as call("read_document", "official-notice")
}

test_two_people_agree_to_a_draft if {
	found := org.require_approval with input as call("record_draft", "labels-note")
	{member.approval.approvers | some member in found} == {2}
	{member.approval.reason_required | some member in found} == {true}
}

test_nobody_is_asked_for_reading if {
	count(org.require_approval) == 0 with input as call("read_document", "/warehouse/labels.txt")
}
