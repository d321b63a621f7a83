UPDATE approvals
SET actor = :actor, signature = :signature, definition = :definition, mode = :mode, step = :step,
	proposal = :proposal, state = :state, terms = :terms, votes = :votes, expires_at_step = :expires_at_step,
	expires_at = :expires_at, policy_version = :policy_version
WHERE tenant = :tenant AND task = :task AND id = :id AND state = :from
