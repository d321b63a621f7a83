-- So that a part of a listing is found without the rows beside it. Each index ends with seq, which is the order of the
-- listing. Statements name theirs: where two give the order, SQLite might choose the one that leaves more rows.

CREATE INDEX entries_kind ON entries (tenant, kind);
CREATE INDEX approvals_tenant ON approvals (tenant);
CREATE INDEX approvals_task ON approvals (tenant, task);
CREATE INDEX approvals_waiting ON approvals (tenant) WHERE state = 'pending';
