package sqlite

import (
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
)

// Sizes of the write-ahead log, which holds commits until a checkpoint moves them into the file.
const (
	// logFull is from where on it is moved and begun anew.
	logFull = 8 << 20
	// logLook is how much a store writes before it looks how long the log is: other processes write it too.
	logLook = logFull / 8
	// logKept is what a log that was longer is cut to. What is kept is overwritten, and is synced in less time than what
	// grows.
	logKept = 2 * logFull
	// logLong is from where on people are told, once and then at each doubling.
	logLong = 8 * logFull
)

// resetWait is how long the writer waits for reads to end before it begins the log anew. Ours take less than a
// millisecond.
const resetWait = 20 * time.Millisecond

// checkpointer moves the write-ahead log into the file, so that the writer need not. What is left for the writer is to
// move what came in meanwhile and to begin the log anew, which a reader of an old state can prevent.
type checkpointer struct {
	db   *database
	conn *sqlite.Conn // nil until it is needed
	// looks asks for a look at the log. resets asks the writer to begin it anew, and to say whether it could.
	looks    chan struct{}
	resets   chan chan<- bool
	stopping chan struct{}
	stopped  chan struct{}
	// again is the size at which another try is worth it, told the one that people were last told of.
	again, told int64
}

func newCheckpointer(db *database) *checkpointer {
	c := &checkpointer{
		db:       db,
		looks:    make(chan struct{}),
		resets:   make(chan chan<- bool),
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	go c.loop()
	return c
}

func (c *checkpointer) loop() {
	defer close(c.stopped)
	for {
		select {
		case <-c.looks:
			if conn := c.own(); conn != nil {
				c.look(conn, c.askWriter)
			}
		case <-c.stopping:
			return
		}
	}
}

func (c *checkpointer) askWriter() bool {
	done := make(chan bool, 1)
	select {
	case c.resets <- done:
		return <-done
	case <-c.stopping:
		return false
	}
}

// own gives the checkpointer's connection, or nil if there is none to be had now.
func (c *checkpointer) own() *sqlite.Conn {
	if c.conn == nil {
		c.conn, _ = c.db.openWriter()
	}
	return c.conn
}

// close ends the goroutine, after the writer's, and has a last look in the writer's place: others who keep the file open
// may never write, and then nobody else would look.
func (c *checkpointer) close(w *writer) error {
	close(c.stopping)
	<-c.stopped
	if w.conn != nil {
		c.look(w.conn, w.beginLog)
	}
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

// look moves the log if it is full. That this fails costs room, and no commit: the next look tries again.
func (c *checkpointer) look(conn *sqlite.Conn, reset func() bool) {
	size, _, err := checkpoint(conn, "NOOP")
	if err != nil || size < max(logFull, c.again) {
		if size < logFull {
			c.again = 0
		}
		return
	}
	_, _, err = checkpoint(conn, "PASSIVE")
	if err == nil && reset() {
		c.again, c.told = 0, 0
		return
	}
	c.again = size + logFull
	if size < max(logLong, 2*c.told) || c.db.warn == nil {
		return
	}
	c.told = size
	why := "some program keeps an old state of the store open for reading, perhaps a sqlite3 shell or a backup; end it, or the file grows on"
	if err != nil {
		why = c.db.explain(err).Error()
	}
	c.db.warn(fmt.Sprintf("%s-wal has grown to %d MiB: %s", c.db.name, size>>20, why))
}

// checkpoint runs a checkpoint of one of SQLite's modes. It gives the size of the log as it was, and whether something
// was in the way.
func checkpoint(conn *sqlite.Conn, mode string) (size int64, busy bool, err error) {
	err = each(conn, "PRAGMA wal_checkpoint("+mode+")", nil, func(stmt *sqlite.Stmt) (bool, error) {
		busy, size = stmt.ColumnBool(0), stmt.ColumnInt64(1)*frameSize
		return false, nil
	})
	return size, busy, err
}

// frameSize is what the log takes for a page of the usual size.
const frameSize = 24 + 4096
