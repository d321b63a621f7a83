package watch

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// identity tells a file from another that took its name, and when it was last touched in any way: a time that nobody can
// set back.
func identity(info fs.FileInfo) (string, time.Time) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", info.ModTime()
	}
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino), time.Unix(s.Ctim.Unix())
}
