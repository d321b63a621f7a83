package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// chunk is how many entries are read in one transaction. A transaction that reads keeps nobody from writing, but as long
// as one lasts, SQLite cannot begin its write-ahead log anew.
const chunk = 20_000

// NotNewest is what no state can tell of itself.
const NotNewest = "whether it is the newest state: one that was put back as it once was is whole; a checkpoint that was kept elsewhere tells"

// State audits the state in a file, also while govern writes it: it is read in parts, and what is left, the tables and the
// head in one last transaction, so that they are of one moment. It changes nothing and takes no lock that keeps others out.
// An error says that it cannot be read; everything else is in the report.
func State(ctx context.Context, file string, o Options) (Report, error) {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return Report{}, err
	}
	conn, err := openState(ctx, file)
	if err != nil {
		return Report{}, err
	}
	defer conn.Close()
	s := &stateAudit{auditor: newAuditor(ctx, o), conn: conn, at: -1}
	if err := s.complete(); err != nil {
		return Report{}, err
	}
	if err := s.checkSchema(); err != nil {
		return Report{}, err
	}
	unchecked, err := s.readKey(file)
	if err != nil {
		return Report{}, err
	}
	if len(o.Checkpoints) == 0 {
		unchecked = append(unchecked, NotNewest)
	}
	damage := checkFile(ctx, file)
	err = s.read()
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultCorrupt {
		s.state("", "", Damaged, "the file cannot be read beyond %d entries: %v", s.size, err)
		err = nil
	}
	for _, said := range <-damage {
		s.state("", "", Damaged, "the file is damaged: %s", said)
	}
	if err != nil {
		return Report{}, s.closing(err)
	}
	return s.report(unchecked)
}

// openState opens the file for reading alone. Where the write-ahead log is empty it is opened as one that can be written,
// since only such a connection takes away on closing what every reader makes beside the file. Where it is not, what it
// holds would then be moved into the file. A file that was closed well can be read where nothing can be written.
func openState(ctx context.Context, file string) (*sqlite.Conn, error) {
	access := sqlite.OpenReadOnly
	info, err := os.Stat(file + "-wal")
	empty := errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
	if empty {
		access = sqlite.OpenReadWrite
	}
	conn, err := openAs(ctx, file, access)
	if code := sqlite.ErrCode(err).ToPrimary(); code != sqlite.ResultCantOpen && code != sqlite.ResultReadOnly {
		return conn, err
	}
	if !empty {
		return nil, fmt.Errorf("%s-wal holds commits, which cannot be read where nothing can be written; copy both files to another folder: %w", file, err)
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(absolute), RawQuery: "immutable=1"}
	return openAs(ctx, name.String(), sqlite.OpenReadOnly|sqlite.OpenURI)
}

func openAs(ctx context.Context, file string, access sqlite.OpenFlags) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(file, access)
	if err != nil {
		return nil, err
	}
	conn.SetInterrupt(ctx.Done())
	for _, sql := range []string{"PRAGMA query_only = ON", "SELECT count(*) FROM sqlite_schema"} {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// checkCache is how much of the file SQLite keeps for its own check at most, in KiB: it looks up every row in every index.
const checkCache = 32 << 10

// checkFile has SQLite look at its own file, beside all else.
func checkFile(ctx context.Context, file string) <-chan []string {
	done := make(chan []string, 1)
	go func() {
		found, err := integrity(ctx, file)
		if err != nil && ctx.Err() == nil {
			found = append(found, err.Error())
		}
		done <- found
	}()
	return done
}

func integrity(ctx context.Context, file string) (found []string, err error) {
	conn, err := openState(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA cache_size = -%d", checkCache), nil); err != nil {
		return nil, err
	}
	err = query(conn, "PRAGMA integrity_check", nil, func(stmt *sqlite.Stmt) error {
		if said := stmt.ColumnText(0); said != "ok" {
			found = append(found, said)
		}
		return nil
	})
	return found, err
}

type stateAudit struct {
	*auditor
	aligner
	conn *sqlite.Conn
	// at is the last leaf that was read, row the last of the tree, and leaves its tree.
	at, row    int64
	leaves     merkle.Edge
	treeBroken bool
	whole      bool // the head is of these very entries
	body       []byte
	hashes     []byte
	column     []byte
}

// tables are those that this version of a state has.
var tables = []string{"meta", "tasks", "approvals", "operations", "records", "entries", "tree", "contents"}

// complete refuses what is no state, or one of another version.
func (s *stateAudit) complete() error {
	have := map[string]bool{}
	err := query(s.conn, "SELECT name FROM sqlite_schema WHERE type = 'table'", nil, func(stmt *sqlite.Stmt) error {
		have[stmt.ColumnText(0)] = true
		return nil
	})
	if err != nil {
		return err
	}
	for _, table := range tables {
		if !have[table] {
			return fmt.Errorf("it has no table %s: it is no state of this version of govern. An older one is brought up to date by the first command that opens it, such as govern log decisions", table)
		}
	}
	return nil
}

// readKey reads the key beside the state, if it is there for this user.
func (s *stateAudit) readKey(file string) (unchecked []string, err error) {
	known := []byte(nil)
	if err := s.meta("key", func(value []byte) { known = value }); err != nil {
		return nil, err
	}
	f, err := os.Open(file + ".key")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return []string{"signatures and the head's code: the key " + file + ".key is not there for this user"}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	key, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return nil, err
	}
	if id := sha256.Sum256(append([]byte("govern store key v1\x00"), key...)); !bytes.Equal(known, id[:]) {
		s.state("", "", KeyDiffers, "the key %s.key is not the state's; signatures were not checked", file)
		return nil, nil
	}
	s.setKey(key)
	return nil, nil
}

func (s *stateAudit) meta(name string, value func([]byte)) error {
	return query(s.conn, "SELECT value FROM meta WHERE name = ?", func(stmt *sqlite.Stmt) { stmt.BindText(1, name) },
		func(stmt *sqlite.Stmt) error {
			value(columnBytes(stmt, 0, nil))
			return nil
		})
}

// read goes through the log, and holds head and tables against it.
func (s *stateAudit) read() error {
	for {
		last, err := s.part()
		if last || err != nil {
			return err
		}
	}
}

// part reads entries in one transaction, and all the rest if these are the last.
func (s *stateAudit) part() (last bool, err error) {
	if err := sqlitex.ExecuteTransient(s.conn, "BEGIN", nil); err != nil {
		return false, err
	}
	defer func() {
		if !s.conn.AutocommitEnabled() {
			err = errors.Join(err, sqlitex.ExecuteTransient(s.conn, "ROLLBACK", nil))
		}
	}()
	n, err := s.entriesAndTree()
	if err != nil || n == chunk {
		return false, err
	}
	if err := s.checkFirst(); err != nil {
		return false, err
	}
	if err := s.checkHead(); err != nil {
		return false, err
	}
	if err := s.finishLog(); err != nil {
		return false, err
	}
	return true, s.compareTables()
}

// entriesAndTree reads the next entries and rows of the tree, side by side. It gives the greater number of both.
func (s *stateAudit) entriesAndTree() (n int, err error) {
	log, err := s.conn.Prepare("SELECT seq, tenant, task, step, n, kind, body FROM entries WHERE seq > ? ORDER BY seq LIMIT ?")
	if err != nil {
		return 0, err
	}
	tree, err := s.conn.Prepare("SELECT leaf, hashes FROM tree WHERE leaf > ? ORDER BY leaf LIMIT ?")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Reset(), tree.Reset()) }()
	log.BindInt64(1, s.at+1)
	log.BindInt64(2, chunk)
	tree.BindInt64(1, s.row-1) // s.row may have wrapped behind the greatest number, which nothing follows
	tree.BindInt64(2, chunk)
	moreLog, moreTree := true, true
	for ; ; n++ {
		// After its last row a statement would begin anew.
		if moreLog {
			if moreLog, err = log.Step(); err != nil {
				return n, err
			}
		}
		if moreTree {
			if moreTree, err = tree.Step(); err != nil {
				return n, err
			}
		}
		if !moreLog && !moreTree {
			return n, nil
		}
		if err := s.pair(log, moreLog, tree, moreTree); err != nil {
			return n, err
		}
	}
}

// pair takes an entry and a row of the tree, as far as there are any.
func (s *stateAudit) pair(log *sqlite.Stmt, moreLog bool, tree *sqlite.Stmt, moreTree bool) error {
	var have, want merkle.Hash
	if moreLog {
		s.at = log.ColumnInt64(0) - 1
		s.body = columnBytes(log, 6, s.body)
		hash, err := s.take(s.at, s.body)
		if err != nil {
			return err
		}
		have = hash
		s.checkRow(log)
	}
	if moreTree {
		want = s.checkLeaf(tree)
	}
	if moreLog && moreTree && s.same(have, want) {
		return nil
	}
	if moreLog {
		h := leafAt{leaf: s.at, hash: have, said: s.unreadable}
		if !s.unreadable {
			h.place = about(&s.entry, "", "")
		}
		s.have = append(s.have, h)
	}
	if moreTree {
		s.want = append(s.want, leafAt{leaf: s.row - 1, hash: want})
	}
	s.meet(false)
	return nil
}

// checkRow holds the columns beside an entry against it.
func (s *stateAudit) checkRow(log *sqlite.Stmt) {
	if s.unreadable {
		s.locate(log)
		return
	}
	e := &s.entry
	same := log.ColumnInt64(3) == e.step && log.ColumnInt64(4) == e.n
	for column, member := range map[int]int{1: eTenant, 2: eTask, 5: eKind} {
		s.column = columnBytes(log, column, s.column)
		same = same && isText(e.str(member), s.column)
	}
	if !same {
		s.findings.at(e, RowDiffers, "its row says %q, task %q, %d.%d %s", log.ColumnText(1), log.ColumnText(2), log.ColumnInt64(3), log.ColumnInt64(4), log.ColumnText(5))
	}
}

// locate gives the place of an entry that cannot be read, as its row has it.
func (s *stateAudit) locate(log *sqlite.Stmt) {
	if x := &s.list[len(s.list)-1]; x.Leaf != nil && *x.Leaf == s.at && x.Code == Changed {
		x.Tenant, x.Task, x.Step, x.N, x.Kind = log.ColumnText(1), log.ColumnText(2), new(log.ColumnInt64(3)), new(log.ColumnInt64(4)), log.ColumnText(5)
	}
}

// checkLeaf holds a row of the tree against the rows before it, and gives its leaf.
func (s *stateAudit) checkLeaf(tree *sqlite.Stmt) (leaf merkle.Hash) {
	row := tree.ColumnInt64(0)
	if row != s.row {
		s.leaf(s.row, TreeDiffers, "the tree has no rows for the leaves %d to %d", s.row, row-1)
		s.treeBroken = true
	}
	s.row = row + 1
	s.hashes = columnBytes(tree, 1, s.hashes)
	if copy(leaf[:], s.hashes) < len(leaf) {
		s.leaf(row, TreeDiffers, "the row of the tree has no hash")
		s.treeBroken = true
		return leaf
	}
	s.completed = s.leaves.Append(leaf, s.completed[:0])
	same := len(s.hashes) == len(s.completed)*len(leaf)
	for i, h := range s.completed {
		same = same && bytes.Equal(h[:], s.hashes[i*len(h):(i+1)*len(h)])
	}
	if !same && !s.treeBroken {
		s.treeBroken = true // every later hash over it is another one too
		s.leaf(row, TreeDiffers, "the hashes that this leaf completes are not those of the leaves before it")
	}
	return leaf
}

// checkFirst finds rows with numbers before the first. They are of no leaf, and listings would show such entries.
func (s *stateAudit) checkFirst() error {
	err := query(s.conn, "SELECT seq, tenant, task, step, n, kind FROM entries WHERE seq < 1", nil, func(stmt *sqlite.Stmt) error {
		s.state(stmt.ColumnText(1), stmt.ColumnText(2), Inserted, "entries: the row %d, which says %d.%d %s, stands before the first of the log",
			stmt.ColumnInt64(0), stmt.ColumnInt64(3), stmt.ColumnInt64(4), stmt.ColumnText(5))
		return nil
	})
	if err != nil {
		return err
	}
	return query(s.conn, "SELECT leaf FROM tree WHERE leaf < 0", nil, func(stmt *sqlite.Stmt) error {
		s.state("", "", TreeDiffers, "tree: the row %d stands before the first leaf", stmt.ColumnInt64(0))
		return nil
	})
}

// checkHead holds the head that the state keeps against its tree and its entries.
func (s *stateAudit) checkHead() error {
	var head []byte
	if err := s.meta("head", func(value []byte) { head = value }); err != nil {
		return err
	}
	const length = 8 + 32 + 64
	if len(head) != length { // a log without entries has one too
		s.state("", "", HeadDiffers, "the state has no head of its log")
		return nil
	}
	size := int64(binary.BigEndian.Uint64(head))
	var root merkle.Hash
	copy(root[:], head[8:])
	tree, own := s.leaves.Head(), s.edge.Head()
	signed := s.key == nil || string(head[40:]) == ijson.HMAC(s.key, "govern log head v1", head[:40])
	switch end := s.at + 1; {
	case signed && own == (merkle.Head{Size: size, Root: root}):
		s.whole = true
	case size > tree.Size && size > end:
		s.leaf(end, Cut, "the log ends here, and the head is of %d entries", size)
	case size != tree.Size:
		s.state("", "", HeadDiffers, "the head is of %d entries, and the tree of %d", size, tree.Size)
	case root != tree.Root:
		s.state("", "", HeadDiffers, "the head's root is not that of the tree")
	}
	if !signed {
		s.state("", "", HeadDiffers, "the head was not written with the state's key")
	}
	return nil
}

func (s *stateAudit) finishLog() error {
	if err := s.finishTasks(); err != nil {
		return err
	}
	if s.whole {
		s.blameTree(&s.findings)
	} else {
		s.explain(&s.findings, s.at+1)
	}
	s.judgeCheckpoints()
	return nil
}

// isText says whether a string in canonical form is this text.
func isText(canonical, text []byte) bool {
	if bytes.IndexByte(canonical, '\\') < 0 {
		return bytes.Equal(canonical, text)
	}
	return plainText(canonical) == string(text)
}
