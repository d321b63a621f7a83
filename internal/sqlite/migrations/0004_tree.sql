-- The tree over the entries. Its head is a row of meta, so that no row of the two tables can go unnoticed.

CREATE TABLE tree (
	leaf   INTEGER PRIMARY KEY,  -- the entry's seq, from 0
	hashes BLOB    NOT NULL      -- what the leaf completes: its own hash and those of subtrees, from the bottom up
) STRICT;

CREATE TRIGGER tree_never_changes BEFORE UPDATE ON tree
BEGIN
	SELECT RAISE(ABORT, 'the tree is never changed');
END;

CREATE TRIGGER tree_never_shrinks BEFORE DELETE ON tree
BEGIN
	SELECT RAISE(ABORT, 'the tree never shrinks');
END;

-- Policies and configurations that were ever in use, by the SHA-256 of their bytes.
CREATE TABLE contents (
	digest TEXT NOT NULL PRIMARY KEY,
	bytes  BLOB NOT NULL
) STRICT;

CREATE TRIGGER contents_never_change BEFORE UPDATE ON contents
BEGIN
	SELECT RAISE(ABORT, 'contents are never changed');
END;

CREATE TRIGGER contents_never_go BEFORE DELETE ON contents
BEGIN
	SELECT RAISE(ABORT, 'contents are never deleted');
END;
