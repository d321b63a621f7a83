# Rows 4 and 6: is the call what a proposal, and the tool's schema, must look like?
package policy

# METADATA
# title: Not a proposal
# description: What arrived is not an object of call_id, tool and arguments in strict JSON. The message says why.
# custom:
#   code: invalid_proposal
#   effect: deny
#   message: this is not a proposal
#   remedy: The agent, or the adapter in front of it, must send one JSON object with call_id, tool and arguments alone.
invalid_proposal := object.union(_answer(meta), {"reasons": [{"code": meta.custom.code, "message": message}]}) if {
	meta := rego.metadata.rule()
	message := sprintf("%s: %s", [meta.custom.message, input.call.malformed])
}

# METADATA
# title: The arguments break the tool's schema
# description: There is one reason for each violation. It names the place and the broken rule, never the value.
# custom:
#   code: invalid_arguments
#   effect: deny
#   message: the arguments do not match the tool's schema
#   remedy: Show the agent the tool's schema. If the call is one that should be possible, the schema is too narrow.
invalid_arguments := object.union(_answer(meta), {"reasons": reasons}) if {
	meta := rego.metadata.rule()
	reasons := [{"code": meta.custom.code, "message": _violation(violation)} | some violation in input.call.violations]
}

# The path of the arguments as a whole is empty.
_violation(violation) := trim_prefix(sprintf("%s: %s", [violation.path, violation.message]), ": ")
