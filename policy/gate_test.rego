# The gate by itself: four worked examples, seven more checks, and whatever is missing; then the same two questions inside
# the decision.
package policy_test

import data.policy

test_gate_examples[note] if {
	some note, case in {
		"a read tool": [["search", ["search"], [], false], "allow"],
		"a write tool, not confirmed": [["send", ["search", "send"], ["send"], false], "confirm"],
		"a write tool, confirmed": [["send", ["search", "send"], ["send"], true], "allow"],
		"a forbidden write tool, confirmed": [["delete", [], ["delete"], true], "deny"],
	}
	gate(case[0]) == case[1]
}

test_gate_checks[note] if {
	some note, case in {
		"a forbidden write tool, not confirmed": [["delete", ["search"], ["delete"], false], "deny"],
		"a read tool, confirmed": [["search", ["search"], ["send"], true], "allow"],
		"another capital letter": [["Search", ["search"], [], false], "deny"],
		"a write tool that is not allowed": [["send", ["search"], ["send"], true], "deny"],
		"a read tool beside a write tool": [["search", ["search", "send"], ["send"], false], "allow"],
		"the second of two write tools": [["delete", ["send", "delete"], ["send", "delete"], false], "confirm"],
		"a part of an allowed name": [["sea", ["search"], [], false], "deny"],
	}
	gate(case[0]) == case[1]
}

test_gate_without_its_facts[note] if {
	some note, case in {
		"nothing": [{}, "deny"],
		"no name": [{"allowed": ["send"], "writes": [], "confirmed": true}, "deny"],
		"no list of what is allowed": [{"name": "send", "writes": [], "confirmed": true}, "deny"],
		"a word that is no list": [{"name": "send", "allowed": "send", "writes": [], "confirmed": true}, "deny"],
		"an object that is no list": [{"name": "send", "allowed": {"send": "send"}, "writes": [], "confirmed": true}, "deny"],
		"no list of what writes": [{"name": "send", "allowed": ["send"]}, "confirm"],
		"writes that is no list": [{"name": "send", "allowed": ["send"], "writes": "search"}, "confirm"],
		"nobody said": [{"name": "send", "allowed": ["send"], "writes": ["send"]}, "confirm"],
		"another word than true": [{"name": "send", "allowed": ["send"], "writes": ["send"], "confirmed": "true"}, "confirm"],
		"one": [{"name": "send", "allowed": ["send"], "writes": ["send"], "confirmed": 1}, "confirm"],
	}
	policy.gate == case[1] with input as {"gate": case[0]}
}

gate(args) := answer if {
	answer := policy.gate with input as {"gate": {"name": args[0], "allowed": args[1], "writes": args[2], "confirmed": args[3]}}
}

# Rows 5 and 14 ask the same: of the tools of a profile, of what goes by rule, and of a person's approval.
test_gate_inside_the_decision[note] if {
	some listed in [true, false]
	some writes in [true, false]
	some confirmed in [true, false]
	note := sprintf("listed %v, writes %v, confirmed %v", [listed, writes, confirmed])
	call := object.union(draft, {
		"task": {"profile": {true: "lab", false: "other"}[listed]},
		"tool": {"approval": {true: "always", false: "by_rule"}[writes]},
		"state": {"approval": {true: approved, false: null}[confirmed]},
	})
	alone := gate(["record_draft", [name | listed; name := "record_draft"], [name | writes; name := "record_draft"], confirmed])
	status(call) == {"deny": "tool_denied", "confirm": "approval_required", "allow": "ok"}[alone]
}

test_gate_inside_the_decision_covers_all if count(test_gate_inside_the_decision) == 8
