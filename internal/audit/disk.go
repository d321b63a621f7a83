package audit

import (
	"errors"
	"syscall"

	"zombiezen.com/go/sqlite"
)

// IsDiskFault says whether an audit failed because a disk has no room or does not work: that of what is read, beside which
// SQLite makes files, or that of temporary files.
func IsDiskFault(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull, sqlite.ResultIOErr:
		return true
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO)
}
