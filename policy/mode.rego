# Row 16: is this a dry run, and would the call change something, or reach outside?
package policy

# METADATA
# title: A dry run stops here
# description: |
#   Everything before the effect was real: authority, key, budgets, approval, room for the target. The call would run
#   now, and does not. Calls that change nothing, and stay inside this process, run in a dry run too.
# custom:
#   code: dry_run
#   effect: simulate
#   message: the call would run; nothing does in a dry run
#   remedy: Nothing needs to be done. Propose the call outside the dry run to carry it out.
dry_run := object.union(_answer(rego.metadata.rule()), _approval_terms)

# May the call run in this mode? A tool that does not say that it changes nothing is taken to change something, and one
# that does not say that it stays inside is taken to reach outside.
_effects_wanted if input.mode == "enforce"

_effects_wanted if {
	input.mode == "dry_run"
	input.tool.effect in {"pure", "read"}
	input.tool.outside == false
}
