UPDATE tasks
SET profile = :profile, actor = :actor, steps = :steps, spent_cost = :spent_cost, spent_attempts = :spent_attempts,
	spent_output = :spent_output, in_flight = :in_flight, cancelled = :cancelled, deadline = :deadline,
	updated = :updated, entries = :entries, revision = :revision
WHERE tenant = :tenant AND id = :id AND revision = :from
