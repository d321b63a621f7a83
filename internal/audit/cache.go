package audit

import (
	"encoding/binary"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// memory is where the audit remembers what it has read: the latest of each kind in memory, the rest in a temporary file
// of SQLite's, which has no name and is for this user only. What stands there stands in the log too, or is a digest of it.
type memory struct {
	conn *sqlite.Conn
}

// spillCache is how much SQLite keeps of the temporary file, in KiB.
const spillCache = 4 << 10

// open makes the file when the first thing has to go there.
func (m *memory) open(table string) error {
	if m.conn == nil {
		conn, err := sqlite.OpenConn("", sqlite.OpenReadWrite|sqlite.OpenCreate) // a file without a name
		if err != nil {
			return err
		}
		m.conn = conn
		for _, sql := range []string{"PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", fmt.Sprintf("PRAGMA cache_size = -%d", spillCache), "BEGIN"} {
			if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
				return err
			}
		}
	}
	return sqlitex.ExecuteTransient(m.conn, "CREATE TABLE "+table+" (name BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID", nil)
}

func (m *memory) close() error {
	if m.conn == nil {
		return nil
	}
	return m.conn.Close()
}

// packed is a thing that can be put into bytes and taken out of them.
type packed[T any] interface {
	*T
	// pack names every part that is to be kept.
	pack(p *packer)
}

// packer goes through the parts of a thing, in one direction or the other.
type packer struct {
	b       []byte
	reading bool
}

func (p *packer) text(v *[]byte) {
	n := int64(len(*v))
	p.number(&n)
	if !p.reading {
		p.b = append(p.b, *v...)
		return
	}
	n = min(n, int64(len(p.b)))
	*v, p.b = append((*v)[:0], p.b[:n]...), p.b[n:]
}

func (p *packer) number(v *int64) {
	if !p.reading {
		p.b = binary.AppendVarint(p.b, *v)
		return
	}
	n := 0
	*v, n = binary.Varint(p.b)
	p.b = p.b[max(n, 0):]
}

func (p *packer) hash(v *merkle.Hash) {
	if !p.reading {
		p.b = append(p.b, v[:]...)
		return
	}
	p.b = p.b[copy(v[:], p.b):]
}

func (p *packer) flag(v *bool) {
	n := int64(0)
	if *v {
		n = 1
	}
	p.number(&n)
	*v = n == 1
}

// cache remembers things of one kind by name.
type cache[T any, P packed[T]] struct {
	*memory
	table string
	most  int
	items map[string]*item[T]
	// ring begins with what was used last.
	ring item[T]
	// known counts all, and spilled says that some are in the file.
	known   int64
	spilled bool
	scratch []byte
}

type item[T any] struct {
	name       string
	value      T
	dirty      bool
	prev, next *item[T]
}

func newCache[T any, P packed[T]](m *memory, table string, most int) *cache[T, P] {
	c := &cache[T, P]{memory: m, table: table, most: max(most, 2), items: map[string]*item[T]{}}
	c.ring.prev, c.ring.next = &c.ring, &c.ring
	return c
}

func (i *item[T]) unlink() { i.prev.next, i.next.prev = i.next, i.prev }

func (c *cache[T, P]) front(i *item[T]) {
	i.prev, i.next = &c.ring, c.ring.next
	i.prev.next, i.next.prev = i, i
}

// peek finds a thing that is not going to be changed, nil if there is none of that name. It is good until the next call.
func (c *cache[T, P]) peek(name []byte) (P, error) {
	i, err := c.find(name)
	if i == nil {
		return nil, err
	}
	return &i.value, nil
}

// get finds a thing, nil if there is none of that name. It is good, and can be changed, until the next call.
func (c *cache[T, P]) get(name []byte) (P, error) {
	i, err := c.find(name)
	if i == nil {
		return nil, err
	}
	i.dirty = true
	return &i.value, nil
}

// make adds a thing of a name that there is not yet, for get's caller to fill in.
func (c *cache[T, P]) make(name []byte) (P, error) {
	i := &item[T]{name: string(name), dirty: true}
	c.known++
	return &i.value, c.keep(i)
}

func (c *cache[T, P]) find(name []byte) (*item[T], error) {
	if i := c.items[string(name)]; i != nil {
		if c.ring.next != i {
			i.unlink()
			c.front(i)
		}
		return i, nil
	}
	if !c.spilled {
		return nil, nil
	}
	i := (*item[T])(nil)
	err := c.run("SELECT value FROM "+c.table+" WHERE name = ?", func(stmt *sqlite.Stmt) {
		i = &item[T]{name: string(name)}
		c.unpack(stmt, 0, &i.value)
	}, name)
	if i == nil || err != nil {
		return nil, err
	}
	return i, c.keep(i)
}

func (c *cache[T, P]) unpack(stmt *sqlite.Stmt, column int, into P) {
	c.scratch = columnBytes(stmt, column, c.scratch)
	into.pack(&packer{b: c.scratch, reading: true})
}

// keep puts a thing first, and some that were not used for long into the file if there are too many.
func (c *cache[T, P]) keep(i *item[T]) error {
	c.items[i.name] = i
	c.front(i)
	if len(c.items) <= c.most {
		return nil
	}
	return c.spill(max(c.most/8, 1))
}

// spill moves the n things that were used longest ago into the file.
func (c *cache[T, P]) spill(n int) error {
	if !c.spilled {
		if err := c.open(c.table); err != nil {
			return err
		}
		c.spilled = true
	}
	for ; n > 0; n-- {
		i := c.ring.prev
		if i.dirty {
			p := packer{b: c.scratch[:0]}
			P(&i.value).pack(&p)
			c.scratch = p.b
			if err := c.run("INSERT OR REPLACE INTO "+c.table+" (name, value) VALUES (?, ?)", nil, []byte(i.name), p.b); err != nil {
				return err
			}
		}
		i.unlink()
		delete(c.items, i.name)
	}
	return nil
}

func (c *cache[T, P]) run(sql string, row func(*sqlite.Stmt), bind ...[]byte) error {
	return query(c.conn, sql, func(stmt *sqlite.Stmt) {
		for i, b := range bind {
			stmt.BindBytes(i+1, b)
		}
	}, func(stmt *sqlite.Stmt) error {
		row(stmt)
		return nil
	})
}

// each goes through all things, in any order. The function must not use the cache.
func (c *cache[T, P]) each(do func(name string, value P) error) error {
	if !c.spilled {
		for name, i := range c.items {
			if err := do(name, &i.value); err != nil {
				return err
			}
		}
		return nil
	}
	if err := c.spill(len(c.items)); err != nil {
		return err
	}
	return query(c.conn, "SELECT name, value FROM "+c.table, nil, func(stmt *sqlite.Stmt) error {
		var value T
		c.unpack(stmt, 1, &value)
		return do(string(columnBytes(stmt, 0, nil)), &value)
	})
}

// query runs a statement that stays prepared, over all of its rows.
func query(conn *sqlite.Conn, sql string, bind func(*sqlite.Stmt), row func(*sqlite.Stmt) error) (err error) {
	stmt, err := conn.Prepare(sql)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Reset()) }()
	if bind != nil {
		bind(stmt)
	}
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		if err := row(stmt); err != nil {
			return err
		}
	}
}

// columnBytes reads a text or blob into a slice that it may use again.
func columnBytes(stmt *sqlite.Stmt, column int, into []byte) []byte {
	n := stmt.ColumnLen(column)
	if cap(into) < n {
		into = make([]byte, n+n/4)
	}
	into = into[:n]
	stmt.ColumnBytes(column, into)
	return into
}
