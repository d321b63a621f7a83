# Rows 9 and 12, and who else asks for a person: what the organisation and the site can say, and that it only narrows.
package policy_test

import data.policy

no_mail := {"code": "no_mail", "message": "no mail from here", "status": "task_mismatch"}

closed := {"code": "closed", "message": "closed at night", "status": "outside_window"}

four_eyes := {"code": "four_eyes", "message": "a second person looks at drafts"}

# The answer where the layers are these: {"org": {…}, "site": {…}}.
under(call, layers) := decision if {
	decision := policy.decision with input as call with data.profiles as profiles
		with data.org as object.get(layers, "org", {}) with data.site as object.get(layers, "site", {})
}

by_rule := object.union(draft, {"tool": {"approval": "by_rule"}})

replay := object.union(granted, {"state": {"operation": committed}})

test_a_refusal_denies_with_its_own_status[note] if {
	some set in ["forbid", "deny"]
	some layer in ["org", "site"]
	some call_is, call in {"a read": read, "an approved write": granted, "a write by rule": by_rule, "nobody asked yet": draft}
	note := sprintf("data.%s.%s, %s", [layer, set, call_is])
	under(call, {layer: {set: {closed}}}) == {
		"effect": "deny", "status": "outside_window", "policy_version": "unversioned",
		"reasons": [{"code": "closed", "message": "closed at night"}],
	}
}

# The organisation comes before the site, and within a set the order is that of the members; each is a reason.
test_members_in_order[note] if {
	some set in ["forbid", "deny"]
	note := set
	a := {"code": "a", "message": "first", "status": "later_in_order"}
	b := {"code": "b", "message": "second", "status": "earlier"}
	answer := under(granted, {"org": {set: {closed}}, "site": {set: {b, a}}})
	answer.status == "outside_window"
	answer.reasons == [
		{"code": "closed", "message": "closed at night"}, {"code": "a", "message": "first"},
		{"code": "b", "message": "second"},
	]
	under(granted, {"site": {set: [b, a]}}).status == "later_in_order"
}

# A denial can have a status that the core denies with, too.
test_a_status_of_the_core if under(granted, {"site": {"deny": {object.union(closed, {"status": "scope_denied"})}}}).status == "scope_denied"

test_sets_without_members_say_nothing[note] if {
	some note, nothing in {"a set": set(), "an array": []}
	silent := {set: nothing | some set in ["forbid", "deny", "require_approval"]}
	every call in [read, granted, draft, by_rule, replay] {
		under(call, {"org": silent, "site": silent}) == asked(call)
	}
}

test_forbidden_calls_are_not_replayed[note] if {
	some note, layer in {"org": "org", "site": "site"}
	asked(replay).status == "replayed"
	under(replay, {layer: {"forbid": {no_mail}}}).status == "task_mismatch"
	under(replay, {layer: {"deny": {no_mail}}}).status == "replayed"
}

# What was approved and begun is carried on with, unless authority is lacking.
test_resume_and_layers[note] if {
	some note, layer in {"org": "org", "site": "site"}
	under(lost, {layer: {"require_approval": {four_eyes}}}).status == "resumed"
	under(lost, {layer: {"forbid": {no_mail}}}).status == "task_mismatch"
	under(lost, {layer: {"deny": {no_mail}}}).status == "resumed"
}

# Where in the table the three lines stand: the rows before one of them win, and it wins over those after it.
test_order_of_layers[note] if {
	some layers in [{"org": {"forbid": {no_mail}}}, {"site": {"deny": {closed}}}, {"site": {"forbid": {{"code": "no"}}}}]
	some i, row in rows
	line := lines_of(layers)
	note := sprintf("%s, %s", [line.status, row.status])
	want := {true: row.status, false: line.status}[i < line.rows_before]
	under(object.union(granted, row.change), layers).status == want
}

lines_of(layers) := {"status": "outside_window", "rows_before": 16} if layers.site.deny

else := {"status": "policy_error", "rows_before": 8} if layers.site.forbid

else := {"status": "task_mismatch", "rows_before": 8}

test_forbid_before_deny if under(granted, {"org": {"deny": {closed}}, "site": {"forbid": {no_mail}}}).status == "task_mismatch"

test_layers_in_a_dry_run[note] if {
	some note, case in {
		"nothing said": {"layers": {}, "want": "dry_run"},
		"forbid": {"layers": {"site": {"forbid": {no_mail}}}, "want": "task_mismatch"},
		"deny": {"layers": {"site": {"deny": {closed}}}, "want": "outside_window"},
		"malformed": {"layers": {"site": {"deny": {"closed"}}}, "want": "policy_error"},
		"a person": {"layers": {"site": {"require_approval": {four_eyes}}}, "want": "approval_required"},
	}
	under(object.union(by_rule, {"mode": "dry_run"}), case.layers).status == case.want
}

# Whatever a layer says, as far as it is well formed: a call that the core does not let through stays where it is.
test_a_layer_only_narrows[note] if {
	some row in rows
	some set in ["forbid", "deny", "require_approval"]
	some status in ["ok", "outside_window"]
	member := object.union({"code": "wider", "message": "let it through", "status": status}, approval_of(set))
	note := sprintf("%s, %s, %s", [row.status, set, status])
	call := object.union(granted, row.change)
	core := asked(call).effect
	answer := under(call, {"site": {set: {member}, "allow": {member}, "decision": {"effect": "allow"}}})
	answer.effect in {"deny", core}
}

approval_of("require_approval") := {"approval": {"approvers": 1, "lifetime": 10, "ttl": "720h"}}

approval_of("forbid") := {}

approval_of("deny") := {}

malformed_refusals := {
	"a string": "closed", "a number": 7, "true": true, "null": null, "an empty object": {}, "a list": ["closed"],
	"no code": object.remove(closed, ["code"]), "no message": object.remove(closed, ["message"]),
	"no status": object.remove(closed, ["status"]), "a key more": object.union(closed, {"effect": "deny"}),
	"a null more": object.union(closed, {"retryable": null}), "a code of null": object.union(closed, {"code": null}),
	"an empty code": object.union(closed, {"code": ""}), "a code in capitals": object.union(closed, {"code": "Closed"}),
	"a code with a line break": object.union(closed, {"code": "closed\n"}),
	"a code that is a number": object.union(closed, {"code": 7}), "an empty message": object.union(closed, {"message": ""}),
	"a message that is none": object.union(closed, {"message": ["closed"]}),
	"an empty status": object.union(closed, {"status": ""}), "a status in capitals": object.union(closed, {"status": "CLOSED"}),
	"a status of null": object.union(closed, {"status": null}),
	"a status of 65 letters": object.union(closed, {"status": sprintf("a%064d", [0])}),
	"a status that allows": object.union(closed, {"status": "ok"}),
	"a status that replays": object.union(closed, {"status": "replayed"}),
	"a status that resumes": object.union(closed, {"status": "resumed"}),
	"a status that simulates": object.union(closed, {"status": "dry_run"}),
	"a status that asks": object.union(closed, {"status": "approval_required"}),
	"a status of a broken policy": object.union(closed, {"status": "policy_error"}),
	"a status of execution": object.union(closed, {"status": "timeout"}),
	"a status of a call under way": object.union(closed, {"status": "started"}),
	"another set's member": four_eyes,
}

malformed_demands := {
	"a string": "four_eyes", "null": null, "an empty object": {}, "a list": [four_eyes],
	"no code": object.remove(four_eyes, ["code"]), "no message": object.remove(four_eyes, ["message"]),
	"a code with a space": object.union(four_eyes, {"code": "four eyes"}),
	"an empty message": object.union(four_eyes, {"message": ""}), "a key more": object.union(four_eyes, {"approvers": 2}),
	"another status": object.union(four_eyes, {"status": "ok"}), "a status that denies": object.union(four_eyes, {"status": "outside_window"}),
	"a status of null": object.union(four_eyes, {"status": null}), "terms of null": object.union(four_eyes, {"approval": null}),
	"terms that are a number": object.union(four_eyes, {"approval": 2}), "terms in a list": object.union(four_eyes, {"approval": []}),
}

malformed_terms := {
	"an unknown term": {"approver": 2}, "no approver": {"approvers": 0}, "too many": {"approvers": 11}, "half a one": {"approvers": 1.5},
	"approvers as text": {"approvers": "2"}, "approvers of null": {"approvers": null}, "no lifetime": {"lifetime": 0},
	"a lifetime too long": {"lifetime": 11}, "B046: a ttl of zero": {"ttl": "0s"}, "B046: a ttl below zero": {"ttl": "-1h"},
	"B046: a ttl without unit": {"ttl": "60"}, "B046: a ttl as a number": {"ttl": 60}, "B046: a ttl of 100 years": {"ttl": "876000h"},
	"B046: an empty ttl": {"ttl": ""}, "a ttl just too long": {"ttl": "720h1s"}, "a flag as text": {"distinct_from_actor": "true"},
	"a flag of null": {"reason_required": null}, "roles of nobody": {"roles": []}, "a role as text": {"roles": "lead"},
	"roles as an object": {"roles": {"lead": true}}, "an empty role": {"roles": [""]}, "a role of null": {"roles": [null]},
	"a role twice": {"roles": ["lead", "lead"]}, "no stage": {"stages": []}, "stages as a set": {"stages": {{"name": "legal"}}},
	"a stage that is a name": {"stages": ["legal"]}, "a stage without a name": {"stages": [{"approvers": 1}]},
	"a stage without its name": {"stages": [{"name": ""}]}, "a stage twice": {"stages": [{"name": "legal"}, {"name": "legal"}]},
	"a stage with a key more": {"stages": [{"name": "legal", "lifetime": 1}]}, "a stage of nobody": {"stages": [{"name": "legal", "approvers": 0}]},
	"a stage without a role": {"stages": [{"name": "legal", "roles": []}]},
	"too many stages": {"stages": [{"name": sprintf("s%d", [n])} | some n in numbers.range(1, 11)]},
}

# A member that is not of its form is never passed over.
test_malformed_members[note] if {
	some place, members in {
		["org", "forbid"]: malformed_refusals, ["site", "deny"]: malformed_refusals,
		["site", "require_approval"]: malformed_demands,
		["org", "require_approval"]: {name: object.union(four_eyes, {"approval": terms}) | some name, terms in malformed_terms},
	}
	some fault, member in members
	note := sprintf("data.%s.%s, %s", [place[0], place[1], fault])
	broken(under(read, {place[0]: {place[1]: {member}}}), sprintf("data.%s.%s", place))
}

# Nor is it beside members that are well formed: then nothing is given either, no saved result and no place in the queue.
test_malformed_beside_others[note] if {
	some layer in ["org", "site"]
	some set, well_formed in {"forbid": no_mail, "deny": closed, "require_approval": four_eyes}
	some kind, members in {"a set": {well_formed, {"code": "half"}}, "an array": [well_formed, null]}
	note := sprintf("data.%s.%s, %s", [layer, set, kind])
	every call in [granted, draft, replay] {
		broken(under(call, {layer: {set: members}}), sprintf("data.%s.%s", [layer, set]))
	}
}

broken(answer, named) if {
	answer.effect == "deny"
	answer.status == "policy_error"
	every reason in answer.reasons { reason.code == "policy_malformed" }
	some reason in answer.reasons
	startswith(reason.message, named)
}

# So is a set that is none.
test_malformed_sets[note] if {
	some layer in ["org", "site"]
	some set in ["forbid", "deny", "require_approval"]
	some kind, value in {
		"an object": {"closed": closed}, "an empty object": {}, "a string": "closed", "an empty string": "", "a number": 0,
		"true": true, "false": false, "null": null,
	}
	note := sprintf("data.%s.%s is %s", [layer, set, kind])
	broken(under(replay, {layer: {set: value}}), sprintf("data.%s.%s must be a set", [layer, set]))
}

test_a_fault_names_its_member if {
	answer := under(read, {"site": {"deny": {object.remove(closed, ["status"]), "x"}}})
	{reason.message | some reason in answer.reasons} == {
		"data.site.deny, closed: it must be exactly code, message and status, with a status that denies",
		"data.site.deny, a member without a code: it must be exactly code, message and status, with a status that denies",
	}
}

# What a layer asks of people is asked of them whatever the tool says; the terms then go with the allowed call.
test_a_layer_asks_for_a_person[note] if {
	some layer in ["org", "site"]
	some member in [four_eyes, object.union(four_eyes, {"status": "approval_required"}), object.union(four_eyes, {"approval": {}})]
	note := sprintf("%s, %v", [layer, object.keys(member)])
	layers := {layer: {"require_approval": {member}}}
	asking := under(by_rule, layers)
	asking.status == "approval_required"
	asking.effect == "require_approval"
	asking.reasons == [{"code": "four_eyes", "message": "a second person looks at drafts"}]
	asking.approval.approvers == 1
	given := under(object.union(by_rule, {"state": {"approval": approved}}), layers)
	given.status == "ok"
	given.approval == asking.approval
	under(object.union(by_rule, {"state": {"approval": object.union(approved, {"state": "rejected"})}}), layers).status == "approval_rejected"
}

test_whoever_asks_is_a_reason if {
	other := {"code": "other", "message": "another reason"}
	[reason.code | some reason in under(draft, {"org": {"require_approval": {other}}, "site": {"require_approval": {four_eyes}}}).reasons] == ["approval_required", "other", "four_eyes"]
}

test_a_read_can_need_a_person if under(read, {"site": {"require_approval": {four_eyes}}}).status == "approval_required"
