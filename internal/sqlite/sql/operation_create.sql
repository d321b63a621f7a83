INSERT INTO operations (tenant, task, actor, key, dispatch, id, signature, tool, state, step, run, effect, definition,
	outward, since, lease, approval, lookups, proposal, proposal_sealed, result, sealed)
VALUES (:tenant, :task, :actor, :key, :dispatch, :id, :signature, :tool, :state, :step, :run, :effect, :definition,
	:outward, :since, :lease, :approval, :lookups, :proposal, :proposal_sealed, :result, :sealed)
