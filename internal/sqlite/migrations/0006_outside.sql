-- Operations of tools that are not in this process: a row stands before the first byte of a call is sent, and then moves on
-- with what is found out of it. operation_id is dispatch.OperationID.

CREATE TABLE moving_operations (
	tenant          TEXT    NOT NULL,
	task            TEXT    NOT NULL,
	actor           TEXT    NOT NULL,
	key             TEXT    NOT NULL,
	dispatch        INTEGER NOT NULL, -- the identity of one without a key, and else 0
	id              TEXT    NOT NULL,
	signature       TEXT    NOT NULL,
	tool            TEXT    NOT NULL,
	state           TEXT    NOT NULL CHECK (state IN ('started', 'unknown', 'committed', 'absent')),
	step            INTEGER NOT NULL,
	run             INTEGER NOT NULL CHECK (run > 0),
	lookups         INTEGER NOT NULL,
	-- What follows is NULL of a local tool, but for the last two.
	effect          TEXT,
	definition      TEXT,
	outward         TEXT,
	since           TEXT,
	lease           TEXT,
	target          TEXT,
	approval        TEXT,
	policy_version  TEXT,
	proposal        BLOB,
	proposal_sealed BLOB,
	result          BLOB,
	sealed          BLOB,
	PRIMARY KEY (tenant, task, actor, key, dispatch),
	UNIQUE (tenant, id),
	CHECK ((key = '') = (dispatch > 0)),
	-- One that may still take place says until when, and what it would be.
	CHECK (state = 'committed' OR (effect IS NOT NULL AND definition IS NOT NULL AND since IS NOT NULL AND lease IS NOT NULL AND proposal IS NOT NULL)),
	CHECK (state = 'committed' OR (result IS NULL AND sealed IS NULL))
) STRICT, WITHOUT ROWID;

INSERT INTO moving_operations (tenant, task, actor, key, dispatch, id, signature, tool, state, step, run, lookups, result, sealed)
SELECT tenant, task, actor, key, 0, operation_id(tenant, task, actor, key), signature, tool, 'committed', step, 1, 0, result, sealed
FROM operations;
DROP TABLE operations;
ALTER TABLE moving_operations RENAME TO operations;

-- At most one call that may have an effect is on its way to it. This also finds what is open of a task and of a tenant.
CREATE UNIQUE INDEX operations_open ON operations (tenant, task, effect) WHERE state IN ('started', 'unknown');

CREATE TRIGGER operations_keep_their_name
BEFORE UPDATE OF tenant, task, actor, key, dispatch, id ON operations
BEGIN
	SELECT RAISE(ABORT, 'the name of an operation is never changed');
END;

CREATE TRIGGER operations_begin
BEFORE INSERT ON operations
WHEN NOT (NEW.state IN ('started', 'committed') AND NEW.run = 1 AND NEW.lookups = 0)
BEGIN
	SELECT RAISE(ABORT, 'an operation begins as its first run does, or with what was done');
END;

-- The next run begins where the last one is over: its outcome is not known, its lease has ended, or nothing took place. A
-- look-up that found nothing out leaves the operation unknown, and is counted.
CREATE TRIGGER operations_move_on
BEFORE UPDATE ON operations
WHEN NOT CASE OLD.state
	WHEN 'started' THEN NEW.state IN ('committed', 'absent', 'unknown') AND NEW.run = OLD.run
		OR NEW.state = 'started' AND NEW.run = OLD.run + 1 AND NEW.lease > OLD.lease
	WHEN 'unknown' THEN NEW.state = 'started' AND NEW.run = OLD.run + 1
		OR NEW.state IN ('committed', 'absent') AND NEW.run = OLD.run
		OR NEW.state = 'unknown' AND NEW.run = OLD.run AND NEW.lookups = OLD.lookups + 1
	WHEN 'absent' THEN NEW.state = 'started' AND NEW.run = OLD.run + 1
		OR NEW.state = 'committed' AND NEW.run IN (OLD.run, OLD.run + 1)
	ELSE FALSE
END
BEGIN
	SELECT RAISE(ABORT, 'an operation only moves on, and what was done is never changed');
END;

-- A run is of one call; only where nothing took place may the next be of another.
CREATE TRIGGER operations_keep_their_call
BEFORE UPDATE ON operations
WHEN NOT (OLD.state = 'absent' AND NEW.run > OLD.run)
	AND (NEW.signature, NEW.tool, NEW.target, NEW.effect, NEW.definition, NEW.since, NEW.proposal)
		IS NOT (OLD.signature, OLD.tool, OLD.target, OLD.effect, OLD.definition, OLD.since, OLD.proposal)
	OR NEW.run = OLD.run AND (NEW.step, NEW.lease, NEW.policy_version) IS NOT (OLD.step, OLD.lease, OLD.policy_version)
BEGIN
	SELECT RAISE(ABORT, 'what a run of an operation is of is never changed');
END;

-- The tool remembers it by this.
CREATE TRIGGER operations_keep_their_outward_key
BEFORE UPDATE ON operations
WHEN NEW.outward IS NOT OLD.outward AND NOT (OLD.state = 'absent' AND NEW.run > OLD.run)
BEGIN
	SELECT RAISE(ABORT, 'the outward key of an operation is never changed');
END;

-- The exact call goes once it took place, and is never changed within a run.
CREATE TRIGGER operations_keep_their_bytes
BEFORE UPDATE ON operations
WHEN NEW.proposal_sealed IS NOT CASE
	WHEN NEW.state = 'committed' THEN NULL
	WHEN OLD.state = 'absent' AND NEW.run > OLD.run THEN NEW.proposal_sealed
	ELSE OLD.proposal_sealed
END
BEGIN
	SELECT RAISE(ABORT, 'the exact bytes of a call are never changed, and kept until it took place');
END;

CREATE TRIGGER operations_never_go BEFORE DELETE ON operations
BEGIN
	SELECT RAISE(ABORT, 'operations are never deleted');
END;

-- An approval whose call was never sent comes back with the exact bytes of the call.
DROP TRIGGER approvals_keep_their_bytes;
CREATE TRIGGER approvals_keep_their_bytes
BEFORE UPDATE ON approvals
WHEN NEW.sealed IS NOT CASE
	WHEN NEW.state IN ('consumed', 'withdrawn') THEN NULL
	WHEN OLD.state = 'consumed' AND NEW.state = 'approved' THEN NEW.sealed
	ELSE OLD.sealed
END
BEGIN
	SELECT RAISE(ABORT, 'the exact bytes of a call are never changed, and kept until it is settled');
END;

-- The calls of outside tools under way, in canonical JSON; NULL where there are none.
ALTER TABLE tasks ADD COLUMN in_flight TEXT;
