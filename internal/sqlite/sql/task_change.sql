UPDATE tasks
SET profile = :profile, actor = :actor, steps = :steps, cancelled = :cancelled, deadline = :deadline,
	updated = :updated, entries = :entries, revision = :revision
WHERE tenant = :tenant AND id = :id AND revision = :from
