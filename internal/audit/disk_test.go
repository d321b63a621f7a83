package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"zombiezen.com/go/sqlite"
)

func TestIsDiskFault(t *testing.T) {
	for _, err := range []error{sqlite.ResultIOErrSHMOpen.ToError(), sqlite.ResultFull.ToError(), &fs.PathError{Op: "read", Path: "x", Err: syscall.EIO},
		fmt.Errorf("sqlite: %w", errors.Join(sqlite.ResultIOErr.ToError(), errors.New("more")))} {
		assert.True(t, IsDiskFault(err), "%v", err)
	}
	for _, err := range []error{nil, context.Canceled, fs.ErrPermission, sqlite.ResultCorrupt.ToError(), sqlite.ResultNotADB.ToError()} {
		assert.False(t, IsDiskFault(err), "%v", err)
	}
}
