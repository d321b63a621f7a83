# Row 16: a dry run is real up to the effect, and then nothing runs that would change something or reach outside.
package policy_test

import data.policy

dry(call) := object.union(call, {"mode": "dry_run"})

test_dry_run if {
	answer := asked(dry(granted))
	answer.effect == "simulate"
	answer.status == "dry_run"
	answer.approval == policy._terms
}

# Every row before it holds in a dry run too.
test_dry_run_comes_last[note] if {
	some row in rows
	note := row.status
	status(dry(object.union(granted, row.change))) == object.get(row, "dry_run", row.status)
}

test_dry_run_comes_last_covers_the_table if count(rows) == 23

test_dry_run_of_what_changes_nothing[note] if {
	some note, effect in {"a read": "read", "a calculation": "pure"}
	asked(dry(object.union(read, {"tool": {"effect": effect}}))).effect == "allow"
}

# What does not say that it changes nothing is taken to change something.
test_dry_run_of_what_may_change_something[note] if {
	some note, effect in {"a write": "write", "no word": "", "another word": "readonly", "another case": "READ", "null": null}
	answer := asked(dry(object.union(read, {"tool": {"effect": effect}})))
	answer.effect == "simulate"
}

# What does not say that it stays inside is taken to reach outside.
test_dry_run_of_what_may_reach_outside[note] if {
	some what, outside in {"outside": true, "no word": "", "another word": "false", "null": null}
	some effect in ["pure", "read", "write"]
	note := sprintf("%s, %s", [effect, what])
	answer := asked(dry(object.union(read, {"tool": {"effect": effect, "outside": outside}})))
	answer.effect == "simulate"
}

# Not in a dry run nothing is simulated.
test_no_dry_run[note] if {
	some note, mode in {"enforce": "enforce", "another word": "dryrun", "another case": "DRY_RUN", "empty": ""}
	asked(object.union(granted, {"mode": mode})).effect != "simulate"
}

# What a dry run would do is promised only where every fact about it is there.
test_no_dry_run_without_its_fact[note] if {
	some note, path in {
		"operation": "/state/operation", "unsettled": "/state/unsettled", "another write": "/state/write_started",
		"target": "/state/target_exists", "cancelled": "/state/cancelled", "the tool": "/tool",
	}
	asked(json.remove(dry(granted), [path])).effect == "deny"
}
