# Rows 5, 7 and 8: names match exactly, and what is not granted is denied.
package policy_test

import data.policy

# The tool is registered under the name that was called; only the profile decides.
called(name) := object.union(read, {"call": {"tool": name}, "tool": {"name": name}})

test_tool_names[note] if {
	some note, case in {
		"exact": {"name": "read_document", "want": "ok"},
		"another tool of the profile": {"name": "calculate", "want": "ok"},
		"upper case": {"name": "READ_DOCUMENT", "want": "tool_denied"},
		"one letter": {"name": "Read_document", "want": "tool_denied"},
		"prefix": {"name": "read", "want": "tool_denied"},
		"longer": {"name": "read_document_all", "want": "tool_denied"},
		"space after": {"name": "read_document ", "want": "tool_denied"},
		"space before": {"name": " read_document", "want": "tool_denied"},
		"line break after": {"name": "read_document\n", "want": "tool_denied"},
		"other tool": {"name": "send_email", "want": "tool_denied"},
		"empty": {"name": "", "want": "tool_denied"},
		"wildcard": {"name": "*", "want": "tool_denied"},
		"look-alike": {"name": "read_d\u043ecument", "want": "tool_denied"},
	}
	status(called(case.name)) == case.want
}

test_tool_denied_by[note] if {
	some note, change in {
		"no such tool": {"tool": null},
		"no such profile": {"task": {"profile": "gone"}},
		"no profile": {"task": {"profile": ""}},
		"profile in another case": {"task": {"profile": "LAB"}},
		"another tool's definition": {"tool": {"name": "calculate"}},
	}
	status(object.union(read, change)) == "tool_denied"
}

# A tool that the profile does not list stays denied, whatever a person said of it.
test_tool_denied_before_approval[note] if {
	some note, approval in {
		"nobody asked": null,
		"approved": approved,
		"pending": object.union(approved, {"state": "pending"}),
		"rejected": object.union(approved, {"state": "rejected"}),
	}
	denied := object.union(draft, {"task": {"profile": "gone"}, "state": {"approval": approval}})
	status(denied) == "tool_denied"
}

test_profile_that_grants_nothing if {
	empty := {"lab": {"tools": {}, "readable": {}}}
	answer := policy.decision with input as read with data.profiles as empty
	answer.status == "tool_denied"
}

test_granted_means_true[note] if {
	some note, value in {"false": false, "null": null, "a word": "yes", "a number": 1}
	unclear := {"lab": {"tools": {"read_document": value}, "readable": {"warehouse": true}}}
	answer := policy.decision with input as read with data.profiles as unclear
	answer.status == "tool_denied"
}

test_no_profiles_at_all if {
	answer := policy.decision with input as read
	answer.status == "tool_denied"
}

test_scopes[note] if {
	some note, case in {
		"none needed, none held": {"needs": [], "holds": {}, "want": "ok"},
		"one needed, none held": {"needs": ["read:document"], "holds": {}, "want": "scope_denied"},
		"one needed and held": {"needs": ["read:document"], "holds": {"read:document": true}, "want": "ok"},
		"two needed, one held": {"needs": ["a", "b"], "holds": {"a": true}, "want": "scope_denied"},
		"two needed and held": {"needs": ["a", "b"], "holds": {"a": true, "b": true, "c": true}, "want": "ok"},
		"held as false": {"needs": ["a"], "holds": {"a": false}, "want": "scope_denied"},
		"another case": {"needs": ["Read:document"], "holds": {"read:document": true}, "want": "scope_denied"},
		"prefix": {"needs": ["read:document"], "holds": {"read": true}, "want": "scope_denied"},
		"wildcard": {"needs": ["read:document"], "holds": {"*": true}, "want": "scope_denied"},
	}
	call := json.patch(read, [
		{"op": "replace", "path": "/tool/scopes", "value": case.needs},
		{"op": "replace", "path": "/task/scopes", "value": case.holds},
	])
	status(call) == case.want
}

test_scopes_that_are_none[note] if {
	some note, path in {"the tool's": "/tool/scopes", "the task's": "/task/scopes"}
	call := json.patch(read, [{"op": "replace", "path": path, "value": null}])
	status(call) == "scope_denied"
}

test_targets[note] if {
	some note, case in {
		"listed": {"target": "/warehouse/labels.txt", "want": "ok"},
		"listed too": {"target": "/warehouse/notice.txt", "want": "ok"},
		"elsewhere": {"target": "/restricted/planning.txt", "want": "resource_denied"},
		"none": {"target": null, "want": "resource_denied"},
		"empty": {"target": "", "want": "resource_denied"},
		"another case": {"target": "/Warehouse/labels.txt", "want": "resource_denied"},
		"prefix": {"target": "/warehouse/labels", "want": "resource_denied"},
		"folder": {"target": "/warehouse", "want": "resource_denied"},
		"longer": {"target": "/warehouse/labels.txt.bak", "want": "resource_denied"},
		"a way around": {"target": "/warehouse/../restricted/planning.txt", "want": "resource_denied"},
		"a way back": {"target": "/warehouse/./labels.txt", "want": "resource_denied"},
		"space after": {"target": "/warehouse/labels.txt ", "want": "resource_denied"},
	}
	status(object.union(read, {"call": {"target": case.target}})) == case.want
}

test_resource_classes[note] if {
	some note, case in {
		"none": {"resource": "", "want": "ok"},
		"readable": {"resource": "readable", "want": "ok"},
		"writable, where nothing is": {"resource": "writable", "want": "resource_denied"},
		"unknown": {"resource": "executable", "want": "resource_denied"},
		"another case": {"resource": "Readable", "want": "resource_denied"},
		"null": {"resource": null, "want": "resource_denied"},
	}
	status(object.union(read, {"tool": {"resource": case.resource}})) == case.want
}

test_readable_sets[note] if {
	sets := {"warehouse": {"/warehouse/labels.txt": true}, "office": {"/office/plan.txt": true, "/office/draft.txt": false}}
	some note, case in {
		"the first of two": {"names": {"warehouse": true, "office": true}, "target": "/warehouse/labels.txt", "want": "ok"},
		"the second of two": {"names": {"warehouse": true, "office": true}, "target": "/office/plan.txt", "want": "ok"},
		"not the profile's": {"names": {"warehouse": true}, "target": "/office/plan.txt", "want": "resource_denied"},
		"not switched on": {"names": {"office": false}, "target": "/office/plan.txt", "want": "resource_denied"},
		"listed as false": {"names": {"office": true}, "target": "/office/draft.txt", "want": "resource_denied"},
		"unknown set": {"names": {"garden": true}, "target": "/office/plan.txt", "want": "resource_denied"},
		"no set": {"names": {}, "target": "/office/plan.txt", "want": "resource_denied"},
	}
	granting := {"lab": {"tools": {"read_document": true}, "readable": case.names}}
	call := object.union(read, {"call": {"target": case.target}})
	answer := policy.decision with input as call with data.profiles as granting with data.readable as sets
	answer.status == case.want
}

# What may be written is its own list of sets: being readable opens nothing for a write.
test_writable_sets[note] if {
	sets := {"drafts": {"labels-note": true, "old-note": false}, "letters": {"to-maya": true}, "warehouse": {"labels-note": true}}
	some note, case in {
		"listed": {"names": {"drafts": true}, "target": "labels-note", "want": "ok"},
		"the second of two": {"names": {"drafts": true, "letters": true}, "target": "to-maya", "want": "ok"},
		"not the profile's": {"names": {"drafts": true}, "target": "to-maya", "want": "resource_denied"},
		"not switched on": {"names": {"drafts": false}, "target": "labels-note", "want": "resource_denied"},
		"listed as false": {"names": {"drafts": true}, "target": "old-note", "want": "resource_denied"},
		"elsewhere": {"names": {"drafts": true}, "target": "office-note", "want": "resource_denied"},
		"readable alone": {"names": {"drafts": true}, "target": "plan", "want": "resource_denied"},
		"another case": {"names": {"drafts": true}, "target": "Labels-note", "want": "resource_denied"},
		"none": {"names": {"drafts": true}, "target": null, "want": "resource_denied"},
		"unknown set": {"names": {"garden": true}, "target": "labels-note", "want": "resource_denied"},
		"no set, though it is readable": {"names": {}, "target": "plan", "want": "resource_denied"},
	}
	granting := {"lab": {"tools": {"record_draft": true}, "readable": {"warehouse": true}, "writable": case.names}}
	call := object.union(granted, {"call": {"target": case.target}, "tool": {"resource": "writable"}})
	answer := policy.decision with input as call
		with data.profiles as granting
		with data.writable as sets
		with data.readable as {"drafts": {"plan": true}}
	answer.status == case.want
}

# And being writable opens nothing for a read.
test_writable_is_not_readable if {
	granting := {"lab": {"tools": {"read_document": true}, "readable": {}, "writable": {"warehouse": true}}}
	answer := policy.decision with input as read with data.profiles as granting with data.writable as data.readable
	answer.status == "resource_denied"
}
