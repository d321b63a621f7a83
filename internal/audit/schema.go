package audit

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
)

// schema lists the tables, indexes and triggers of a state, and the SHA-256 of the text of the last two. That of tables
// depends on the version of SQLite that altered them.
//
//go:embed schema.txt
var schema string

// checkSchema names what somebody has taken from the state's own rules, or added to them: a trigger can undo what a commit
// does, and an index that is gone lets through what it kept apart.
func (s *stateAudit) checkSchema() error {
	want := map[string]string{}
	for line := range strings.Lines(schema) {
		f := strings.Fields(line)
		want[f[0]+" "+f[1]] = f[2]
	}
	err := query(s.conn, "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name", nil, func(stmt *sqlite.Stmt) error {
		name := stmt.ColumnText(0) + " " + stmt.ColumnText(1)
		digest, known := want[name]
		delete(want, name)
		switch {
		case !known:
			s.state("", "", SchemaDiffers, "govern has made no %s", name)
		case digest != schemaDigest(stmt):
			s.state("", "", SchemaDiffers, "the %s is not the one that govern made", name)
		}
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(want)) {
		s.state("", "", SchemaDiffers, "the %s is missing", name)
	}
	return err
}

func schemaDigest(stmt *sqlite.Stmt) string {
	if stmt.ColumnText(0) == "table" {
		return "-"
	}
	sum := sha256.Sum256(bytes.TrimSpace([]byte(stmt.ColumnText(2))))
	return fmt.Sprintf("%x", sum)
}
