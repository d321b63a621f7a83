package sqlite

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/wholefile"
)

const keyLength = 32

func newKey() []byte {
	key := make([]byte, keyLength)
	rand.Read(key)
	return key
}

// keyID identifies a key in the database without giving it away.
func keyID(key []byte) []byte {
	id := sha256.Sum256(append([]byte("govern store key v1\x00"), key...))
	return id[:]
}

// fileKey gives the key beside the store at path, and makes it if the store has none yet. It runs in the transaction
// that records which key is the store's, so that processes which start at once agree.
//
// A key that it makes is durable before that transaction can be. A crash in between leaves a key without a store; the
// next start adopts it.
func fileKey(conn *sqlite.Conn, path string) ([]byte, error) {
	known, err := recordedKeyID(conn)
	if err != nil {
		return nil, err
	}
	file := path + ".key"
	key, err := readKey(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && known == nil:
		key = newKey()
		if err := writeKey(file, key); err != nil {
			return nil, fmt.Errorf("cannot make the store's key %s: %w", file, err)
		}
	case errors.Is(err, fs.ErrNotExist):
		return nil, missingKey(path)
	case err != nil:
		return nil, err
	}
	if known == nil {
		return key, each(conn, sqlMetaCreate, func(stmt *sqlite.Stmt) {
			stmt.SetText(":name", "key")
			stmt.SetBytes(":value", keyID(key))
		}, nil)
	}
	return key, belong(key, known, path)
}

// checkKey refuses a store whose key is not beside it.
func checkKey(conn *sqlite.Conn, path string) error {
	known, err := recordedKeyID(conn)
	if err != nil || known == nil {
		return err
	}
	key, err := readKey(path + ".key")
	if errors.Is(err, fs.ErrNotExist) {
		return missingKey(path)
	}
	if err != nil {
		return err
	}
	return belong(key, known, path)
}

func missingKey(path string) error {
	return fmt.Errorf("the store's key %s.key is missing; restore it beside the state from the same backup or copy", path)
}

func belong(key, known []byte, path string) error {
	if !bytes.Equal(known, keyID(key)) {
		return fmt.Errorf("%s.key is the key of another store; restore the key that belongs to %[1]s beside it; "+
			"and if the state was put back from a backup, remove %[1]s-wal and %[1]s-shm, which are not of it", path)
	}
	return nil
}

func recordedKeyID(conn *sqlite.Conn) (id []byte, err error) {
	err = each(conn, sqlMeta, func(stmt *sqlite.Stmt) { stmt.SetText(":name", "key") },
		func(stmt *sqlite.Stmt) (bool, error) {
			id = getBytes(stmt, "value")
			return false, nil
		})
	return id, err
}

func readKey(file string) ([]byte, error) {
	key, err := wholefile.ReadSecret(file, "the store's key", mostKeyBytes)
	if err != nil {
		return nil, err
	}
	if len(key) != keyLength {
		return nil, fmt.Errorf("the store's key %s does not have %d bytes; restore it beside the state from the same backup or copy", file, keyLength)
	}
	return key, nil
}

// mostKeyBytes is more than any key has, so that a longer one is told by its length.
const mostKeyBytes = 1 << 10

// writeKey makes the key file durable and whole under its name, or does not make it.
func writeKey(file string, key []byte) error {
	unfinished := file + ".new" // no other process writes it: the caller has the write lock
	if err := wholefile.Write(unfinished, key, 0o600); err != nil {
		return err
	}
	return wholefile.Replace(file, unfinished)
}
