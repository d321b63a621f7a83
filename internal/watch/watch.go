// Package watch loads anew what comes from files, when they have changed and rest.
package watch

import (
	"context"
	"fmt"
	"time"
)

// List lists the files to look at. It is asked at each look, since files come and go.
type List func() []string

// Load loads a value from files. With an error too it lists what it read, and what it would have read: once that
// changes, another attempt may succeed.
type Load[T any] func() (T, List, error)

// Watcher keeps up with the files that a value was loaded from. It is not safe for concurrent use.
type Watcher[T any] struct {
	load Load[T]
	list List
	// seen is what was loaded, or could not be loaded; nil if that is not known.
	seen fingerprint
	wait func(context.Context) error
}

const (
	// settling is how long files must stay as they are before they are read: whoever writes one may not be done.
	settling = 20 * time.Millisecond
	// rounds bounds how often they are waited for.
	rounds = 50
	// tick is more than the resolution of a file's times: what was touched later than that before it was read may have
	// been read half, and is loaded once more.
	tick = 20 * time.Millisecond
)

// New looks after what was loaded from listed files since began. Files touched since then, or later than the clock
// says, are loaded once more at the first look: they may have been read half. (A file whose times lag behind the clock,
// on another machine's disk, can escape that.)
func New[T any](load Load[T], listed List, began time.Time) *Watcher[T] {
	w := &Watcher[T]{load: load, list: listed, wait: pause}
	if now, newest := take(listed()); newest.Before(began.Add(-tick)) {
		w.seen = now
	}
	return w
}

// UnsettledError says that files were being written to for as long as they were waited for. Nothing was loaded, and the
// next look tries again.
type UnsettledError struct {
	// File is one of them.
	File string
}

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("%s is being written to all the time; write another file and rename it into place", e.File)
}

// Changed loads what has changed since the last look, once it rests. It is false if nothing has.
func (w *Watcher[T]) Changed(ctx context.Context) (value T, changed bool, err error) {
	last := w.look()
	if last.equal(w.seen) {
		return value, false, nil
	}
	w.seen = nil // until something is loaded
	var restless string
	for range rounds {
		if err := w.wait(ctx); err != nil {
			return value, false, err
		}
		if now := w.look(); !now.equal(last) {
			restless, last = last.differs(now), now
			continue
		}
		loaded, listed, err := w.load()
		w.list = listed
		// What it was loaded from may be other files than those that were waited for; these must rest as well.
		now := w.look()
		if now.equal(last) {
			w.seen = now
			return loaded, true, err
		}
		restless, last = last.differs(now), now
	}
	return value, true, &UnsettledError{restless}
}

// Again has the next look load the files, changed or not.
func (w *Watcher[T]) Again() { w.seen = nil }

func (w *Watcher[T]) look() fingerprint {
	now, _ := take(w.list())
	return now
}

func pause(ctx context.Context) error {
	timer := time.NewTimer(settling)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
