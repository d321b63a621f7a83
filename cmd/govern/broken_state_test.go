//go:build linux

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	zsqlite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// States that cannot be used, as somebody or something left them.

// stateFiles are the files of a state that hold something: not the index in shared memory, which dies with its processes.
func (h home) stateFiles() map[string]string {
	h.t.Helper()
	names, err := filepath.Glob(h.state() + "*")
	require.NoError(h.t, err)
	all := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "-shm") {
			continue
		}
		b, err := os.ReadFile(name)
		require.NoError(h.t, err)
		if len(b) > 0 {
			all[filepath.Base(name)] = string(b)
		}
	}
	return all
}

// restore puts the files of a state back as they were.
func (h home) restore(files map[string]string) {
	h.t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm", ".key", ".lock"} {
		require.NoError(h.t, os.RemoveAll(h.state()+suffix))
	}
	for name, text := range files {
		h.write(name, text)
	}
}

// limited runs govern as somebody whom permissions stop. It gives them the files of the state.
func (h home) limited(args ...string) answer {
	h.t.Helper()
	cmd := h.command(h.t.Context(), "govern", args...)
	if os.Getuid() == 0 {
		cmd.Env = append(cmd.Env, "TEST_AS_STRANGER=true")
		require.NoError(h.t, os.Chmod(filepath.Dir(h.dir), 0o755))
		for _, pattern := range []string{h.dir, h.dir + "/*"} {
			files, err := filepath.Glob(pattern)
			require.NoError(h.t, err)
			for _, f := range files {
				require.NoError(h.t, os.Chown(f, stranger, stranger))
			}
		}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return ended(h.t, cmd, err, stdout.String(), stderr.String())
}

// sql changes the file of a state as another program does.
func (h home) sql(script string) {
	h.t.Helper()
	conn, err := zsqlite.OpenConn(h.state(), zsqlite.OpenReadWrite, zsqlite.OpenCreate)
	require.NoError(h.t, err)
	defer conn.Close()
	for _, s := range strings.Split(script, ";") {
		require.NoError(h.t, sqlitex.ExecuteTransient(conn, s, nil))
	}
}

// works says that a state with an approved draft is sound, and runs it.
func (h home) works(t *testing.T) {
	t.Helper()
	a := h.govern("run", "--approved")
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Equal(t, 1, h.open(t).count[dispatch.KindAction])
}

// A state that cannot be used is refused, by name and with what to do, and left as it is; put right, it is as it was.
func TestStatesThatCannotBeUsed(t *testing.T) {
	before := approved(t)
	size := len(before.stateFiles()["govern.db"])
	cut := func(to int) func(home) {
		return func(h home) { require.NoError(h.t, os.Truncate(h.state(), int64(to))) }
	}
	for name, c := range map[string]struct {
		spoil func(h home)
		code  int
		want  []string
	}{
		"text":                  {func(h home) { h.write("govern.db", strings.Repeat("a shopping list\n", 500)) }, exitMisuse, []string{"govern.db is not a SQLite file", "another path"}},
		"another program's":     {func(h home) { h.restore(nil); h.sql("CREATE TABLE theirs (x)") }, exitMisuse, []string{"govern.db belongs to another program", "another path"}},
		"a newer govern's":      {func(h home) { h.sql("PRAGMA user_version = 99") }, exitMisuse, []string{"govern.db was written by a newer govern", "install that govern"}},
		"cut in the middle":     {cut(size / 8192 * 4096), exitBroken, []string{"govern.db is damaged", "restore it from a backup"}},
		"without its last page": {cut(size - 4096), exitBroken, []string{"govern.db is damaged", "restore it from a backup"}},
		"cut in its last page":  {cut(size - 100), exitBroken, []string{"govern.db is damaged", "restore it from a backup"}},
		"cut in its head":       {cut(90), exitBroken, []string{"govern.db is damaged", "restore it from a backup"}},
		"without its key":       {func(h home) { require.NoError(h.t, os.Remove(h.state()+".key")) }, exitMisuse, []string{"govern.db.key is missing", "restore it beside the state"}},
		"with another key":      {func(h home) { h.write("govern.db.key", strings.Repeat("k", 32)) }, exitMisuse, []string{"govern.db.key is the key of another store", "restore the key"}},
		"with half a key":       {func(h home) { h.write("govern.db.key", "half") }, exitMisuse, []string{"govern.db.key does not have 32 bytes", "restore it beside the state"}},
		"with a log that was cut": {func(h home) {
			tamper(h.t, h.state(), "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)")
		}, exitMisuse, []string{"govern.db: the log does not verify at its tail: the head counts ", "\n  something other than govern changed it, and nothing was written", "govern log verify --state ", "\n  keep the file as it is", "put back the newest backup with its key"}},
		"with another's log": {func(h home) { h.write("govern.db-wal", firstLog(h.t)) }, exitMisuse, []string{"govern.db.key is the key of another store", "from a backup, remove ", "govern.db-wal"}},
		"a folder":           {func(h home) { h.restore(nil); require.NoError(h.t, os.Mkdir(h.state(), 0o700)) }, exitMisuse, []string{"govern.db is a folder"}},
		"a link to nothing":  {func(h home) { h.restore(nil); require.NoError(h.t, os.Symlink("nothing", h.state())) }, exitMisuse, []string{"govern.db is a symbolic link", "remove the link"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := before.copy(t)
			sound := h.stateFiles()
			c.spoil(h)
			info, err := os.Stat(h.state())
			isFile := err == nil && info.Mode().IsRegular()
			var spoilt map[string]string
			if isFile {
				spoilt = h.stateFiles()
			}
			for _, args := range [][]string{{"run", "--approved"}, {"cancel", "labels-1"}, {"log", "export"}, {"log", "follow", "--from", "0"}} {
				a := h.govern(args...)
				assert.Equal(t, c.code, a.code, a.stderr)
				assert.Empty(t, a.stdout)
				for _, want := range c.want {
					assert.Contains(t, a.stderr, want)
				}
			}
			if isFile {
				require.True(t, maps.Equal(spoilt, h.stateFiles()), "what was refused was changed")
			} else {
				require.NoError(t, os.Remove(h.state()))
			}
			h.restore(sound)
			h.works(t)
		})
	}
}

// firstLog is the write-ahead log of another state, with all that it holds.
func firstLog(t testing.TB) string {
	t.Helper()
	h := newHome(t)
	s := h.start("run", "-")
	s.send(add("m1"))
	s.next()
	b, err := os.ReadFile(h.state() + "-wal")
	require.NoError(t, err)
	s.finish()
	return string(b)
}

// A page that was lost is met by a refusal, or by nothing that needs it: never by an answer that is not true.
func TestEveryPageDamaged(t *testing.T) {
	before := approved(t)
	whole := before.stateFiles()["govern.db"]
	refused := 0
	for page := range len(whole) / 4096 {
		h := before.copy(t)
		h.write("govern.db", whole[:4096*page]+strings.Repeat("x", 4096)+whole[4096*(page+1):])
		a := h.govern("run", "--approved")
		if a.code == exitOK {
			require.Len(t, a.lines(t), 1)
			continue
		}
		refused++
		require.Contains(t, []int{exitBroken, exitMisuse}, a.code, a.stderr)
		require.Empty(t, a.stdout)
		require.Contains(t, a.stderr, h.state())
		require.Contains(t, a.stderr, "from a backup")
	}
	require.NotZero(t, refused)
}

// What may not be written is refused with how to allow it, and nothing of it is changed.
func TestStatesThatMayNotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		forbid, allow func(h home)
	}{
		"a file": {
			func(h home) { require.NoError(h.t, os.Chmod(h.state(), 0o400)) },
			home.writable,
		},
		"a folder": {
			func(h home) { require.NoError(h.t, os.Chmod(h.dir, 0o500)) },
			func(h home) { require.NoError(h.t, os.Chmod(h.dir, 0o700)) },
		},
		"a file that may not be read": {
			func(h home) { require.NoError(h.t, os.Chmod(h.state(), 0)) },
			home.writable,
		},
		"a mount": {
			func(h home) { h.mount("", unix.MS_BIND); h.mount("", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY) },
			func(h home) { h.mount("", unix.MS_BIND|unix.MS_REMOUNT) },
		},
	} {
		if name == "a mount" && !mayMount(t) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			h := approved(t)
			as := h.limited
			if name == "a mount" {
				as = h.govern
			}
			c.forbid(h)
			t.Cleanup(func() { c.allow(h) })
			for _, args := range [][]string{{"run", "--approved"}, {"cancel", "labels-1"}} {
				a := as(args...)
				assert.Contains(t, []int{exitBroken, exitMisuse}, a.code, a.stderr)
				assert.Empty(t, a.stdout)
				for _, want := range []string{"cannot write " + h.state(), "chmod u+rw", "mounted for writing", "another path"} {
					assert.Contains(t, a.stderr, want)
				}
			}
			c.allow(h)
			a := as("run", "--approved")
			require.Equal(t, exitOK, a.code, a.stderr)
			require.Equal(t, 1, h.open(t).count[dispatch.KindAction])
		})
	}
}

// writable does what the message says.
func (h home) writable() {
	h.t.Helper()
	files, err := filepath.Glob(h.state() + "*")
	require.NoError(h.t, err)
	for _, f := range files {
		require.NoError(h.t, os.Chmod(f, 0o600))
	}
}

// mount mounts a file system over the folder until the test ends, or changes how it is mounted.
func (h home) mount(kind string, flags uintptr, options ...string) {
	h.t.Helper()
	source := h.dir
	if kind != "" {
		source = kind
	}
	require.NoError(h.t, unix.Mount(source, h.dir, kind, flags, strings.Join(options, ",")))
	if flags&unix.MS_REMOUNT == 0 {
		h.t.Cleanup(func() { require.NoError(h.t, unix.Unmount(h.dir, unix.MNT_DETACH)) })
	}
}

// mayMount says whether this user can mount at all: root can, outside of most containers.
func mayMount(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Logf("not tried, since this user cannot mount anything: %v", err)
		return false
	}
	require.NoError(t, unix.Unmount(dir, 0))
	return true
}

// A disk that is really full, with as much room as stops a command here or there: it says so, and does all or nothing.
func TestFullDisk(t *testing.T) {
	if !mayMount(t) {
		return // injected faults stand for it
	}
	for name, of := range victims {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fillDisk(t, of(t), []int{0, 9, 128})
		})
	}
}

// fillDisk runs the command on a disk that has room for so many pages of 4 KiB, once for each.
func fillDisk(t *testing.T, v victim, rooms []int) {
	t.Helper()
	seen := map[bool]int{}
	for _, room := range rooms {
		h := home{t: t, dir: t.TempDir()}
		h.mount("tmpfs", 0, "size=1m", "mode=700")
		for _, f := range []string{"config.yaml", "draft.json"} {
			b, err := os.ReadFile(filepath.Join(v.before.dir, f))
			require.NoError(t, err)
			h.write(f, string(b))
		}
		h.restore(v.before.stateFiles())
		h.leave(room)
		a := h.govern(v.args...)
		require.NoError(t, os.Remove(filepath.Join(h.dir, "filler")))
		done := v.check(t, h, strings.HasSuffix(a.stdout, "\n"))
		seen[a.code == v.unhurt]++
		name := fmt.Sprintf("room for %d pages: %d: %s", room, a.code, a.stderr)
		if a.code == v.unhurt {
			require.True(t, done, name)
			continue
		}
		assert.Contains(t, []int{exitBroken, exitMisuse}, a.code, name)
		assert.Regexp(t, remedy, a.stderr, name)
		assert.Contains(t, a.stderr, h.state(), name)
		assert.Empty(t, a.stdout, name)
	}
	t.Logf("%d times it was too full, %d times not", seen[false], seen[true])
	require.NotZero(t, seen[false])
	require.NotZero(t, seen[true])
}

// leave fills the disk but for so many pages.
func (h home) leave(pages int) {
	h.t.Helper()
	var disk syscall.Statfs_t
	require.NoError(h.t, syscall.Statfs(h.dir, &disk))
	require.EqualValues(h.t, 4096, disk.Bsize)
	h.write("filler", strings.Repeat("x", 4096*(int(disk.Bavail)-pages)))
}
