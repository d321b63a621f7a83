package sqlite

import (
	"fmt"
	"os"
)

// gone says that the file is not at its place any more, or another is, or its log is not: whoever has it open can still
// write it, and nobody finds that again.
func (db *database) gone() error {
	if db.inMemory() {
		return nil
	}
	now, err := os.Stat(db.name)
	if err == nil && os.SameFile(now, db.file) {
		if _, err = os.Stat(db.name + "-wal"); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s, or its -wal file, was removed or replaced while it was in use; end every govern that uses it, and put back what was there, or a backup with its key", db.name)
}
