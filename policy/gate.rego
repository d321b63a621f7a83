# The gate: the two questions that come before all others, by themselves. Rows 5 and 14 ask them of a task's tools and of
# a person's approval.
package policy

# METADATA
# title: The gate
# description: |
#   deny     the tool is not allowed; nothing else is asked, and no confirmation can change that
#   confirm  it is allowed, it changes something, and nobody has confirmed this call
#   allow    otherwise
#
#   It is asked with input.gate alone: name, allowed and writes (lists of names), and confirmed. Names are compared
#   exactly. Where something is missing or is not of its kind, the answer is the one that lets less through.
gate := "allow" if {
	_allowed
	is_array(input.gate.writes)
	not input.gate.name in input.gate.writes
}

else := "allow" if {
	_allowed
	input.gate.confirmed == true
}

else := "confirm" if _allowed

else := "deny"

_allowed if {
	is_string(input.gate.name)
	is_array(input.gate.allowed)
	input.gate.name in input.gate.allowed
}
