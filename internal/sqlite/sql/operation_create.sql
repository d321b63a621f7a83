INSERT INTO operations (tenant, task, actor, key, dispatch, id, signature, tool, state, step, run, effect, definition,
	outward, since, lease, target, approval, policy_version, lookups, proposal, proposal_sealed, result, sealed)
VALUES (:tenant, :task, :actor, :key, :dispatch, :id, :signature, :tool, :state, :step, :run, :effect, :definition,
	:outward, :since, :lease, :target, :approval, :policy_version, :lookups, :proposal, :proposal_sealed, :result, :sealed)
