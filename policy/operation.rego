# Rows 10 and 11: was the effect that this call intends already brought about, or tried?
package policy

# METADATA
# title: The key belongs to another call
# description: |
#   An operation with this idempotency key exists, and was another call. No key names two effects. One that is absent
#   leaves its key free.
# custom:
#   code: idempotency_conflict
#   effect: deny
#   message: the idempotency key was used for a different call
#   remedy: The agent must use a new key for a new effect, or repeat the first call unchanged to get its result.
idempotency_conflict := _answer(rego.metadata.rule())

# METADATA
# title: Already done
# description: |
#   The same call was committed before. Its saved result is the answer, or that the result is not known, and nothing runs
#   again.
# custom:
#   code: replayed
#   effect: replay
#   message: the call was carried out before; this is its saved result
#   remedy: Nothing needs to be done. For a second effect the agent must use a new idempotency key.
replayed := _answer(rego.metadata.rule())

# METADATA
# title: Under way
# description: |
#   The same call was started and has not ended; or the same effect was, under another key; or this is a write, and
#   another write of the task is under way. It may be sent again later.
# custom:
#   code: in_progress
#   effect: deny
#   retryable: true
#   message: the call, or another write of its task, is already under way
#   remedy: Wait until the operation ends.
in_progress := object.union(_answer(meta), {"retryable": meta.custom.retryable}) if {
	meta := rego.metadata.rule()
}

# METADATA
# title: Tried again
# description: |
#   The same call was tried before, nobody knows what came of it, and the tool still remembers its key: it is called once
#   more under that key, and does not do twice what it did. Whoever approved the call approved this. It takes of the
#   budgets what any run takes.
# custom:
#   code: resumed
#   effect: resume
#   message: the call was tried before, and is tried again under the same key
#   remedy: Nothing needs to be done.
resumed := _answer(rego.metadata.rule())

# METADATA
# title: The outcome is not known
# description: |
#   The same call was started, or the same effect under another key, and nobody knows what came of it. It is not tried
#   again: the tool could do it twice, or nothing runs in a dry run.
# custom:
#   code: outcome_unknown
#   effect: deny
#   message: the call was tried before and its outcome is not known
#   remedy: Find out whether the effect took place before anything is tried again.
outcome_unknown := _answer(rego.metadata.rule())

_taken if {
	input.state.operation.state in {"committed", "started", "unknown"}
	input.state.operation.same_signature == false
}

_replayable if {
	_permitted
	input.state.operation.state == "committed"
	input.state.operation.same_signature == true
}

# Where something is under way and something else is not known, the table says to wait first. What does not say that it
# changes nothing waits as a write does.
_under_way if input.state.operation.state == "started"

_under_way if input.state.unsettled == "started"

_under_way if {
	input.state.write_started == true
	not input.tool.effect in {"pure", "read"}
}

# By the order of the table what layers deny, a person's approval and room for the target are not asked about again: they
# are conditions on a new effect. Everything else that is not as it should be leaves the outcome unknown.
_resumable if {
	_permitted
	input.mode == "enforce"
	input.tool.effect == "write"
	input.tool.outside == true
	input.state.operation.state == "unknown"
	input.state.operation.same_signature == true
	input.state.operation.repeatable == true
	is_null(input.state.unsettled)
	input.state.write_started == false
}

# Whatever else is said of an operation, in whatever words.
_unclear if {
	input.state.operation != null
	not _absent
}

_unclear if input.state.unsettled != null

# The opposite of rows 10 and 11: the call would be a new effect, and no other is in its way.
_fresh if {
	_untried
	is_null(input.state.unsettled)
	_alone
}

_untried if is_null(input.state.operation)

_untried if _absent

# Nothing of it took place, so the key is free, also for another call.
_absent if input.state.operation.state == "absent"

_alone if input.state.write_started == false

_alone if input.tool.effect in {"pure", "read"}
