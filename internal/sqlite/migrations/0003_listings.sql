-- So that a part of a listing is found without the rows beside it. Each index ends with seq, which is the order of the
-- listing. Statements name theirs: where two give the order, SQLite might choose the one that leaves more rows.

CREATE INDEX entries_kind ON entries (tenant, kind);
CREATE INDEX approvals_tenant ON approvals (tenant);
CREATE INDEX approvals_task ON approvals (tenant, task);

-- Most approvals are settled. Those that are not are listed and counted apart, so that settling one leaves no row of an
-- index at another place. The conditions stand as statements have them.
DROP INDEX approvals_state;
CREATE INDEX approvals_unsettled ON approvals (tenant) WHERE state = 'pending' OR state = 'approved';
CREATE INDEX approvals_waiting ON approvals (tenant, task) WHERE state = 'pending';

-- One tree each, for what is found by its name alone.

CREATE TABLE named_operations (
	tenant    TEXT    NOT NULL,
	task      TEXT    NOT NULL,
	actor     TEXT    NOT NULL,
	key       TEXT    NOT NULL,
	signature TEXT    NOT NULL,
	tool      TEXT    NOT NULL,
	step      INTEGER NOT NULL,
	result    BLOB,
	PRIMARY KEY (tenant, task, actor, key)
) STRICT, WITHOUT ROWID;
INSERT INTO named_operations SELECT tenant, task, actor, key, signature, tool, step, result FROM operations;
DROP TABLE operations;
ALTER TABLE named_operations RENAME TO operations;

CREATE TABLE named_records (
	tenant TEXT NOT NULL,
	task   TEXT NOT NULL,
	tool   TEXT NOT NULL,
	target TEXT NOT NULL,
	value  BLOB NOT NULL,
	PRIMARY KEY (tenant, task, tool, target)
) STRICT, WITHOUT ROWID;
INSERT INTO named_records SELECT tenant, task, tool, target, value FROM records;
DROP TABLE records;
ALTER TABLE named_records RENAME TO records;
