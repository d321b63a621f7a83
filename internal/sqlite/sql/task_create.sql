INSERT INTO tasks (tenant, id, profile, actor, steps, spent_cost, spent_attempts, spent_output, in_flight, cancelled,
	deadline, updated, entries, revision)
VALUES (:tenant, :id, :profile, :actor, :steps, :spent_cost, :spent_attempts, :spent_output, :in_flight, :cancelled,
	:deadline, :updated, :entries, :revision)
