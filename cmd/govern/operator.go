package main

import (
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"strings"
)

// operator is the operating system's user: the only identity that a command line has. It is found by the process's
// own id, and by nothing that the user can set.
func operator() string {
	if name := userName(); name != "" {
		return name
	}
	return fmt.Sprintf("uid-%d", os.Getuid())
}

// userName gives the name that the user database has for this process's user, or none.
//
// Where that is a file, it is read here. Without cgo, os/user would take $USER's word for an id that the file does not
// have; with cgo it would give the same person another name, who could then vote twice.
func userName() string {
	switch runtime.GOOS {
	case "darwin", "windows": // the system is asked, with or without cgo
		if u, err := user.Current(); err == nil {
			return u.Username
		}
		return ""
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	return nameOf(os.Getuid(), string(passwd))
}

// nameOf finds a user id in the text of /etc/passwd. The first entry counts, as it does for the system.
func nameOf(uid int, passwd string) string {
	for line := range strings.Lines(passwd) {
		field := strings.Split(strings.TrimSpace(line), ":")
		if len(field) < 7 || field[0] == "" || strings.ContainsAny(field[0][:1], "#+-") {
			continue // a comment, a reference to another database, or no entry
		}
		if id, err := strconv.ParseUint(field[2], 10, 32); err == nil && int64(id) == int64(uid) {
			return field[0]
		}
	}
	return ""
}
