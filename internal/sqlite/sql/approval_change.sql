UPDATE approvals
SET state = :state, terms = :terms, votes = :votes, expires_at_step = :expires_at_step, expires_at = :expires_at,
	policy_version = :policy_version, sealed = CASE
		WHEN :state IN ('consumed', 'withdrawn') THEN NULL
		WHEN state = 'consumed' AND :state = 'approved' THEN :sealed
		ELSE sealed
	END
WHERE tenant = :tenant AND task = :task AND id = :id AND state = :from AND actor = :actor AND signature = :signature
	AND definition = :definition AND mode = :mode AND step = :step AND proposal = :proposal
