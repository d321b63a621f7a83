INSERT INTO tasks (tenant, id, profile, actor, steps, cancelled, deadline, updated, entries, revision)
VALUES (:tenant, :id, :profile, :actor, :steps, :cancelled, :deadline, :updated, :entries, :revision)
