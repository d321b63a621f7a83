# Rows 5, 7 and 8: may this task use this tool, with its scopes, on this target?
package policy

# METADATA
# title: The tool is not among the task's tools
# description: |
#   The name must be, exactly, one that the task's profile lists and that a tool is registered under. Nobody is asked
#   to confirm a tool that the task may not use.
# custom:
#   code: tool_denied
#   effect: deny
#   message: the tool is not among the task's tools
#   remedy: If the task should be able to use it, add the tool's exact name to the tools of the task's profile.
tool_denied := _answer(rego.metadata.rule())

# METADATA
# title: A scope is missing
# description: The tool requires a scope that the task does not hold.
# custom:
#   code: scope_denied
#   effect: deny
#   message: the task lacks a scope that the tool requires
#   remedy: If the task should have it, add the scope to the task's profile.
scope_denied := _answer(rego.metadata.rule())

# METADATA
# title: The target is outside the task's resources
# description: |
#   The tool's target is guarded, and is in none of the sets that the task's profile names. A call without a target,
#   and a tool with a guard that this policy does not know, are denied too.
# custom:
#   code: resource_denied
#   effect: deny
#   message: the target is not among the task's resources
#   remedy: If the task should reach it, add the target to a set that the task's profile names.
resource_denied := _answer(rego.metadata.rule())

_tool_granted if {
	data.profiles[input.task.profile].tools[input.call.tool] == true
	input.tool.name == input.call.tool
}

_scopes_granted if {
	every scope in input.tool.scopes { input.task.scopes[scope] == true }
}

_target_granted if input.tool.resource == ""

_target_granted if {
	input.tool.resource == "readable"
	some set, true in data.profiles[input.task.profile].readable
	data.readable[set][input.call.target] == true
}

_target_granted if {
	input.tool.resource == "writable"
	some set, true in data.profiles[input.task.profile].writable
	data.writable[set][input.call.target] == true
}
