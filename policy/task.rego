# Rows 1 to 3: may the task go on?
package policy

# METADATA
# title: The task was cancelled
# description: Cancelling is final. It stops every call of the task, also one whose result is already known.
# custom:
#   code: cancelled
#   effect: deny
#   message: the task was cancelled
#   remedy: A cancelled task stays cancelled. Create another one for the work that is left.
cancelled := _answer(rego.metadata.rule())

# METADATA
# title: The task's time is up
# description: The deadline itself is already too late.
# custom:
#   code: deadline_exceeded
#   effect: deny
#   message: the task's time is up
#   remedy: Create a task with a later deadline for the work that is left.
deadline_exceeded := _answer(rego.metadata.rule())

# METADATA
# title: The task has used up its steps
# description: Every judged call is a step, whatever came of it. The last permitted step is max_steps itself.
# custom:
#   code: budget_exhausted
#   effect: deny
#   message: the task has used up its steps
#   remedy: Look at why the task needed so many calls. Then create another task, or raise max_steps in its profile.
budget_exhausted := _answer(rego.metadata.rule())

_in_time if is_null(input.state.deadline)

_in_time if input.now.epoch < input.state.deadline.epoch
