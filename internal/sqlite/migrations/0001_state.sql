-- The state that guards need, and the entries that are the truth about the past.
-- Times are RFC 3339 in UTC, to the millisecond; NULL is no time. JSON is canonical; what is signed or exported is
-- kept as the bytes it had.

CREATE TABLE meta (
	name  TEXT NOT NULL PRIMARY KEY,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
	tenant    TEXT    NOT NULL,
	id        TEXT    NOT NULL,
	profile   TEXT    NOT NULL,
	actor     TEXT    NOT NULL,
	steps     INTEGER NOT NULL,
	cancelled INTEGER NOT NULL CHECK (cancelled IN (0, 1)),
	deadline  TEXT,
	updated   TEXT,
	entries   INTEGER NOT NULL,
	revision  INTEGER NOT NULL CHECK (revision > 0),
	PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (
	seq             INTEGER PRIMARY KEY, -- the order in which they were asked for
	tenant          TEXT    NOT NULL,
	task            TEXT    NOT NULL,
	id              TEXT    NOT NULL,
	actor           TEXT    NOT NULL,
	signature       TEXT    NOT NULL,
	definition      TEXT    NOT NULL,
	mode            TEXT    NOT NULL,
	step            INTEGER NOT NULL,
	proposal        BLOB    NOT NULL,
	state           TEXT    NOT NULL
		CHECK (state IN ('pending', 'approved', 'rejected', 'consumed', 'expired', 'withdrawn')),
	terms           TEXT    NOT NULL,
	votes           TEXT    NOT NULL,
	expires_at_step INTEGER NOT NULL,
	expires_at      TEXT,
	policy_version  TEXT    NOT NULL,
	UNIQUE (tenant, id)
) STRICT;

-- At most one approval waits or can be used for one exact call.
CREATE UNIQUE INDEX approvals_open ON approvals (tenant, task, signature, definition, mode)
	WHERE state IN ('pending', 'approved');

CREATE INDEX approvals_latest ON approvals (tenant, task, signature, mode, step);

-- For listings, and to count what waits.
CREATE INDEX approvals_state ON approvals (tenant, state, task);

-- A person votes on the call as it was asked for.
CREATE TRIGGER approvals_keep_their_call
BEFORE UPDATE OF seq, tenant, task, id, actor, signature, definition, mode, step, proposal ON approvals
BEGIN
	SELECT RAISE(ABORT, 'what an approval is of is never changed');
END;

CREATE TABLE operations (
	tenant    TEXT    NOT NULL,
	task      TEXT    NOT NULL,
	actor     TEXT    NOT NULL,
	key       TEXT    NOT NULL,
	signature TEXT    NOT NULL,
	tool      TEXT    NOT NULL,
	step      INTEGER NOT NULL,
	result    BLOB,
	PRIMARY KEY (tenant, task, actor, key)
) STRICT;

CREATE TABLE records (
	tenant TEXT NOT NULL,
	task   TEXT NOT NULL,
	tool   TEXT NOT NULL,
	target TEXT NOT NULL,
	value  BLOB NOT NULL,
	PRIMARY KEY (tenant, task, tool, target)
) STRICT;

CREATE TABLE entries (
	seq    INTEGER PRIMARY KEY, -- the order of commits; never exported
	tenant TEXT    NOT NULL,
	task   TEXT    NOT NULL,
	step   INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	kind   TEXT    NOT NULL,
	body   BLOB    NOT NULL,
	UNIQUE (tenant, task, step, n)
) STRICT;

CREATE INDEX entries_tenant ON entries (tenant);

CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries
BEGIN
	SELECT RAISE(ABORT, 'entries are never changed');
END;

CREATE TRIGGER entries_never_go BEFORE DELETE ON entries
BEGIN
	SELECT RAISE(ABORT, 'entries are never deleted');
END;
