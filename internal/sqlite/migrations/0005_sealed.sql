-- The exact bytes of what is sensitive, encrypted under a key that lies outside of this file. NULL where nothing is
-- sensitive. The columns beside them have seals in their place.

ALTER TABLE approvals ADD COLUMN sealed BLOB;
ALTER TABLE operations ADD COLUMN sealed BLOB;
ALTER TABLE records ADD COLUMN sealed BLOB;

-- Those of a call go once nothing can come of it any more, and are never changed.
CREATE TRIGGER approvals_keep_their_bytes
BEFORE UPDATE ON approvals
WHEN NEW.sealed IS NOT CASE WHEN NEW.state IN ('consumed', 'withdrawn') THEN NULL ELSE OLD.sealed END
BEGIN
	SELECT RAISE(ABORT, 'the exact bytes of a call are never changed, and kept until it is settled');
END;

-- What was done is neither undone nor told otherwise.
CREATE TRIGGER operations_never_change BEFORE UPDATE ON operations
BEGIN
	SELECT RAISE(ABORT, 'operations are never changed');
END;

CREATE TRIGGER operations_never_go BEFORE DELETE ON operations
BEGIN
	SELECT RAISE(ABORT, 'operations are never deleted');
END;

CREATE TRIGGER records_never_change BEFORE UPDATE ON records
BEGIN
	SELECT RAISE(ABORT, 'records are never changed');
END;

CREATE TRIGGER records_never_go BEFORE DELETE ON records
BEGIN
	SELECT RAISE(ABORT, 'records are never deleted');
END;
