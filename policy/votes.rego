# Row 14: which votes count, and how far they have come. Go counts in the same way when a vote is given; a test holds the
# two against each other.
package policy

# The people whose approvals count.
_approving := {vote.reviewer | some vote in input.state.approval.votes; _counts(vote)} if not _demanded.stages

else := {input.state.approval.votes[i].reviewer | some [stage, from] in _begun; some i in _fitting[stage]; i >= from}

_stages_complete if not _demanded.stages

_stages_complete if {
	some [stage, _] in _begun
	stage == count(_demanded.stages)
}

_counts(vote) if {
	_independent(vote)
	_reasoned(vote)
	_entitled(vote, _demanded)
	object.get(vote, "lifetime", 0) <= object.get(_demanded, "lifetime", 10)
}

_independent(vote) if vote.reviewer != input.task.actor

_independent(_) if object.get(_demanded, "distinct_from_actor", false) == false

_reasoned(vote) if vote.reason != ""

_reasoned(_) if object.get(_demanded, "reason_required", false) == false

# Terms, and a stage of them, can want one of several roles.
_entitled(_, demand) if not demand.roles

_entitled(vote, demand) if {
	some role in vote.roles
	role in demand.roles
}

# The votes for each stage that it accepts, as numbers of stages and votes.
_fitting[number] contains i if {
	some number, stage in _demanded.stages
	some i, vote in input.state.approval.votes
	vote.stage == stage.name
	_counts(vote)
	_entitled(vote, stage)
}

# A stage begins after the vote that completes the one before it; what was said earlier does not count for it. So
# [stage, votes before it] leads to the same of the next stage. Past the last stage stands its number.
_way[[stage, from]] := [[stage + 1, next] | next := _complete_after(stage, from)] if {
	some stage in numbers.range(0, count(_demanded.stages))
	some from in _starts[stage]
}

_begun := graph.reachable(_way, {[0, 0]})

_starts[0] contains 0

_starts[stage + 1] contains i + 1 if {
	some stage
	some i in _fitting[stage]
}

# After how many votes a stage is complete that began after `from` of them.
_complete_after(stage, from) := min({after |
	some i in _fitting[stage]
	people := {input.state.approval.votes[j].reviewer | some j in _fitting[stage]; j >= from; j <= i}
	count(people) >= max({1, object.get(_demanded.stages[stage], "approvers", 1)})
	after := i + 1
})
