package sqlite

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// SQLite before 3.51.3 can lose a commit when two connections reset the write-ahead log. modernc.org/sqlite sets the
// version; zombiezen.com/go/sqlite alone would choose an older one.
func TestSQLiteIsNewEnough(t *testing.T) {
	s := openMemory(t)
	var version string
	require.NoError(t, each(s.writer.conn, "SELECT sqlite_version()", nil, func(stmt *sqlite.Stmt) (bool, error) {
		version = stmt.ColumnText(0)
		return false, nil
	}))
	var major, minor, patch int
	_, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, major*1_000_000+minor*1_000+patch, 3_051_003, version)
}

func TestCommitsAreSynced(t *testing.T) {
	s := openFile(t, newPath(t))
	assert.Equal(t, 2, pragma(t, s.writer.conn, "synchronous"), "FULL")
	assert.Equal(t, 1, pragma(t, s.writer.conn, "fullfsync"))
	assert.Equal(t, applicationID, pragma(t, s.writer.conn, "application_id"))
	assert.Equal(t, len(migrationNames()), pragma(t, s.writer.conn, "user_version"))
}

func pragma(t *testing.T, conn *sqlite.Conn, name string) (value int) {
	t.Helper()
	require.NoError(t, each(conn, "PRAGMA "+name, nil, func(stmt *sqlite.Stmt) (bool, error) {
		value = stmt.ColumnInt(0)
		return false, nil
	}))
	return value
}

func TestFilesAreForThisUserOnly(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	createTask(t, s, "labels-1")
	files, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), file)
		names = append(names, filepath.Base(file))
	}
	assert.Equal(t, []string{"govern.db", "govern.db-shm", "govern.db-wal", "govern.db.key", "govern.db.lock"}, names)
}

func TestReopeningGivesTheSameState(t *testing.T) {
	path := newPath(t)
	s, err := Open(t.Context(), path, Options{})
	require.NoError(t, err)
	key := s.Key()
	task := createTask(t, s, "labels-1")
	require.NoError(t, s.Close())
	assert.NoFileExists(t, path+"-wal")

	s = openFile(t, path)
	assert.Equal(t, key, s.Key())
	got, err := s.Task(t.Context(), task.TaskKey)
	require.NoError(t, err)
	assert.Equal(t, task, got)
}

func TestAClosedStoreSaysSo(t *testing.T) {
	for name, open := range map[string]func() (*Store, error){
		"file":   func() (*Store, error) { return Open(t.Context(), newPath(t), Options{}) },
		"memory": func() (*Store, error) { return OpenMemory(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := open()
			require.NoError(t, err)
			task := createTask(t, s, "labels-1")
			require.NoError(t, s.Close())
			require.NoError(t, s.Close())
			assert.ErrorIs(t, s.Apply(t.Context(), next(task)), errClosed)
			_, err = s.Load(t.Context(), task.TaskKey, dispatch.Lookup{})
			assert.ErrorIs(t, err, errClosed)
			_, err = s.Hold(t.Context(), task.TaskKey)
			assert.ErrorIs(t, err, errClosed)
		})
	}
}

func TestMemoryStoresShareNothing(t *testing.T) {
	one, two := openMemory(t), openMemory(t)
	createTask(t, one, "labels-1")
	createTask(t, two, "labels-1")
	assert.NotEqual(t, one.Key(), two.Key())
	assert.Len(t, one.Key(), 32)
}

// A path may hold characters that mean something in a URI, and may lead through symbolic links.
func TestOddPaths(t *testing.T) {
	for _, name := range []string{"a?mode=memory", "a#b", "a%20b", "file:a", ":memory:", " ", "é"} {
		path := filepath.Join(t.TempDir(), name)
		createTask(t, openFile(t, path), "labels-1")
		assert.FileExists(t, path)
	}
	path := newPath(t)
	first := openFile(t, path)
	link := newPath(t)
	require.NoError(t, os.Symlink(path, link))
	second := openFile(t, link)
	assert.Equal(t, first.Key(), second.Key())
	assert.NoFileExists(t, link+".key")
}

func TestRefusedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want []string
	}{
		"text": {
			func(t *testing.T, path string) { write(t, path, "this is a shopping list\n") },
			[]string{"is not a SQLite file", "another path"},
		},
		"long text": {
			func(t *testing.T, path string) { write(t, path, strings.Repeat("this is no database\n", 10_000)) },
			[]string{"is not a SQLite file"},
		},
		"another program's": {
			func(t *testing.T, path string) {
				script(t, path, "PRAGMA application_id = 42; CREATE TABLE theirs (x);")
			},
			[]string{"belongs to another program", "0x2a", "another path"},
		},
		"another program's without a mark": {
			func(t *testing.T, path string) { script(t, path, "CREATE TABLE theirs (x);") },
			[]string{"belongs to another program"},
		},
		"another program's, empty but for its version": {
			func(t *testing.T, path string) { script(t, path, "PRAGMA user_version = 3;") },
			[]string{"belongs to another program"},
		},
		"another program's in WAL mode": {
			func(t *testing.T, path string) {
				script(t, path, "PRAGMA journal_mode = WAL; CREATE TABLE theirs (x);")
			},
			[]string{"belongs to another program"},
		},
		"a newer store": {
			func(t *testing.T, path string) {
				s, err := Open(t.Context(), path, Options{})
				require.NoError(t, err)
				require.NoError(t, s.Close())
				require.NoError(t, os.Remove(path+".lock"))
				require.NoError(t, os.Remove(path+".key"))
				script(t, path, fmt.Sprintf("PRAGMA user_version = %d;", len(migrationNames())+1))
			},
			[]string{"newer govern", fmt.Sprintf("version %d", len(migrationNames())+1), "install"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			c.make(t, path)
			before, err := os.ReadFile(path)
			require.NoError(t, err)

			_, err = Open(t.Context(), path, Options{})
			require.Error(t, err)
			for _, want := range append(c.want, path) {
				assert.Contains(t, err.Error(), want)
			}
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, before, after, "the file was changed")
			assert.NoFileExists(t, path+".key")
			assert.NoFileExists(t, path+".lock")
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// script makes or changes a database as another program would.
func script(t *testing.T, path, sql string) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	require.NoError(t, err)
	for statement := range strings.SplitSeq(strings.TrimSuffix(sql, ";"), ";") {
		require.NoError(t, sqlitex.ExecuteTransient(conn, statement, nil))
	}
	require.NoError(t, conn.Close())
}

func TestRefusedPaths(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "file"), "x")
	require.NoError(t, os.Symlink(filepath.Join(folder, "nowhere"), filepath.Join(folder, "dangling")))
	for name, c := range map[string]struct {
		path string
		want []string
	}{
		"none":                 {"", []string{"no path"}},
		"a folder":             {folder, []string{folder, "is a folder"}},
		"in no folder":         {filepath.Join(folder, "none", "govern.db"), []string{"does not exist", "mkdir -p -m 700 " + filepath.Join(folder, "none")}},
		"in a file":            {filepath.Join(folder, "file", "govern.db"), []string{filepath.Join(folder, "file")}},
		"a link to nothing":    {filepath.Join(folder, "dangling"), []string{"dangling", "symbolic link"}},
		"a device":             {os.DevNull, []string{os.DevNull, "not a regular file"}},
		"a name with a NUL in": {filepath.Join(folder, "a\x00b"), []string{folder}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), c.path, Options{})
			require.Error(t, err)
			for _, want := range c.want {
				assert.Contains(t, err.Error(), want)
			}
		})
	}
}

// What a crash can leave of a first start is finished by the next.
func TestUnfinishedStarts(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, path string){
		"an empty file":       func(t *testing.T, path string) { write(t, path, "") },
		"a switch to WAL":     func(t *testing.T, path string) { script(t, path, "PRAGMA journal_mode = WAL") },
		"a rollback journal":  leaveJournal,
		"half a key":          func(t *testing.T, path string) { write(t, path+".key.new", "half") },
		"a key, and no state": func(t *testing.T, path string) { write(t, path+".key", strings.Repeat("k", 32)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			leave(t, path)
			s := openFile(t, path)
			createTask(t, s, "labels-1")
			kept, err := os.ReadFile(path + ".key")
			require.NoError(t, err)
			assert.Equal(t, kept, s.Key())
			assert.NoFileExists(t, path+".key.new")
		})
	}
}

// leaveJournal leaves what a crash leaves in the middle of a transaction that is not in WAL mode.
func leaveJournal(t *testing.T, path string) {
	t.Helper()
	crashed := newPath(t)
	script(t, crashed, "CREATE TABLE t (x); DROP TABLE t")
	conn, err := sqlite.OpenConn(crashed, sqlite.OpenReadWrite)
	require.NoError(t, err)
	for _, sql := range []string{
		"PRAGMA cache_size = 1", "BEGIN", "CREATE TABLE t (x)", "INSERT INTO t VALUES (zeroblob(1 << 20))",
	} {
		require.NoError(t, execute(conn, sql))
	}
	for _, suffix := range []string{"", "-journal"} {
		b, err := os.ReadFile(crashed + suffix)
		require.NoError(t, err)
		write(t, path+suffix, string(b))
	}
	require.NoError(t, conn.Close())
}

func TestManyOpenOneNewFileAtOnce(t *testing.T) {
	for range 5 {
		path := newPath(t)
		keys := make([][]byte, 8)
		var all sync.WaitGroup
		for i := range keys {
			all.Go(func() {
				s, err := Open(t.Context(), path, Options{})
				if !assert.NoError(t, err) {
					return
				}
				keys[i] = s.Key()
				createTask(t, s, fmt.Sprint(i))
				assert.NoError(t, s.Close())
			})
		}
		all.Wait()
		for _, key := range keys {
			assert.Equal(t, keys[0], key)
		}
		tasks, err := openFile(t, path).Tasks(t.Context(), dispatch.DefaultTenant)
		require.NoError(t, err)
		assert.Len(t, tasks, len(keys))
	}
}

// A file that is new here is closed once before SQLite opens it. Closing a file frees every lock that this process has
// on it, so nobody else may have gone on to SQLite by then.
func TestNobodyOpensAFileThatIsBeingMade(t *testing.T) {
	path := newPath(t)
	makeStore(t, path)
	creating.Lock()
	opened := make(chan error, 1)
	go func() {
		s, err := Open(t.Context(), path, Options{})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	for len(opened) == 0 && !waitsInExist() {
		runtime.Gosched()
	}
	early := len(opened)
	creating.Unlock()
	require.NoError(t, <-opened)
	assert.Zero(t, early, "opened while a file was being made")
}

// waitsInExist says whether a goroutine waits for the lock on creating.
func waitsInExist() bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for one := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(one, "[sync.Mutex.Lock") && strings.Contains(one, "internal/sqlite.exist(") {
			return true
		}
	}
	return false
}

func TestEntriesAreNeverChanged(t *testing.T) {
	s := openFile(t, newPath(t))
	createTask(t, s, "labels-1")
	for _, sql := range []string{
		"UPDATE entries SET body = x'00'",
		"UPDATE entries SET n = 7 WHERE step = 0",
		"DELETE FROM entries",
	} {
		err := execute(s.writer.conn, sql)
		assert.Equal(t, sqlite.ResultConstraintTrigger, sqlite.ErrCode(err), sql)
		assert.ErrorContains(t, err, "entries are never")
	}
}

// A statement that Apply does not have is stopped too.
func TestWhatAnApprovalIsOfNeverChanges(t *testing.T) {
	s := openFile(t, newPath(t))
	c := creation("labels-1")
	c.Approvals = []dispatch.ApprovalChange{{Approval: dispatch.Approval{
		ID: "a1", Task: c.Task.TaskKey, State: dispatch.Pending, Proposal: []byte("{}")}}}
	require.NoError(t, s.Apply(t.Context(), c))
	for _, column := range []string{
		"seq", "tenant", "task", "id", "actor", "signature", "definition", "mode", "step", "proposal",
	} {
		err := execute(s.writer.conn, "UPDATE approvals SET "+column+" = "+column)
		assert.Equal(t, sqlite.ResultConstraintTrigger, sqlite.ErrCode(err), column)
	}
	for _, column := range []string{"state", "terms", "votes", "expires_at_step", "expires_at", "policy_version"} {
		assert.NoError(t, execute(s.writer.conn, "UPDATE approvals SET "+column+" = "+column))
	}
}

// Nothing but listings reads committed operations otherwise than by their identity or their id, and commits are more frequent
// than those.
func TestACommitKeepsNoIndexForListingsOfOperations(t *testing.T) {
	s := openMemory(t)
	var indexes []string
	require.NoError(t, each(s.writer.conn, "PRAGMA index_list(operations)", nil, func(stmt *sqlite.Stmt) (bool, error) {
		if !stmt.GetBool("partial") {
			indexes = append(indexes, stmt.GetText("origin"))
		}
		return true, nil
	}))
	assert.Equal(t, []string{"u", "pk"}, indexes)
}

// What is open is found without a look at what is known, and an operation by its id without one at others.
func TestOperationsAreFoundByTheirIndexes(t *testing.T) {
	s := openMemory(t)
	for sql, want := range map[string]string{
		sqlOperation:            "USING PRIMARY KEY (tenant=? AND task=? AND actor=? AND key=? AND dispatch=?)",
		sqlOperationByID:        "USING INDEX sqlite_autoindex_operations_2 (tenant=? AND id=?)",
		sqlOpen:                 "USING INDEX operations_open (tenant=? AND task=?)",
		sqlOperationsOpen:       "USING INDEX operations_open (tenant=?)",
		sqlOperationsOpenOfTask: "USING INDEX operations_open (tenant=? AND task=?)",
		sqlOperationChange:      "USING INDEX sqlite_autoindex_operations_2 (tenant=? AND id=?)",
	} {
		var plan []string
		require.NoError(t, each(s.writer.conn, "EXPLAIN QUERY PLAN "+sql, nil, func(stmt *sqlite.Stmt) (bool, error) {
			plan = append(plan, stmt.GetText("detail"))
			return true, nil
		}))
		assert.Equal(t, "SEARCH operations "+want, plan[0], sql)
	}
}

func TestListingsUseIndexes(t *testing.T) {
	s := openMemory(t)
	for _, sql := range []string{
		sqlTask, sqlTasks, sqlApproval, sqlApprovalLatest, sqlApprovals, sqlApprovalsOfTask, sqlApprovalsUnsettled, sqlApprovalsUnsettledOfTask, sqlPending, sqlOperation,
		sqlOperationByID, sqlOpen, sqlOperations, sqlOperationsOfTask, sqlOperationsOpen, sqlOperationsOpenOfTask, sqlRecordExists, sqlRecords, sqlRecordsOfTask, sqlEntries, sqlEntriesOfTask,
		sqlEntryLast, sqlEntry, sqlApprovalSeq,
	} {
		require.NoError(t, each(s.writer.conn, "EXPLAIN QUERY PLAN "+sql, nil, func(stmt *sqlite.Stmt) (bool, error) {
			detail := stmt.GetText("detail")
			assert.False(t, strings.HasPrefix(detail, "SCAN") && !strings.Contains(detail, "json_each"), "%s\n%s", sql, detail)
			// What is found by a list of states is sorted afterwards, and so are operations.
			if !strings.Contains(sql, "FROM approvals") && !strings.Contains(sql, "FROM operations") {
				assert.NotContains(t, detail, "TEMP B-TREE", sql)
			}
			return true, nil
		}))
	}
}

// What a part of a listing costs does not depend on what is beside it: it is found in an index whose order is that of the
// listing, forwards and backwards, and which leaves no other rows. A task's entries of other kinds alone are passed over.
func TestPartsOfListingsAreFoundInAnIndex(t *testing.T) {
	s := openMemory(t)
	for _, part := range []struct{ forwards, backwards, plan string }{
		{bySeq.all(sqlEntriesKind), bySeq.nth(sqlEntriesKind),
			"entries USING INDEX entries_kind (tenant=? AND kind=? AND rowid>? AND rowid<?)"},
		{byPlace.all(sqlEntriesKindOfTask), byPlace.nth(sqlEntriesKindOfTask),
			"entries USING INDEX sqlite_autoindex_entries_1 (tenant=? AND task=? AND (step,n)>(?,?) AND (step,n)<(?,?))"},
		{bySeq.all(sqlApprovalsIn), bySeq.nth(sqlApprovalsIn),
			"approvals USING INDEX approvals_tenant (tenant=? AND rowid>? AND rowid<?)"},
		{bySeq.all(sqlApprovalsInTask), bySeq.nth(sqlApprovalsInTask),
			"approvals USING INDEX approvals_task (tenant=? AND task=? AND rowid>? AND rowid<?)"},
		{bySeq.all(sqlApprovalsWaiting), bySeq.nth(sqlApprovalsWaiting),
			"approvals USING INDEX approvals_unsettled (tenant=? AND rowid>? AND rowid<?)"},
		{bySeq.all(sqlApprovalsWaitingInTask), bySeq.nth(sqlApprovalsWaitingInTask),
			"approvals USING INDEX approvals_waiting (tenant=? AND task=? AND rowid>? AND rowid<?)"},
		{byID.all(sqlTasksIn), byID.nth(sqlTasksIn),
			"tasks USING PRIMARY KEY (tenant=? AND id>? AND id<?)"},
	} {
		for _, sql := range []string{part.forwards, part.backwards} {
			assert.Equal(t, []string{"SEARCH " + part.plan}, plan(t, s, sql), sql)
		}
	}
	assert.Contains(t, plan(t, s, sqlApprovals), "SEARCH approvals USING INDEX approvals_tenant (tenant=?)")
	assert.Contains(t, plan(t, s, sqlApprovalsOfTask), "SEARCH approvals USING INDEX approvals_task (tenant=? AND task=?)")
	assert.Contains(t, plan(t, s, sqlApprovalsUnsettled), "SEARCH approvals USING INDEX approvals_unsettled (tenant=?)")
	assert.Contains(t, plan(t, s, sqlApprovalsUnsettledOfTask), "SEARCH approvals USING INDEX approvals_open (tenant=? AND task=?)")
	assert.Equal(t, []string{"SEARCH approvals USING COVERING INDEX approvals_waiting (tenant=? AND task=?)"}, plan(t, s, sqlPending))
	assert.Equal(t, []string{"SEARCH entries USING INDEX entries_kind (tenant=? AND kind=?)"}, plan(t, s, sqlEntryLast))
}

// plan is how SQLite means to go about a statement.
func plan(t *testing.T, s *Store, sql string) (steps []string) {
	t.Helper()
	require.NoError(t, each(s.writer.conn, "EXPLAIN QUERY PLAN "+sql, nil, func(stmt *sqlite.Stmt) (bool, error) {
		steps = append(steps, stmt.GetText("detail"))
		return true, nil
	}))
	return steps
}

func makeStore(t *testing.T, path string) {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestMustExist(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	_, err := Open(t.Context(), path, Options{MustExist: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, path)
	for _, name := range []string{path, path + ".key", path + ".lock"} {
		require.NoFileExists(t, name)
	}
	s, err := Open(t.Context(), path, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s, err = Open(t.Context(), path, Options{MustExist: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// Under two names one file would have two write-ahead logs, and an effect of one would be unknown to the other.
func TestHardLinksAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(t.Context(), path, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	second := filepath.Join(t.TempDir(), "other.db")
	require.NoError(t, os.Link(path, second))
	for _, name := range []string{path, second} {
		_, err := Open(t.Context(), name, Options{})
		require.ErrorContains(t, err, name+" has 2 names")
	}
	require.NoError(t, os.Remove(second))
	s, err = Open(t.Context(), path, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
