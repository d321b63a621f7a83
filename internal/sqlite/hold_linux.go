package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockByte tries to lock one byte of a file. The lock belongs to the open file, so that several Stores of one process
// exclude each other too, and ends with it at the latest.
func lockByte(f *os.File, at int64) (locked bool, err error) {
	err = setLock(f, at, unix.F_WRLCK)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot lock %s; give the store a path on a local disk: %w", f.Name(), err)
	}
	return true, nil
}

// unlockByte cannot fail on a file that is open, and a closed one has no locks.
func unlockByte(f *os.File, at int64) { _ = setLock(f, at, unix.F_UNLCK) }

func setLock(f *os.File, at int64, kind int16) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = raw.Control(func(fd uintptr) {
		for {
			result = unix.FcntlFlock(fd, unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: 1})
			if result != unix.EINTR {
				return
			}
		}
	})
	return errors.Join(err, result)
}
