# Row 16: a dry run is real up to the effect, and then nothing runs that would change something.
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
	status(dry(object.union(granted, row.change))) == row.status
}

test_dry_run_comes_last_covers_the_table if count(rows) == 19

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

# Outside a dry run nothing is simulated.
test_no_dry_run[note] if {
	some note, mode in {"enforce": "enforce", "another word": "dryrun", "another case": "DRY_RUN", "empty": ""}
	asked(object.union(granted, {"mode": mode})).effect != "simulate"
}
