//go:build !linux

package sqlite

import "os"

// Only Linux has locks that belong to an open file. The older kind belongs to the process, and is lost when any part
// of it closes the file; so other processes are not excluded here.

func lockByte(*os.File, int64) (locked bool, err error) { return true, nil }

func unlockByte(*os.File, int64) {}
