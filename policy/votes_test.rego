# Row 14: roles, and stages that are complete one after the other.
package policy_test

import data.policy

held(reviewer, roles) := object.union(vote(reviewer), {"roles": roles})

staged(reviewer, stage, roles) := object.union(held(reviewer, roles), {"stage": stage})

# The status of a draft that is approved with these votes, under these terms of the core.
voted(terms, votes) := decision.status if {
	decision := policy.decision with input as draft_with("approved", {"votes": votes}) with data.profiles as profiles
		with policy._terms as terms
}

test_roles[note] if {
	some note, case in {
		"the role": {"roles": ["lead"], "votes": [held("ann", ["lead"])], "want": "ok"},
		"one of two": {"roles": ["lead", "owner"], "votes": [held("ann", ["audit", "owner"])], "want": "ok"},
		"another role": {"roles": ["lead"], "votes": [held("ann", ["owner"])], "want": "approval_required"},
		"another case": {"roles": ["lead"], "votes": [held("ann", ["Lead"])], "want": "approval_required"},
		"no role": {"roles": ["lead"], "votes": [vote("ann")], "want": "approval_required"},
		"a role that is text": {"roles": ["lead"], "votes": [held("ann", "lead")], "want": "approval_required"},
		"one vote with, one without": {"roles": ["lead"], "votes": [vote("ben"), held("ann", ["lead"])], "want": "ok"},
	}
	voted({"roles": case.roles}, case.votes) == case.want
}

two_stages := {"stages": [{"name": "team", "approvers": 2}, {"name": "legal", "roles": ["counsel"]}]}

ann := staged("ann", "team", [])

ben := staged("ben", "team", [])

cem := staged("cem", "legal", ["counsel"])

test_stages[note] if {
	some note, case in {
		"in order": {"votes": [ann, ben, cem], "want": "ok"},
		"the first not complete": {"votes": [ann, cem], "want": "approval_required"},
		"only the first": {"votes": [ann, ben], "want": "approval_required"},
		"only the last": {"votes": [cem], "want": "approval_required"},
		"none": {"votes": [], "want": "approval_required"},
		"the last before the first is complete": {"votes": [ann, cem, ben], "want": "approval_required"},
		"and again after it": {"votes": [ann, cem, ben, staged("dee", "legal", ["counsel"])], "want": "ok"},
		"more than enough in the first": {"votes": [ann, ben, cem, staged("dee", "team", [])], "want": "ok"},
		"one person twice in the first": {"votes": [ann, ann, cem], "want": "approval_required"},
		"without the stage's role": {"votes": [ann, ben, staged("dee", "legal", ["lead"])], "want": "approval_required"},
		"of a stage that is not asked for": {"votes": [ann, ben, staged("dee", "finance", ["counsel"])], "want": "approval_required"},
		"of no stage": {"votes": [ann, ben, held("dee", ["counsel"])], "want": "approval_required"},
		"a rejection among them": {"votes": [ann, ben, cem, object.union(vote("dee"), {"decision": "rejected"})], "want": "approval_required"},
	}
	voted(two_stages, case.votes) == case.want
}

# A stage is complete only by votes that count for it, and those come after the stage before it.
test_stages_one_after_the_other[note] if {
	terms := {"stages": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}
	some note, case in {
		"a b c": "ok", "b a c b": "approval_required", "b a b c": "ok", "c b a": "approval_required", "a c b": "approval_required",
		"a c b c": "ok", "c b a b c": "ok", "a a b c": "ok", "a b": "approval_required",
	}
	voted(terms, [staged(sprintf("p%d", [i]), name, []) | some i, name in split(note, " ")]) == case
}

# What the terms ask for as a whole, each stage asks for too.
test_stages_under_terms[note] if {
	some note, case in {
		"people beyond the stages": {"terms": {"approvers": 4}, "votes": [ann, ben, cem], "want": "approval_required"},
		"as many, in the last stage": {"terms": {"approvers": 4}, "votes": [ann, ben, cem, staged("dee", "legal", ["counsel"])], "want": "ok"},
		"fewer than the stages have": {"terms": {"approvers": 1}, "votes": [ann, ben, cem], "want": "ok"},
		"one person in two stages": {"terms": {"approvers": 3}, "votes": [ann, ben, staged("ann", "legal", ["counsel"])], "want": "approval_required"},
		"a role for all": {"terms": {"roles": ["counsel", "lead"]}, "votes": [ann, ben, cem], "want": "approval_required"},
		"a role that all have": {
			"terms": {"roles": ["counsel", "lead"]}, "want": "ok",
			"votes": [staged("ann", "team", ["lead"]), staged("ben", "team", ["lead"]), cem],
		},
		"a lifetime": {"terms": {"lifetime": 2}, "votes": [ann, ben, cem], "want": "approval_required"},
		"a reason": {"terms": {"reason_required": true}, "votes": [ann, ben, cem], "want": "approval_required"},
		"not the actor": {
			"terms": {"distinct_from_actor": true}, "votes": [ann, staged("learner", "team", []), cem],
			"want": "approval_required",
		},
	}
	voted(object.union(two_stages, case.terms), case.votes) == case.want
}
