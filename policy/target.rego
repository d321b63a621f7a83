# Row 15: is there room for what the call would create?
package policy

# METADATA
# title: The target exists already
# description: A write creates; it never overwrites, whatever its key and whoever approved it.
# custom:
#   code: target_exists
#   effect: deny
#   message: the target exists already and is never overwritten
#   remedy: The agent must choose another target.
target_exists := _answer(rego.metadata.rule())

_room_for_target if input.state.target_exists == false

_room_for_target if input.tool.effect in {"pure", "read"}
