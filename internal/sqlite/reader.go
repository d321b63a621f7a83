package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/seal"
)

var _ dispatch.Reader = (*Reader)(nil)

// Reader reads a store, and changes nothing that is in it.
type Reader struct {
	readers *readers
	// box opens exact bytes; nil for who has not the store's key, and sees the seals alone.
	box *seal.Box
}

// OpenReader opens the store in the file at path to look into it. It makes no store, no key and no tables, and waits for
// no writer. A store that is not there is an fs.ErrNotExist; one with the tables of an older govern is refused.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	path, err := place(path, true)
	if err != nil {
		return nil, err
	}
	// Through a connection that cannot write at all, SQLite would leave its files beside the store when it is closed.
	db := &database{name: path, dsn: path, busy: DefaultBusyTimeout, tidy: true}
	r := &Reader{readers: newReaders(db)}
	err = r.readers.snapshot(ctx, func(conn *sqlite.Conn) error {
		version, err := db.version(conn)
		if err == nil && version != len(migrationNames()) {
			err = fmt.Errorf("%s was not used by this govern yet; govern task list brings it up to date", path)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close ends the reader.
func (r *Reader) Close() error { return r.readers.close() }
