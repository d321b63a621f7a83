# Row 13: is there enough left of the task's budgets for one more run?
package policy

# METADATA
# title: A budget is spent
# description: |
#   The run would take more of a budget than is left of it, and the message names which. Every allowed or resumed run
#   takes the tool's cost and one attempt, whatever came of it; what it gives is known only afterwards, so nothing runs
#   once the budget of output is reached. What calls under way may still take is reserved, and counts as spent. Replays
#   and denials take nothing, and what the profile does not bound is not bounded.
# custom:
#   code: budget_spent
#   status: budget_exhausted
#   effect: deny
#   message: what is left of the task's budget is not enough for this call
#   remedy: Look at what the task has spent it on. Then create another task, or raise the budget in its profile.
budget_spent := object.union(_answer(meta), {"status": meta.custom.status, "reasons": reasons}) if {
	meta := rego.metadata.rule()
	reasons := [{"code": meta.custom.code, "message": message} |
		some name in _overspent
		message := sprintf("%s: %s", [meta.custom.message, name])
	]
}

# The budgets that have no room for the call. Without the object of budgets there is none, and nothing is affordable.
_overspent contains name if {
	some name, budget in input.state.budgets
	not _room_in(name, budget)
}

_affordable if {
	is_object(input.state.budgets)
	count(_overspent) == 0
}

# A budget of a name that is not among these has no room.
_room_in("cost", budget) if (budget.spent + budget.reserved) + input.tool.cost <= budget.limit

_room_in("attempts", budget) if (budget.spent + budget.reserved) + 1 <= budget.limit

_room_in("output", budget) if budget.spent + budget.reserved < budget.limit
