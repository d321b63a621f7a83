package sqlite

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

var _ merkle.Log = (*Reader)(nil)

// Head gives the tree over the entries as it is now.
func (r *Reader) Head(ctx context.Context) (head merkle.Head, err error) {
	head, _, err = r.head(ctx)
	return head, err
}

// Head gives the tree over the entries as it is now, and refuses a head that no govern with this state's key wrote: it may be
// signed.
func (s *Store) Head(ctx context.Context) (merkle.Head, error) {
	head, row, err := s.head(ctx)
	if tip := newTip(s.key); err == nil && !hmac.Equal(row, tip.format(nil, head)) {
		err = errForeignHead
	}
	return head, s.readers.db.explain(err)
}

func (r *Reader) head(ctx context.Context) (head merkle.Head, row []byte, err error) {
	err = r.readers.snapshot(ctx, func(conn *sqlite.Conn) (err error) {
		if row, err = headRow(conn); err == nil {
			head, err = parseHead(row)
		}
		return err
	})
	return head, row, err
}

// Hashes gives the hashes of nodes of the tree.
func (r *Reader) Hashes(ctx context.Context, nodes []int64) (hashes []merkle.Hash, err error) {
	err = r.readers.snapshot(ctx, func(conn *sqlite.Conn) (err error) {
		hashes, err = hashesOf(conn, nodes)
		return err
	})
	return hashes, err
}

func hashesOf(conn *sqlite.Conn, nodes []int64) ([]merkle.Hash, error) {
	hashes := make([]merkle.Hash, len(nodes))
	for i, node := range nodes {
		leaf, place := merkle.Completed(node)
		row, err := one(conn, sqlTreeLeaf, func(stmt *sqlite.Stmt) { stmt.SetInt64(":leaf", leaf) },
			func(stmt *sqlite.Stmt) ([]byte, error) { return getBytes(stmt, "hashes"), nil })
		if err != nil {
			return nil, err
		}
		const size = len(merkle.Hash{})
		if row == nil || len(*row) < (place+1)*size {
			return nil, unverified(fmt.Errorf("the tree has no hash of node %d", node))
		}
		copy(hashes[i][:], (*row)[place*size:])
	}
	return hashes, nil
}

// The head's row in meta: the size as eight bytes, the root, and an HMAC of both under the store's key, so that nobody
// without the key can make rows of the log disappear by writing another.
const (
	headSize   = 8 + len(merkle.Hash{})
	headRowLen = headSize + 64
)

var (
	errNoHead      = errors.New("the head of the tree is missing")
	errForeignHead = unverified(errors.New("the head of the tree was not written by a govern with this state's key"))
	errBeyondHead  = unverified(errors.New("the table of entries goes on behind what the head of the tree counts"))
)

// headRow gives the row; nothing if there is none.
func headRow(conn *sqlite.Conn) (row []byte, err error) {
	err = each(conn, sqlMeta, func(stmt *sqlite.Stmt) { stmt.SetText(":name", "head") },
		func(stmt *sqlite.Stmt) (bool, error) {
			row = appendBytes(nil, stmt, 0)
			return false, nil
		})
	return row, err
}

// appendBytes appends a column to dst.
func appendBytes(dst []byte, stmt *sqlite.Stmt, column int) []byte {
	size := stmt.ColumnLen(column)
	dst = slices.Grow(dst, size)
	return dst[:len(dst)+stmt.ColumnBytes(column, dst[len(dst):len(dst)+size])]
}

func parseHead(row []byte) (head merkle.Head, err error) {
	switch len(row) {
	case headRowLen:
	case 0:
		return head, errNoHead
	default:
		return head, errors.New("the head of the tree cannot be read")
	}
	head.Size = int64(binary.BigEndian.Uint64(row))
	copy(head.Root[:], row[8:])
	return head, nil
}

// tip is where the log grows: the tree's edge, and the row of meta that it was read from or made.
type tip struct {
	key  []byte
	mac  *ijson.Keyed
	row  []byte // none if it must be read
	edge merkle.Edge
	// For rows on their way: the row of meta as it is now, and where the two tables end.
	read            []byte
	entries, leaves int64
	completed       []byte
	hashes          []merkle.Hash
}

func newTip(key []byte) tip {
	return tip{key: key, mac: ijson.NewKeyed(key, "govern log head v1")}
}

// format appends the row of a head to dst.
func (t *tip) format(dst []byte, head merkle.Head) []byte {
	row := append(binary.BigEndian.AppendUint64(dst, uint64(head.Size)), head.Root[:]...)
	return t.mac.Append(row, row[len(dst):])
}

// refresh reads the tip again if another connection has moved it, and refuses tables that do not end where the head does.
// It runs in a write transaction.
func (t *tip) refresh(conn *sqlite.Conn) error {
	err := each(conn, sqlTreeTip, nil, func(stmt *sqlite.Stmt) (bool, error) {
		t.read = appendBytes(t.read[:0], stmt, 0)
		t.entries, t.leaves = stmt.ColumnInt64(1), 0
		if !stmt.ColumnIsNull(2) {
			t.leaves = stmt.ColumnInt64(2) + 1
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if len(t.row) > 0 && bytes.Equal(t.read, t.row) {
		return t.checkEnds(t.edge.Size())
	}
	return t.take(conn, t.read)
}

func (t *tip) checkEnds(size int64) error {
	if t.entries != size || t.leaves != size {
		return unverified(fmt.Errorf("the head counts %d entries, the table of entries ends with number %d, and the tree has %d leaves", size, t.entries, t.leaves))
	}
	return nil
}

// forget has the next refresh read everything again.
func (t *tip) forget() { t.row = t.row[:0] }

// take takes the tip from the tables, and refuses one that does not verify.
func (t *tip) take(conn *sqlite.Conn, row []byte) error {
	t.forget()
	head, err := parseHead(row)
	if err != nil {
		return unverified(err)
	}
	if !hmac.Equal(row, t.format(nil, head)) {
		return errForeignHead
	}
	if err := t.checkEnds(head.Size); err != nil {
		return err
	}
	roots, err := hashesOf(conn, merkle.EdgeNodes(head.Size))
	if err != nil {
		return err
	}
	if t.edge, err = merkle.EdgeOf(head.Size, roots); err != nil {
		return err
	}
	if t.edge.Head() != head {
		return unverified(errors.New("the hashes of the tree do not give its root"))
	}
	t.row = append(t.row, row...)
	return nil
}

// grow adds leaves, whose entries are in the table already, and the head that covers them.
func (t *tip) grow(conn *sqlite.Conn, leaves []merkle.Hash) error {
	if len(leaves) == 0 {
		return nil
	}
	t.forget()
	add := func(stmt *sqlite.Stmt) {
		stmt.SetInt64(":leaf", t.edge.Size()-1)
		stmt.SetBytes(":hashes", t.completed)
	}
	for _, leaf := range leaves {
		t.hashes, t.completed = t.edge.Append(leaf, t.hashes[:0]), t.completed[:0]
		for i := range t.hashes {
			t.completed = append(t.completed, t.hashes[i][:]...)
		}
		if err := each(conn, sqlTreeAdd, add, nil); err != nil {
			return err
		}
	}
	row := t.format(t.row, t.edge.Head())
	if err := setHead(conn, sqlMetaChange, row); err != nil {
		return err
	}
	if conn.Changes() != 1 {
		return unverified(errNoHead)
	}
	t.row = row
	return nil
}

func setHead(conn *sqlite.Conn, sql string, row []byte) error {
	return each(conn, sql, func(stmt *sqlite.Stmt) {
		stmt.SetText(":name", "head")
		stmt.SetBytes(":value", row)
	}, nil)
}

// tailLength is how many of the last entries are held to the head when a store is opened. All of them take govern log
// verify.
const tailLength = 64

// checkTail refuses a log whose last entries are not those that its head covers. Their leaves say which one it is, and only
// the head whether it is so: who changes an entry can change its leaf.
func (t *tip) checkTail(conn *sqlite.Conn) error {
	if err := t.refresh(conn); err != nil {
		return err
	}
	head := t.edge.Head()
	begin := max(0, head.Size-tailLength)
	roots, err := hashesOf(conn, merkle.EdgeNodes(begin))
	if err != nil {
		return err
	}
	edge, err := merkle.EdgeOf(begin, roots)
	if err != nil {
		return err
	}
	for leaf := begin; leaf < head.Size; leaf++ {
		e, err := one(conn, sqlEntriesFrom, func(stmt *sqlite.Stmt) { stmt.SetInt64(":after", leaf) },
			func(stmt *sqlite.Stmt) (merkle.Hash, error) {
				if stmt.GetInt64("seq") != leaf+1 {
					return merkle.Hash{}, unverified(fmt.Errorf("entry %d is missing", leaf))
				}
				return merkle.Leaf(getBytes(stmt, "body")), nil
			})
		if err != nil {
			return err
		}
		if e == nil {
			return unverified(fmt.Errorf("entry %d is missing", leaf))
		}
		want, err := hashesOf(conn, []int64{merkle.LeafNode(leaf)})
		if err != nil {
			return err
		}
		if *e != want[0] {
			return unverified(fmt.Errorf("entry %d is not the one that was written", leaf))
		}
		edge.Append(*e, nil)
	}
	if edge.Head() != head {
		return unverified(fmt.Errorf("one of the last %d entries is not the one that was written", head.Size-begin))
	}
	return nil
}

// unverifiedError says that the log is not what govern wrote.
type unverifiedError struct{ why error }

func unverified(why error) error { return &unverifiedError{why} }

func (e *unverifiedError) Error() string {
	return "the log does not verify at its tail: " + e.why.Error()
}

func (e *unverifiedError) Unwrap() error { return e.why }

// adopt gives a tree to the log of a store that has none yet: a new one, or that of a govern which made no trees.
func (t *tip) adopt(conn *sqlite.Conn, now time.Time) error {
	t.edge = merkle.Edge{}
	if err := setHead(conn, sqlMetaCreate, t.format(nil, t.edge.Head())); err != nil {
		return err
	}
	for {
		page, err := t.unleaved(conn)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		if err := t.grow(conn, page); err != nil {
			return err
		}
	}
	if t.edge.Size() == 0 {
		return nil
	}
	commit, err := dispatch.Baseline(t.edge.Size(), now)
	if err != nil {
		return err
	}
	r, err := encode(commit)
	if err != nil {
		return err
	}
	if _, err := r.insert(conn, t.edge.Size()); err != nil {
		return err
	}
	return t.grow(conn, r.leaves)
}

// unleaved gives the leaves of some of the entries that have none yet.
func (t *tip) unleaved(conn *sqlite.Conn) (leaves []merkle.Hash, err error) {
	next := t.edge.Size()
	err = each(conn, sqlEntriesFrom, func(stmt *sqlite.Stmt) { stmt.SetInt64(":after", next) },
		func(stmt *sqlite.Stmt) (bool, error) {
			next++
			if stmt.GetInt64("seq") != next {
				return false, fmt.Errorf("entry %d of the log is missing; put back a backup of the state with its key", next-1)
			}
			leaves = append(leaves, merkle.Leaf(getBytes(stmt, "body")))
			return len(leaves) < pageRows, nil
		})
	return leaves, err
}
