# Rows 10 and 11: was the effect that this call intends already brought about, or tried?
package policy

# METADATA
# title: The key belongs to another call
# description: An operation with this idempotency key exists, and was another call. No key names two effects.
# custom:
#   code: idempotency_conflict
#   effect: deny
#   message: the idempotency key was used for a different call
#   remedy: The agent must use a new key for a new effect, or repeat the first call unchanged to get its result.
idempotency_conflict := _answer(rego.metadata.rule())

# METADATA
# title: Already done
# description: The same call was committed before. Its saved result is the answer, and nothing runs again.
# custom:
#   code: replayed
#   effect: replay
#   message: the call was carried out before; this is its saved result
#   remedy: Nothing needs to be done. For a second effect the agent must use a new idempotency key.
replayed := _answer(rego.metadata.rule())

# METADATA
# title: Under way
# description: The same call was started and has not ended. It may be sent again later.
# custom:
#   code: in_progress
#   effect: deny
#   retryable: true
#   message: the call is already under way
#   remedy: Wait until the operation ends.
in_progress := object.union(_answer(meta), {"retryable": meta.custom.retryable}) if {
	meta := rego.metadata.rule()
}

# METADATA
# title: The outcome is not known
# description: The same call was started, and nobody knows what came of it. It is not tried again.
# custom:
#   code: outcome_unknown
#   effect: deny
#   message: the call was tried before and its outcome is not known
#   remedy: Find out whether the effect took place before anything is tried again.
outcome_unknown := _answer(rego.metadata.rule())

_replayable if {
	_permitted
	input.state.operation.state == "committed"
	input.state.operation.same_signature == true
	input.state.operation.has_result == true
}
