# Rows 9 and 12, and what of row 14 does not come from the tool: the rules of the organisation (package org) and of the
# site (package site). Exactly six sets are read, forbid, deny and require_approval of either:
#
#   forbid            {code, message, status}: authority that this call lacks here, asked before any saved result
#   deny              {code, message, status}: a condition on a new effect
#   require_approval  {code, message}, and possibly approval, terms that are added to those of the core
#
# A layer can deny and can ask for more. Nothing in it is read on the way to anything else, so it can only narrow.
package policy

# METADATA
# title: A rule of a layer is malformed
# description: |
#   A set of the organisation or of the site is none, or has a member that is not of its form: of a refusal exactly code,
#   message and status, and the status one that denies; of require_approval code and message, and at most approval with
#   terms that are known, and the status approval_required. It is not passed over: nobody could tell what it was to stop.
#   There is a reason for each such member.
# custom:
#   code: policy_malformed
#   status: policy_error
#   effect: deny
#   message: a rule of the organisation or of the site is malformed
#   remedy: Mend the rule that the reason names. Until then the calls that it is asked about are denied.
policy_malformed := object.union(_answer(meta), {"status": meta.custom.status, "reasons": reasons}) if {
	meta := rego.metadata.rule()
	reasons := [{"code": meta.custom.code, "message": fault} | some fault in _faults]
}

# METADATA
# title: A layer forbids the call
# description: |
#   The status is that of the first member of forbid, the organisation's before the site's, then in order. There is a
#   reason for each member.
# custom:
#   code: forbidden
#   effect: deny
#   message: a rule of the organisation or of the site forbids the call
#   remedy: The rule that has the reason's code says what is missing. Ask whoever keeps the rules of the organisation or of the site.
forbidden := _refused(rego.metadata.rule(), _forbidding)

# METADATA
# title: A layer denies a new effect
# description: |
#   The status is that of the first member of deny, the organisation's before the site's, then in order. There is a reason
#   for each member. What was done before is not asked about again: its saved result is still the answer.
# custom:
#   code: denied
#   effect: deny
#   message: a rule of the organisation or of the site denies the call as it is now
#   remedy: The rule that has the reason's code says on which condition the call may run. Ask whoever keeps the rules of the organisation or of the site.
denied := _refused(rego.metadata.rule(), _denying)

_refused(meta, members) := object.union(_answer(meta), {"status": members[0].status, "reasons": _reasons_of(members)})

_reasons_of(members) := [{"code": member.code, "message": member.message} | some member in members]

# The opposites of the lines of the table. No layer says anything about most calls, and that is found out first, and
# cheaply: a set that is missing is not other than empty.
_layers_sound if _silent

_layers_sound if count(_faults) == 0

_unforbidden if _silent

_unforbidden if count(_forbidding) == 0

_undenied if _silent

_undenied if count(_denying) == 0

_unasked if _silent

_unasked if count(_asking) == 0

_silent if not _spoken

_spoken if data.org.forbid != set()

_spoken if data.site.forbid != set()

_spoken if data.org.deny != set()

_spoken if data.site.deny != set()

_spoken if data.org.require_approval != set()

_spoken if data.site.require_approval != set()

# The members in the order in which they count.
_forbidding := array.concat(sort({m | some m in data.org.forbid}), sort({m | some m in data.site.forbid}))

_denying := array.concat(sort({m | some m in data.org.deny}), sort({m | some m in data.site.deny}))

_asking := array.concat(sort({m | some m in data.org.require_approval}), sort({m | some m in data.site.require_approval}))

_refusals["data.org.forbid"] := data.org.forbid

_refusals["data.site.forbid"] := data.site.forbid

_refusals["data.org.deny"] := data.org.deny

_refusals["data.site.deny"] := data.site.deny

_demands["data.org.require_approval"] := data.org.require_approval

_demands["data.site.require_approval"] := data.site.require_approval

_faults contains sprintf("%s must be a set of objects", [name]) if {
	some name, members in object.union(_refusals, _demands)
	not _collection(members)
}

_faults contains sprintf("%s, %s: it must be exactly code, message and status, with a status that denies", [name, _called(member)]) if {
	some name, members in _refusals
	_collection(members)
	some member in members
	not _refusal(member)
}

_faults contains sprintf("%s, %s: it must be code and message, and at most approval with known terms", [name, _called(member)]) if {
	some name, members in _demands
	_collection(members)
	some member in members
	not _demand(member)
}

# Merging takes the terms that it knows. One of the core that is not known is not lost for that.
_faults contains sprintf("_terms, %s: it is no known term, or not of its form", [name]) if {
	some name, value in _terms
	not _term(name, value)
}

_collection(x) if is_set(x)

_collection(x) if is_array(x)

# A fault names its member by the code, where it has one that is a word.
_called(member) := member.code if _word(member.code)

else := "a member without a code"

_refusal(member) if {
	is_object(member)
	object.keys(member) == {"code", "message", "status"}
	_word(member.code)
	_text(member.message)
	_word(member.status)
	not member.status in _not_of_denials
}

# Statuses that go with another effect, or that only running a call or failing to decide can give.
_not_of_denials := {
	"ok", "replayed", "resumed", "dry_run", "approval_required", "policy_error", "started", "not_found", "timeout",
	"unavailable", "invalid_result", "internal_error", "retry_exhausted",
}

_demand(member) if {
	is_object(member)
	object.keys(member) - {"approval", "status"} == {"code", "message"}
	_word(member.code)
	_text(member.message)
	object.get(member, "status", "approval_required") == "approval_required"
	terms := object.get(member, "approval", {})
	is_object(terms)
	every name, value in terms { _term(name, value) }
}

_term("approvers", n) if _few(n)

_term("lifetime", n) if _few(n)

_term("ttl", ttl) if {
	is_string(ttl)
	regex.match(`^([0-9]{1,6}(\.[0-9]{1,6})?(ns|us|ms|s|m|h)){1,6}$`, ttl)
	time.parse_duration_ns(ttl) > 0
	time.parse_duration_ns(ttl) <= time.parse_duration_ns("720h")
}

_term("distinct_from_actor", x) if is_boolean(x)

_term("reason_required", x) if is_boolean(x)

_term("roles", roles) if _roles(roles)

_term("stages", stages) if {
	is_array(stages)
	_few(count(stages))
	count({stage.name | some stage in stages}) == count(stages)
	every stage in stages { _stage(stage) }
}

_stage(stage) if {
	is_object(stage)
	object.keys(stage) - {"approvers", "roles"} == {"name"}
	_text(stage.name)
	_few(object.get(stage, "approvers", 1))
	_roles(object.get(stage, "roles", ["any"]))
}

_roles(roles) if {
	_collection(roles)
	count(roles) > 0
	count({role | some role in roles}) == count(roles)
	every role in roles { _text(role) }
}

_few(n) if n in numbers.range(1, 10)

_text(x) if {
	is_string(x)
	x != ""
}

_word(x) if {
	is_string(x)
	regex.match(`^[a-z][a-z0-9_]{0,63}$`, x)
}
