package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
)

// schemaDigest is that of the tables, indexes and triggers which the migrations make. A test says what it has to be.
const schemaDigest = "b78e7ce85fd6659f311af9d853baebc321a18f76f9c418e7ee42bf8375c62d70"

// errForeignSchema says that somebody has taken away a trigger or an index, or added one: it could undo what a commit does.
var errForeignSchema = errors.New("its tables, indexes or triggers are not those that govern makes")

func checkSchema(conn *sqlite.Conn) error {
	digest, err := digestOfSchema(conn)
	if err == nil && digest != schemaDigest {
		err = errForeignSchema
	}
	return err
}

func digestOfSchema(conn *sqlite.Conn) (string, error) {
	h := sha256.New()
	err := each(conn, sqlSchema, nil, func(stmt *sqlite.Stmt) (bool, error) {
		fmt.Fprintf(h, "%q %q %q\n", stmt.ColumnText(0), stmt.ColumnText(1), stmt.ColumnText(2))
		return true, nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
