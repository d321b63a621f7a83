# METADATA
# title: govern's policy
# description: |
#   Go reads one rule, data.policy.decision, and nothing else. It has exactly one value, an object:
#
#     effect          "allow", "simulate", "deny", "require_approval", "replay" or "resume"
#     status          the one word that the caller gets
#     reasons         [{code, message}]: what led to it
#     policy_version  data.govern.version, so that the answer says which policy gave it
#     retryable       true, where the same call may be sent again
#     approval        the terms of the approval, wherever one was demanded
#
#   Anything else that this policy could answer, also nothing, is a denial in Go.
#
#   Go puts in, from trusted state; the agent's words are in input.call alone:
#
#     input.now       rfc3339, epoch: the only clock
#     input.mode      "enforce" or "dry_run"
#     input.task      tenant, id, actor, profile, scopes {name: true}
#     input.call      id, tool, arguments, target (null if none), keyed, signature,
#                     malformed (null, or why it is not a proposal), violations [{path, message}]
#     input.tool      null, or name, version, effect, outside, approval, scopes [name], cost,
#                     resource ("", "readable" or "writable"), labels [word]
#     input.state     step, max_steps, cancelled, deadline (null, or rfc3339 and epoch),
#                     budgets (cost, attempts, output: those of the profile, each {limit, spent, reserved}),
#                     approval (null, or state, votes, expires_at_step, expires_at, policy_version, mode),
#                     operation (null, or state, same_signature, has_result, repeatable): what became of this call's key,
#                     unsettled (null, "started" or "unknown"): the worst of the same effect's other operations,
#                     write_started (is another write of the task under way?),
#                     pending {count, limit}, target_exists
#
#   The organisation and the site add rules of their own, which can only narrow: layers.rego says how.
#
#   Data that must be loaded:
#
#     data.profiles   {profile: {tools: {name: true}, readable: {set: true}, writable: {set: true},
#                     scopes: {name: true}, budgets: {name: limit}}}, from the configuration
#     data.readable   {set: {target: true}}, from the configuration or with the policy
#     data.writable   the same, for writes whose targets they guard
#     data.govern     version; without it the version is "unversioned"
package policy

# METADATA
# title: The decision on one proposal
# description: |
#   The first line whose condition holds. When an outcome holds stands here; what it says stands in its METADATA.
#
#   The numbers are those of docs/policy.md. `ok`, which is 17, comes first because most calls are allowed and finding
#   out is then cheap. It demands the opposite of every line under it, so its place changes no answer.
# entrypoint: true
decision := ok if {
	_permitted
	_effects_wanted
	_fresh
	_undenied
	_affordable
	_approved
	_room_for_target
}

else := cancelled if input.state.cancelled == true # 1

else := deadline_exceeded if input.now.epoch >= input.state.deadline.epoch # 2

else := budget_exhausted if input.state.step > input.state.max_steps # 3

else := invalid_proposal if input.call.malformed != null # 4

else := tool_denied if not _tool_granted # 5

else := invalid_arguments if input.call.violations != [] # 6

else := scope_denied if not _scopes_granted # 7

else := resource_denied if not _target_granted # 8

else := policy_malformed if not _layers_sound

else := forbidden if not _unforbidden # 9

else := idempotency_conflict if _taken # 10 and 11

else := replayed if _replayable # 10

else := in_progress if _under_way # 11

else := resumed if { # 11
	_resumable
	_affordable
}

else := budget_spent if { # 11, of a call to resume
	_resumable
	count(_overspent) > 0
}

else := outcome_unknown if _unclear # 11

else := denied if not _undenied # 12

else := budget_spent if count(_overspent) > 0 # 13

else := approval_impossible if _approval == "impossible" # 14

else := approval_required if _approval_awaited # 14

else := approval_rejected if _approval == "rejected" # 14

else := approval_expired if _approval == "expired" # 14

else := pending_limit if _approval == "over_limit" # 14

else := invalid_state if _approval == "spent" # 14

else := target_exists if not _room_for_target # 15

else := dry_run if _would_run # 16

else := no_rule_matched

# METADATA
# title: Allowed
# description: Everything that this policy asks for is there. Nothing is taken for granted because it is missing.
# custom:
#   code: ok
#   effect: allow
#   message: the call is allowed
#   remedy: Nothing needs to be done.
ok := object.union(_answer(rego.metadata.rule()), _approval_terms)

# METADATA
# title: No rule applies
# description: The input is none that this policy knows. It is always defined, so that there is always an answer, and denies.
# custom:
#   code: no_rule_matched
#   status: invalid_state
#   effect: deny
#   message: the policy has no rule for this call in its present state
#   remedy: Compare the recorded input with what the head of decision.rego describes. The policy and this version of govern may not fit together.
no_rule_matched := object.union(_answer(meta), {"status": meta.custom.status}) if meta := rego.metadata.rule()

# The opposite of rows 1 to 9: the task may go on, the call is well formed, it asks for nothing that the task may not
# do, and no layer forbids it or is broken. Whatever gives something (an effect, a saved result, a place in the queue of a person) demands it.
_permitted if {
	input.state.cancelled == false
	input.state.step <= input.state.max_steps
	_in_time
	is_null(input.call.malformed)
	_tool_granted
	input.call.violations == []
	_scopes_granted
	_target_granted
	_layers_sound
	_unforbidden
}

# Everything but the mode says that the call may run.
_would_run if {
	_permitted
	input.mode == "dry_run"
	not _effects_wanted
	_fresh
	_undenied
	_affordable
	_approved
	_room_for_target
}

_answer(meta) := {
	"effect": meta.custom.effect,
	"status": meta.custom.code,
	"reasons": [{"code": meta.custom.code, "message": meta.custom.message}],
	"policy_version": _version,
}

_version := data.govern.version

default _version := "unversioned"
