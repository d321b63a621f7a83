# Row 14: the terms of an approval. What the core and the layers ask for is merged to the strictest.
package policy

_demanded := _terms if _unasked

else := _strictest

# Nobody could give the approval: no role is left, of its own or of a stage.
_out_of_reach if count(_demanded.roles) == 0

_out_of_reach if {
	some stage in _demanded.stages
	count(stage.roles) == 0
}

# Every layer's terms stand beside those of the core, which hold wherever a person is asked.
_stated := array.concat([_terms], [member.approval | some member in _asking; member.approval])

_strictest["approvers"] := max({1} | {n | some terms in _stated; n := terms.approvers})

_strictest["lifetime"] := min({10} | {n | some terms in _stated; n := terms.lifetime})

_strictest["ttl"] := min({ttl | some ttl in _ttls; time.parse_duration_ns(ttl) == least}) if {
	least := min({time.parse_duration_ns(ttl) | some ttl in _ttls})
}

_strictest[name] := true if {
	some name in ["distinct_from_actor", "reason_required"]
	some terms in _stated
	terms[name] == true
}

_strictest["roles"] := _common(_stated) if {
	some terms in _stated
	terms.roles
}

_strictest["stages"] := [_merged(_stage_parts[i].name) | some i in _first_parts] if count(_stage_parts) > 0

# Where the core says nothing, it means a day.
_ttls := {object.get(_terms, "ttl", "24h")} | {ttl | some terms in _stated; ttl := terms.ttl}

_common(demands) := sort(intersection({{role | some role in demand.roles} | some demand in demands; demand.roles}))

# Stages keep the order in which they are first named.
_stage_parts := [stage | some terms in _stated; some stage in terms.stages]

_first_parts := [i |
	some i, stage in _stage_parts
	not stage.name in {earlier.name | some earlier in array.slice(_stage_parts, 0, i)}
]

_merged(name) := object.union({"name": name, "approvers": approvers}, roles) if {
	parts := [part | some part in _stage_parts; part.name == name]
	approvers := max({1} | {n | some part in parts; n := part.approvers})
	roles := {"roles": common | some part in parts; part.roles; common := _common(parts)}
}
