package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// desk is a folder of files, and a watcher that loads what they say. Nothing in it waits for time: what would happen
// meanwhile is meanwhile.
type desk struct {
	t   *testing.T
	dir string
	*Watcher[string]
	listed    []string
	loads     int
	during    func() // a load
	meanwhile func() // while files are waited for
	broken    error
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, dir: t.TempDir(), during: func() {}, meanwhile: func() {}}
	d.listed = []string{d.path("a")}
	d.write("a", "0")
	d.Watcher = New(d.read, d.list, time.Now().Add(time.Hour))
	d.wait = func(ctx context.Context) error { d.meanwhile(); return ctx.Err() }
	return d
}

func (d *desk) list() []string          { return d.listed }
func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) write(name, text string) {
	d.t.Helper()
	require.NoError(d.t, os.WriteFile(d.path(name), []byte(text), 0o600))
}

// read gives what all files hold.
func (d *desk) read() (string, List, error) {
	d.loads++
	var all []string
	for _, file := range d.listed {
		b, _ := os.ReadFile(file)
		all = append(all, string(b))
	}
	d.during()
	return strings.Join(all, "+"), d.list, d.broken
}

func (d *desk) loaded(want string) {
	d.t.Helper()
	value, changed, err := d.Changed(d.t.Context())
	require.NoError(d.t, err)
	require.True(d.t, changed)
	require.Equal(d.t, want, value)
}

func (d *desk) unchanged() {
	d.t.Helper()
	loads := d.loads
	_, changed, err := d.Changed(d.t.Context())
	require.NoError(d.t, err)
	require.False(d.t, changed)
	require.Equal(d.t, loads, d.loads)
}

// growing writes a file again and again, longer each time: neither its size nor its time ever comes back.
func (d *desk) growing(name string) func() {
	n := 0
	return func() { n++; d.write(name, strings.Repeat("x", 100+n)) }
}

func TestAChangeIsLoadedOnce(t *testing.T) {
	d := newDesk(t)
	d.unchanged()
	d.write("a", "1.")
	d.loaded("1.")
	d.unchanged()
	require.NoError(t, os.Remove(d.path("a")))
	d.loaded("")
	d.unchanged()
	d.write("a", "2..")
	d.loaded("2..")
	assert.Equal(t, 3, d.loads)
}

// What cannot be loaded is tried again when something changes, and not before.
func TestALoadThatFailsIsNotRepeated(t *testing.T) {
	d := newDesk(t)
	d.broken = errors.New("broken")
	d.write("a", "1.")
	_, changed, err := d.Changed(t.Context())
	require.EqualError(t, err, "broken")
	assert.True(t, changed)
	d.unchanged()
	d.broken = nil
	d.write("a", "2..")
	d.loaded("2..")

	d.Again()
	d.loaded("2..")
	d.unchanged()
}

// A file is read when whoever writes it has paused, and never half.
func TestFilesAreWaitedFor(t *testing.T) {
	d := newDesk(t)
	pauses := 0
	d.meanwhile = func() {
		if pauses++; pauses < 4 {
			d.write("a", strings.Repeat("x", pauses))
		}
	}
	d.write("a", "half")
	d.loaded("xxx")
	assert.Equal(t, 1, d.loads)
}

func TestAFileWrittenDuringTheLoadIsLoadedAgain(t *testing.T) {
	d := newDesk(t)
	d.during = func() {
		if d.loads < 3 {
			d.write("a", strings.Repeat("x", d.loads))
		}
	}
	d.write("a", "half")
	d.loaded("xx")
	assert.Equal(t, 3, d.loads)
}

// Nobody waits without end for a writer who never stops; but once he does, what he wrote last is loaded, be it with the
// last of the writes that were waited for.
func TestAWriterWhoDoesNotStop(t *testing.T) {
	for name, set := range map[string]func(*desk, func()){
		"between the looks": func(d *desk, write func()) { d.meanwhile = write },
		"during the load":   func(d *desk, write func()) { d.during = write },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			set(d, d.growing("a"))
			d.write("a", "half")
			_, changed, err := d.Changed(t.Context())
			assert.True(t, changed)
			var unsettled *UnsettledError
			require.ErrorAs(t, err, &unsettled)
			assert.Equal(t, d.path("a"), unsettled.File)
			assert.Contains(t, err.Error(), "rename")

			d.during, d.meanwhile = func() {}, func() {}
			value, changed, err := d.Changed(t.Context())
			require.NoError(t, err)
			assert.True(t, changed)
			assert.Len(t, value, 100+rounds)
		})
	}
}

// After that nothing counts as seen, be the files back where they were.
func TestAWriterWhoEndsWhereHeBegan(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"r1", "r2"} {
		require.NoError(t, os.Mkdir(d.path(name), 0o700))
		d.write(name+"/f", name)
	}
	at := 0
	flip := func() {
		at++
		require.NoError(t, os.Symlink([]string{"r2", "r1"}[at%2], d.path("next")))
		require.NoError(t, os.Rename(d.path("next"), d.path("current")))
	}
	d.listed = []string{d.path("current/f")}
	flip()
	d.loaded("r1")
	flip()
	d.meanwhile = flip
	_, _, err := d.Changed(t.Context())
	var unsettled *UnsettledError
	require.ErrorAs(t, err, &unsettled)
	d.meanwhile = func() {}
	if at%2 == 0 {
		flip()
	}
	d.loaded("r1")
}

// Files that the changed ones name for the first time are waited for as well, and looked at from then on; those that are
// named no more are not.
func TestTheFilesThatAreReadChange(t *testing.T) {
	d := newDesk(t)
	d.write("b", "half")
	d.during = func() {
		if d.loads == 1 {
			d.listed = []string{d.path("a"), d.path("b"), d.path("none")}
			d.write("b", "whole") // after it was read, and before anybody looked
		}
	}
	d.write("a", "names b")
	d.loaded("names b+whole+")
	assert.Equal(t, 2, d.loads)
	d.unchanged()
	d.write("none", "c")
	d.loaded("names b+whole+c")

	d.during = func() { d.listed = []string{d.path("a")} }
	d.write("a", "alone")
	d.loaded("alone")
	d.unchanged()
	d.write("b", "whatever")
	d.unchanged()
}

// The list is asked at each look: a folder gets files, and loses them.
func TestAListThatGrowsByItself(t *testing.T) {
	d := newDesk(t)
	d.listed = append(d.listed, d.path("b"))
	d.loaded("0+")
	d.unchanged()
	d.listed = d.listed[:1]
	d.loaded("0")
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	d := newDesk(t)
	d.write("a", "1.")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := d.Changed(ctx)
	require.ErrorIs(t, err, context.Canceled)
	d.loaded("1.")
	require.ErrorIs(t, pause(ctx), context.Canceled)
	require.NoError(t, pause(t.Context()))
}

// What was written while it was read for the first time may have been read half. So may what was written later than
// the clock can say.
func TestTheFirstLoad(t *testing.T) {
	d := newDesk(t)
	for name, row := range map[string]struct {
		began time.Duration // before now
		again bool
	}{
		"written long before": {-time.Hour, false},
		"written since":       {time.Minute, true},
		"written just now":    {0, true},
		"written after the clock, on another machine": {time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			d.Watcher = New(d.read, d.list, time.Now().Add(-row.began))
			d.wait = func(context.Context) error { return nil }
			if row.again {
				d.loaded("0")
			}
			d.unchanged()
		})
	}
	d.listed = nil // what is built in comes from no files
	d.Watcher = New(d.read, d.list, time.Now())
	d.unchanged()
}

func TestFingerprint(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	do := func(err error) { t.Helper(); require.NoError(t, err) }
	write := func(name, text string) { t.Helper(); do(os.WriteFile(path(name), []byte(text), 0o600)) }
	do(os.Mkdir(path("r1"), 0o700))
	do(os.Mkdir(path("r2"), 0o700))
	write("r1/f", "one")
	write("r2/f", "one")
	do(os.Symlink("r1", path("current")))
	do(os.Symlink(path("current/f"), path("linked")))
	files := []string{path("current/f"), path("linked"), path("none")}
	was, _ := take(files)
	same := func(why string) {
		t.Helper()
		now, _ := take(files)
		assert.True(t, now.equal(was), why)
		assert.Empty(t, was.differs(now))
	}
	other := func(file, why string) {
		t.Helper()
		now, _ := take(files)
		assert.False(t, now.equal(was), why)
		assert.Equal(t, path(file), was.differs(now), why)
		was = now
	}
	same("nothing happened")
	write("r1/g", "beside it")
	same("another file in the folder")
	write("r1/f", "two.")
	other("current/f", "a file in a folder behind a link")
	do(os.Symlink("r2", path("next")))
	do(os.Rename(path("next"), path("current")))
	other("current/f", "the link leads to another folder")
	write("r2/f", "three")
	other("current/f", "a file in that folder")
	write("none", "")
	other("none", "a file that comes")
	do(os.Remove(path("linked")))
	other("linked", "a file that goes")
	files = files[:2]
	other("none", "a path that is not looked at any more")
}
