# Row 13: where the budgets end, and what they do not touch.
package policy_test

import data.policy

spending(call, budgets) := object.union(call, {"state": {"budgets": budgets}})

test_budgets[note] if {
	some note, case in {
		"none": {"budgets": {}, "cost": 1000000, "want": "ok"},
		"cost, with room": {"budgets": {"cost": {"limit": 10, "spent": 4, "reserved": 0}}, "cost": 5, "want": "ok"},
		"cost, exactly": {"budgets": {"cost": {"limit": 10, "spent": 5, "reserved": 0}}, "cost": 5, "want": "ok"},
		"cost, one over": {"budgets": {"cost": {"limit": 10, "spent": 6, "reserved": 0}}, "cost": 5, "want": "budget_exhausted"},
		"cost, nothing left for what is free": {"budgets": {"cost": {"limit": 10, "spent": 10, "reserved": 0}}, "cost": 0, "want": "ok"},
		"cost, overspent, for what is free": {"budgets": {"cost": {"limit": 10, "spent": 11, "reserved": 0}}, "cost": 0, "want": "budget_exhausted"},
		"cost, none at all": {"budgets": {"cost": {"limit": 0, "spent": 0, "reserved": 0}}, "cost": 1, "want": "budget_exhausted"},
		"attempts, the last": {"budgets": {"attempts": {"limit": 3, "spent": 2, "reserved": 0}}, "cost": 0, "want": "ok"},
		"attempts, one more": {"budgets": {"attempts": {"limit": 3, "spent": 3, "reserved": 0}}, "cost": 0, "want": "budget_exhausted"},
		"attempts, none at all": {"budgets": {"attempts": {"limit": 0, "spent": 0, "reserved": 0}}, "cost": 0, "want": "budget_exhausted"},
		"output, a byte left": {"budgets": {"output": {"limit": 100, "spent": 99, "reserved": 0}}, "cost": 0, "want": "ok"},
		"output, reached": {"budgets": {"output": {"limit": 100, "spent": 100, "reserved": 0}}, "cost": 0, "want": "budget_exhausted"},
		"output, passed": {"budgets": {"output": {"limit": 100, "spent": 180, "reserved": 0}}, "cost": 0, "want": "budget_exhausted"},
		"all, with room": {
			"budgets": {
				"cost": {"limit": 10, "spent": 0, "reserved": 0}, "attempts": {"limit": 1, "spent": 0, "reserved": 0},
				"output": {"limit": 1, "spent": 0, "reserved": 0},
			},
			"cost": 10, "want": "ok",
		},
		"an unknown one": {"budgets": {"steps": {"limit": 10, "spent": 0, "reserved": 0}}, "cost": 0, "want": "budget_exhausted"},
		"another case": {"budgets": {"Cost": {"limit": 10, "spent": 0, "reserved": 0}}, "cost": 0, "want": "budget_exhausted"},
		"no limit in it": {"budgets": {"attempts": {"spent": 0, "reserved": 0}}, "cost": 0, "want": "budget_exhausted"},
		"nothing reserved in it": {"budgets": {"attempts": {"limit": 3, "spent": 0}}, "cost": 0, "want": "budget_exhausted"},
		"cost, with room beside what is reserved": {"budgets": {"cost": {"limit": 10, "spent": 4, "reserved": 1}}, "cost": 5, "want": "ok"},
		"cost, reserved": {"budgets": {"cost": {"limit": 10, "spent": 4, "reserved": 2}}, "cost": 5, "want": "budget_exhausted"},
		"attempts, the last beside what is reserved": {"budgets": {"attempts": {"limit": 3, "spent": 1, "reserved": 1}}, "cost": 0, "want": "ok"},
		"attempts, reserved": {"budgets": {"attempts": {"limit": 3, "spent": 2, "reserved": 1}}, "cost": 0, "want": "budget_exhausted"},
		"output, a byte left beside what is reserved": {"budgets": {"output": {"limit": 100, "spent": 49, "reserved": 50}}, "cost": 0, "want": "ok"},
		"output, reserved": {"budgets": {"output": {"limit": 100, "spent": 50, "reserved": 50}}, "cost": 0, "want": "budget_exhausted"},
		"null": {"budgets": {"attempts": null}, "cost": 0, "want": "budget_exhausted"},
	}
	status(object.union(spending(read, case.budgets), {"tool": {"cost": case.cost}})) == case.want
}

test_cost_is_needed if {
	call := json.remove(spending(read, {"cost": {"limit": 10, "spent": 0, "reserved": 0}}), ["/tool/cost"])
	status(call) == "budget_exhausted"
}

full := {
	"cost": {"limit": 10, "spent": 8, "reserved": 0}, "attempts": {"limit": 9, "spent": 9, "reserved": 0},
	"output": {"limit": 100, "spent": 100, "reserved": 0},
}

# Each budget that is spent is named, and none that is not.
test_budget_spent_names_each[note] if {
	text := "what is left of the task's budget is not enough for this call"
	some note, case in {
		"one": {"budgets": object.union(full, {"attempts": {"spent": 1}, "output": {"spent": 0}}), "want": [concat(": ", [text, "cost"])]},
		"all": {"budgets": full, "want": [concat(": ", [text, name]) | some name in ["attempts", "cost", "output"]]},
	}
	answer := asked(object.union(spending(read, case.budgets), {"tool": {"cost": 3}}))
	answer.effect == "deny"
	answer.status == "budget_exhausted"
	[reason.message | some reason in answer.reasons] == case.want
	every reason in answer.reasons { reason.code == "budget_spent" }
}

# Neither a person is asked nor a dry run answered for what could not run. A result that is known costs nothing.
test_what_a_spent_budget_stops[note] if {
	some note, case in {
		"a run": {"call": granted, "want": "budget_exhausted"},
		"a question to a person": {"call": draft, "want": "budget_exhausted"},
		"a dry run": {"call": object.union(granted, {"mode": "dry_run"}), "want": "budget_exhausted"},
		"a replay": {"call": object.union(draft, {"state": {"operation": committed}}), "want": "replayed"},
		"a resumption": {"call": lost, "want": "budget_exhausted"},
		"a call whose outcome is not known": {"call": object.union(lost, {"tool": {"outside": false}}), "want": "outcome_unknown"},
		"a denial": {"call": object.union(draft, {"state": {"cancelled": true}}), "want": "cancelled"},
	}
	status(spending(case.call, full)) == case.want
}

# Where it is not said what is spent, nothing is taken for affordable.
test_no_budgets_without_their_fact[note] if {
	some note, call in {
		"a run": granted, "a question to a person": draft, "a dry run": object.union(granted, {"mode": "dry_run"}), "a resumption": lost,
	}
	some change in [
		[{"op": "remove", "path": "/state/budgets"}],
		[{"op": "replace", "path": "/state/budgets", "value": null}],
		[{"op": "replace", "path": "/state/budgets", "value": []}],
	]
	answer := asked(json.patch(call, change))
	answer.effect == "deny"
	answer.reasons[0].code == {true: "outcome_unknown", false: "no_rule_matched"}[note == "a resumption"]
}

test_budget_spent_keeps_to_the_contract if {
	answer := asked(spending(granted, full))
	object.keys(answer) == {"effect", "status", "reasons", "policy_version"}
	answer.policy_version == policy._version
}
