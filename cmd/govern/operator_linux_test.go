package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// stranger is a user id that no user database has.
const stranger = 1999999999

func init() {
	if os.Getenv("TEST_AS_STRANGER") == "true" {
		// Only now: a user who is not root may not be able to reach the test binary.
		if err := syscall.Setuid(stranger); err != nil {
			panic(err)
		}
	}
}

// asStranger runs govern as a user whom the user database does not have, and whose environment says otherwise.
func (h home) asStranger(args ...string) answer {
	h.t.Helper()
	cmd := h.command(h.t.Context(), "govern", args...)
	cmd.Env = append(cmd.Env, "USER=maya", "LOGNAME=maya", "USERNAME=maya", "HOME=/home/maya", "SUDO_USER=maya")
	if os.Getuid() == 0 {
		cmd.Env = append(cmd.Env, "TEST_AS_STRANGER=true")
		require.NoError(h.t, os.Chmod(filepath.Dir(h.dir), 0o755))
		require.NoError(h.t, filepath.WalkDir(h.dir, func(file string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(file, stranger, stranger)
		}))
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: stranger, HostID: os.Getuid(), Size: 1}}}
	}
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		h.t.Skipf("neither root nor one who may make a user namespace: %v", err)
	}
	return ended(h.t, cmd, err, string(out), "")
}

// Who reviews is who the operating system says it is. Without cgo, os/user would ask the environment.
func TestTheEnvironmentNamesNoReviewer(t *testing.T) {
	h := asked(t)
	a := h.asStranger("review", "approve", "--proposal", "draft.json")
	require.Zero(t, a.code, a.stdout)
	for _, row := range h.open(t).Approvals {
		votes := row["votes"].([]any)
		require.Len(t, votes, 1)
		require.Equal(t, "uid-"+strconv.Itoa(stranger), votes[0].(map[string]any)["reviewer"])
	}
}
