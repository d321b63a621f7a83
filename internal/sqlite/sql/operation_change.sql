UPDATE operations
SET signature = :signature, tool = :tool, state = :state, step = :step, run = :run, effect = :effect,
	definition = :definition, outward = :outward, since = :since, lease = :lease, target = :target, approval = :approval,
	policy_version = :policy_version, lookups = :lookups, proposal = :proposal, proposal_sealed = CASE
		WHEN :state = 'committed' THEN NULL
		WHEN state = 'absent' AND :run > run THEN :proposal_sealed
		ELSE proposal_sealed
	END, result = :result, sealed = :sealed
WHERE tenant = :tenant AND task = :task AND actor = :actor AND key = :key AND dispatch = :dispatch AND id = :id
	AND state = :from AND run = :from_run
