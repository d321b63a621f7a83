INSERT INTO approvals (tenant, task, id, actor, signature, definition, mode, step, proposal, state, terms, votes,
	expires_at_step, expires_at, policy_version, sealed)
VALUES (:tenant, :task, :id, :actor, :signature, :definition, :mode, :step, :proposal, :state, :terms, :votes,
	:expires_at_step, :expires_at, :policy_version, :sealed)
