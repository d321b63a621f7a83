# Row 14: the terms of the core and of every layer, merged to the strictest.
package policy_test

import data.policy

# The terms that a draft is asked for under, where the core's are these and two layers ask for more.
merged(core, org, site) := asking_under(core, org, site).approval

asking_under(core, org, site) := decision if {
	member := {"code": "more", "message": "more is asked for here"}
	decision := policy.decision with input as draft with data.profiles as profiles with policy._terms as core
		with data.org.require_approval as {object.union(member, {"approval": org})}
		with data.site.require_approval as {object.union(member, {"approval": site})}
}

a_day := {"approvers": 1, "lifetime": 10, "ttl": "24h"}

test_merging[note] if {
	some note, case in {
		"nothing more": {"core": a_day, "org": {}, "site": {}, "want": a_day},
		"a core that says nothing": {"core": {}, "org": {}, "site": {}, "want": a_day},
		"most approvers": {"core": a_day, "org": {"approvers": 3}, "site": {"approvers": 2}, "want": object.union(a_day, {"approvers": 3})},
		"no fewer than the core's": {
			"core": object.union(a_day, {"approvers": 2}), "org": {"approvers": 1}, "site": {},
			"want": object.union(a_day, {"approvers": 2}),
		},
		"shortest lifetime": {"core": a_day, "org": {"lifetime": 4}, "site": {"lifetime": 2}, "want": object.union(a_day, {"lifetime": 2})},
		"no longer than the core's": {
			"core": object.union(a_day, {"lifetime": 3}), "org": {"lifetime": 10}, "site": {},
			"want": object.union(a_day, {"lifetime": 3}),
		},
		"shortest ttl": {"core": a_day, "org": {"ttl": "90m"}, "site": {"ttl": "2h"}, "want": object.union(a_day, {"ttl": "90m"})},
		"not the least text": {"core": a_day, "org": {"ttl": "9h"}, "site": {"ttl": "10h"}, "want": object.union(a_day, {"ttl": "9h"})},
		"no longer ttl than the core's": {"core": a_day, "org": {"ttl": "720h"}, "site": {"ttl": "25h"}, "want": a_day},
		"no longer ttl than a core that says nothing": {"core": {}, "org": {"ttl": "720h"}, "site": {}, "want": a_day},
		"a core with more time": {"core": {"ttl": "48h"}, "org": {"ttl": "36h"}, "site": {}, "want": object.union(a_day, {"ttl": "36h"})},
		"two ways to write one time": {"core": a_day, "org": {"ttl": "60m"}, "site": {"ttl": "1h"}, "want": object.union(a_day, {"ttl": "1h"})},
		"somebody else, said by one": {
			"core": a_day, "org": {"distinct_from_actor": true}, "site": {"distinct_from_actor": false},
			"want": object.union(a_day, {"distinct_from_actor": true}),
		},
		"somebody else, said by the core": {
			"core": object.union(a_day, {"distinct_from_actor": true}), "org": {"distinct_from_actor": false}, "site": {},
			"want": object.union(a_day, {"distinct_from_actor": true}),
		},
		"a reason": {"core": a_day, "org": {}, "site": {"reason_required": true}, "want": object.union(a_day, {"reason_required": true})},
		"roles of one": {"core": a_day, "org": {"roles": {"lead", "audit"}}, "site": {}, "want": object.union(a_day, {"roles": ["audit", "lead"]})},
		"roles in common": {
			"core": object.union(a_day, {"roles": ["audit", "lead", "owner"]}), "org": {"roles": ["lead", "owner"]},
			"site": {"roles": ["owner", "audit", "lead"]}, "want": object.union(a_day, {"roles": ["lead", "owner"]}),
		},
		"every stage, as first named": {
			"core": object.union(a_day, {"stages": [{"name": "team"}]}), "org": {"stages": [{"name": "legal"}]},
			"site": {"stages": [{"name": "finance", "approvers": 2, "roles": ["cfo"]}, {"name": "legal"}]},
			"want": object.union(a_day, {"stages": [
				{"name": "team", "approvers": 1}, {"name": "legal", "approvers": 1},
				{"name": "finance", "approvers": 2, "roles": ["cfo"]},
			]}),
		},
		"one stage, stated twice": {
			"core": a_day, "org": {"stages": [{"name": "legal", "approvers": 2, "roles": ["a", "b"]}]},
			"site": {"stages": [{"name": "legal", "approvers": 1, "roles": ["c", "b"]}]},
			"want": object.union(a_day, {"stages": [{"name": "legal", "approvers": 2, "roles": ["b"]}]}),
		},
	}
	merged(case.core, case.org, case.site) == case.want
}

# Several members of one set are merged like those of several layers.
test_members_of_one_set_are_merged if {
	answer := under(draft, {"site": {"require_approval": {
		{"code": "a", "message": "two people", "approval": {"approvers": 2}},
		{"code": "b", "message": "soon", "approval": {"ttl": "1h"}}, {"code": "c", "message": "somebody"},
	}}})
	answer.approval == {"approvers": 2, "lifetime": 10, "ttl": "1h"}
	count(answer.reasons) == 4
}

# Where no role is left, nobody is asked: the call is denied.
test_roles_that_exclude_one_another[note] if {
	some note, case in {
		"of the approval": {"core": a_day, "org": {"roles": ["lead"]}, "site": {"roles": ["owner"]}},
		"of the core and a layer": {"core": object.union(a_day, {"roles": ["lead"]}), "org": {"roles": ["owner"]}, "site": {}},
		"of a stage": {
			"core": a_day, "org": {"stages": [{"name": "legal"}, {"name": "team", "roles": ["lead"]}]},
			"site": {"stages": [{"name": "team", "roles": ["owner"]}]},
		},
	}
	answer := asking_under(case.core, case.org, case.site)
	answer.effect == "deny"
	answer.status == "invalid_state"
	answer.reasons[0].code == "approval_impossible"
}

# Nor can an approval be used that was given before.
test_nothing_runs_where_nobody_could_approve if {
	layers := {"org": {"require_approval": {object.union(four_eyes, {"approval": {"roles": ["lead"]}})}}, "site": {"require_approval": {object.union(four_eyes, {"approval": {"roles": ["owner"]}})}}}
	votes := [object.union(vote("ann"), {"roles": ["lead", "owner"]})]
	every call in [draft_with("approved", {"votes": votes}), object.union(draft_with("approved", {"votes": votes}), {"tool": {"approval": "by_rule"}})] {
		under(call, layers).reasons[0].code == "approval_impossible"
	}
}

# A term of the core that nobody knows denies, as it does without layers in Go. Merged away it would be a layer's gift.
test_a_term_of_the_core_is_not_lost[note] if {
	some note, core in {
		"misspelt": {"aprovers": 2}, "a word for a truth": {"distinct_from_actor": "true"}, "too many": {"approvers": 11},
		"an unknown member of a stage": {"stages": [{"name": "legal", "aprovers": 2}]},
	}
	answer := asking_under(core, {}, {})
	answer.effect == "deny"
	answer.status == "policy_error"
}

# An approval that was given under less waits again for what is missing, and keeps its votes.
test_given_under_less[note] if {
	some note, terms in {
		"approvers": {"approvers": 2}, "lifetime": {"lifetime": 2}, "roles": {"roles": ["lead"]}, "reason": {"reason_required": true},
		"stages": {"stages": [{"name": "legal"}]},
	}
	call := draft_with("approved", {})
	asked(call).status == "ok"
	under(call, {"site": {"require_approval": {object.union(four_eyes, {"approval": terms})}}}).status == "approval_required"
}

test_the_actor_under_a_layer if {
	call := draft_with("approved", {"votes": [vote("learner")]})
	asked(call).status == "ok"
	under(call, {"site": {"require_approval": {object.union(four_eyes, {"approval": {"distinct_from_actor": true}})}}}).status == "approval_required"
}
