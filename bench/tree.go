package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"os"
	"sync"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// tree is the tree over the log, for those who write entries with SQL of their own: a store refuses entries without leaves.
type tree struct {
	readHead, readLeaf, addLeaf, writeHead *sql.Stmt

	mu sync.Mutex // for what follows; transactions are immediate, so nobody waits
	// The head as it was last written, without its HMAC, and the edge of its tree. There is no head if the edge must be read.
	head []byte
	edge merkle.Edge
	mac  *ijson.Keyed
}

func openTree(ctx context.Context, db *sql.DB, file string) (*tree, error) {
	key, err := os.ReadFile(file + ".key")
	if err != nil {
		return nil, err
	}
	t := &tree{mac: ijson.NewKeyed(key, "govern log head v1")}
	return t, prepareAll(ctx, db, map[**sql.Stmt]string{
		&t.readHead:  "SELECT value FROM meta WHERE name = 'head'",
		&t.readLeaf:  "SELECT hashes FROM tree WHERE leaf = ?",
		&t.addLeaf:   "INSERT INTO tree (leaf, hashes) VALUES (?, ?)",
		&t.writeHead: "UPDATE meta SET value = ? WHERE name = 'head'",
	})
}

func prepareAll(ctx context.Context, db *sql.DB, texts map[**sql.Stmt]string) (err error) {
	for stmt, text := range texts {
		if *stmt, err = db.PrepareContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// grow adds the leaves of entries that a transaction has written, and the head.
func (t *tree) grow(ctx context.Context, tx *sql.Tx, bodies [][]byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(ctx, tx); err != nil {
		return err
	}
	t.head = nil
	add := tx.StmtContext(ctx, t.addLeaf)
	var completed []merkle.Hash
	var row []byte
	for _, body := range bodies {
		completed, row = t.edge.Append(merkle.Leaf(body), completed[:0]), row[:0]
		for _, h := range completed {
			row = append(row, h[:]...)
		}
		if _, err := add.ExecContext(ctx, t.edge.Size()-1, row); err != nil {
			return err
		}
	}
	now := t.edge.Head()
	head := append(binary.BigEndian.AppendUint64(nil, uint64(now.Size)), now.Root[:]...)
	if _, err := tx.StmtContext(ctx, t.writeHead).ExecContext(ctx, t.mac.Append(bytes.Clone(head), head)); err != nil {
		return err
	}
	t.head = head
	return nil
}

// refresh reads the edge unless its head is that in the file, as it is not after a transaction was rolled back.
func (t *tree) refresh(ctx context.Context, tx *sql.Tx) error {
	var head []byte
	if err := tx.StmtContext(ctx, t.readHead).QueryRowContext(ctx).Scan(&head); err != nil {
		return err
	}
	if len(t.head) > 0 && bytes.HasPrefix(head, t.head) {
		return nil
	}
	if len(head) < 8 {
		return errors.New("the head of the tree cannot be read")
	}
	size := int64(binary.BigEndian.Uint64(head))
	nodes := merkle.EdgeNodes(size)
	roots := make([]merkle.Hash, len(nodes))
	for i, node := range nodes {
		leaf, place := merkle.Completed(node)
		var hashes []byte
		if err := tx.StmtContext(ctx, t.readLeaf).QueryRowContext(ctx, leaf).Scan(&hashes); err != nil {
			return err
		}
		copy(roots[i][:], hashes[place*len(roots[i]):])
	}
	var err error
	t.edge, err = merkle.EdgeOf(size, roots)
	return err
}

// plant gives leaves to all entries that have none.
func (t *tree) plant(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for {
		bodies, err := leafless(ctx, tx)
		if err == nil && len(bodies) > 0 {
			err = t.grow(ctx, tx, bodies)
		}
		switch {
		case err != nil:
			return errors.Join(err, tx.Rollback())
		case len(bodies) == 0:
			return tx.Commit()
		}
	}
}

// leafless gives the next entries without leaves, few enough to keep.
func leafless(ctx context.Context, tx *sql.Tx) (bodies [][]byte, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT body FROM entries WHERE seq > (SELECT ifnull(max(leaf) + 1, 0) FROM tree) ORDER BY seq LIMIT 1000")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	return bodies, rows.Err()
}
