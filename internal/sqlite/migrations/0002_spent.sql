-- What the runs of a task took so far. Of the runs before, the entries say it.

ALTER TABLE tasks ADD COLUMN spent_cost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN spent_attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN spent_output INTEGER NOT NULL DEFAULT 0;

-- No tool had a cost yet. A body is canonical JSON, whose parts are canonical as well.
UPDATE tasks SET
	spent_attempts = (
		SELECT count(*) FROM entries AS e
		WHERE e.tenant = tasks.tenant AND e.task = tasks.id AND e.kind = 'decision'
			AND CAST(e.body AS TEXT) ->> '$.decision.effect' = 'allow'
	),
	spent_output = (
		SELECT coalesce(sum(length(CAST(CAST(e.body AS TEXT) -> '$.value' AS BLOB))), 0) FROM entries AS e
		WHERE e.tenant = tasks.tenant AND e.task = tasks.id AND e.kind = 'action'
	);
