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
