# A policy that has the rule and gives it no value for any input: govern must take silence for a denial.
package policy

decision := {"effect": "allow", "status": "ok", "reasons": [], "policy_version": data.govern.version} if {
	input.call.tool == "no_such_tool"
}
