package sqlite

import (
	"sync"

	"modernc.org/sqlite"
)

// useFdatasync has SQLite sync with fdatasync, as most builds of it do. It keeps a commit as safe as fsync does, and
// spares the disk the write of the file's times. Where there is none, which is where F_FULLFSYNC or Windows sync,
// nothing changes.
var useFdatasync = sync.OnceFunc(func() { _, _ = sqlite.Fdatasync(true) })
