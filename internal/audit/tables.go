package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// What the tables of a state must hold is what the entries say. Each row is held against what was remembered under its
// name; if that leaves names over, they are looked for in the table.

// compareTables holds every table against the entries.
func (s *stateAudit) compareTables() error {
	for _, compare := range []func() error{s.compareTasks, s.compareApprovals, s.compareOperations, s.compareRecords, s.compareContents} {
		if err := compare(); err != nil {
			return err
		}
	}
	return nil
}

// row is a row of a table whose name was found.
type row struct {
	*stateAudit
	stmt  *sqlite.Stmt
	table string
	name  []byte // in canonical form, its parts joined by zero bytes
	task  string
}

// raw gives a column as it is, and text in the canonical form of a JSON string, without the quotes. Both are good until the
// next call.
func (r row) raw(column int) []byte {
	r.column = columnBytes(r.stmt, column, r.column)
	return r.column
}

func (r row) text(column int) []byte { return quote(r.raw(column)) }

// is holds a column against what the entries say.
func (r row) is(column int, has, want []byte) {
	if !bytes.Equal(has, want) {
		r.fault("%s of %s is %s, and the entries say %s", r.stmt.ColumnName(column), slashed(r.name), shown(has), shown(want))
	}
}

func (r row) isText(column int, want []byte) { r.is(column, r.text(column), want) }
func (r row) isRaw(column int, want []byte)  { r.is(column, r.raw(column), want) }

func (r row) isCount(column int, want int64) {
	if r.stmt.ColumnInt64(column) != want {
		r.is(column, r.raw(column), strconv.AppendInt(nil, want, 10))
	}
}

func (r row) fault(format string, args ...any) {
	r.tableFault(r.table, r.name, r.task, format, args...)
}

func (s *stateAudit) tableFault(table string, name []byte, task string, format string, args ...any) {
	tenant, _, _ := bytes.Cut(name, []byte{0})
	s.state(plainText(tenant), task, TableDiffers, table+": "+format, args...)
}

func slashed(name []byte) string {
	return plainText(bytes.ReplaceAll(name, []byte{0}, []byte("/")))
}

// shown is a value in a message: nothing long.
func shown(b []byte) string {
	if len(b) > 100 {
		return plainText(b[:100]) + "…"
	}
	return cmp.Or(plainText(b), "empty")
}

// quote gives a text the canonical form of a JSON string, without the quotes.
func quote(b []byte) []byte {
	if !bytes.ContainsFunc(b, func(r rune) bool { return r < 0x20 || r == '"' || r == '\\' }) {
		return b
	}
	quoted, err := ijson.AppendString(nil, string(b))
	if err != nil {
		return b // not UTF-8, which no entry is
	}
	return quoted[1 : len(quoted)-1]
}

// compareTable holds the rows of a table against all that is known. Its first columns are the name, and key the condition
// that finds a row by them. task says whose a thing is, known or not.
func compareTable[T any, P packed[T]](s *stateAudit, c *cache[T, P], columns, key string, names int, task func(r row, known P) string, same func(r row, known P)) error {
	matched := int64(0)
	err := query(s.conn, "SELECT "+columns+" FROM "+c.table, nil, func(stmt *sqlite.Stmt) error {
		r := row{stateAudit: s, stmt: stmt, table: c.table}
		for i := range names {
			if i > 0 {
				r.name = append(r.name, 0)
			}
			r.name = append(r.name, r.text(i)...)
		}
		known, err := c.peek(r.name)
		if err != nil {
			return err
		}
		if r.task = task(r, known); known == nil {
			r.fault("the row %s is in no entry", slashed(r.name))
			return nil
		}
		matched++
		same(r, known)
		return nil
	})
	if err != nil || matched == c.known {
		return err
	}
	return c.each(func(name string, known P) error {
		found := false
		err := query(s.conn, "SELECT 1 FROM "+c.table+" WHERE "+key, func(stmt *sqlite.Stmt) {
			for i, part := range bytes.Split([]byte(name), []byte{0}) {
				stmt.BindText(i+1, plainText(part))
			}
		}, func(*sqlite.Stmt) error {
			found = true
			return nil
		})
		if err == nil && !found {
			s.tableFault(c.table, []byte(name), task(row{name: []byte(name)}, known), "the row %s is missing", slashed([]byte(name)))
		}
		return err
	})
}

// second is the task in a name of which it is the second part.
func second(name []byte) string { return plainText(bytes.Split(name, []byte{0})[1]) }

func (s *stateAudit) compareTasks() error {
	return compareTable(s, s.tasks, "tenant, id, profile, actor, steps, cancelled, deadline, updated, entries, revision, spent_cost, spent_attempts, spent_output, in_flight",
		"tenant = ? AND id = ?", 2, func(r row, _ *task) string { return second(r.name) },
		func(r row, t *task) {
			at := spot{r.stmt.ColumnInt64(4), r.stmt.ColumnInt64(8) - 1}
			if t.at.before(at) && r.stmt.ColumnInt64(9) > t.revision {
				s.add(Finding{Leaf: new(s.at + 1), Tenant: plainText(t.tenant), Task: plainText(t.id), Code: Cut,
					Message: "the state of the task is of its entry " + at.String() + ", and its entries end with " + t.at.String()})
				return
			}
			r.isText(2, t.profile)
			r.isText(3, t.actor)
			r.isCount(4, t.at.step)
			cancelled := int64(0)
			if t.cancelled {
				cancelled = 1
			}
			r.isCount(5, cancelled)
			r.isText(6, t.deadline)
			r.isText(7, t.updated)
			r.isCount(8, t.at.n+1)
			r.isCount(9, t.revision)
			for i, spent := range t.spent {
				r.isCount(10+i, spent)
			}
			r.isRaw(13, t.inFlight())
		})
}

func (s *stateAudit) compareApprovals() error {
	var d doc
	return compareTable(s, s.approvals, "tenant, id, task, actor, signature, definition, mode, step, state, terms, votes, expires_at_step, expires_at, policy_version, proposal",
		"tenant = ? AND id = ?", 2, func(r row, v *approval) string {
			if v == nil {
				return r.stmt.ColumnText(2)
			}
			return second(v.task)
		},
		func(r row, v *approval) {
			_ = d.scan(v.stand) // as it was read from an entry
			known := standIn(&d, 1)
			r.isText(2, bytes.SplitN(v.task, []byte{0}, 2)[1])
			for column, member := range map[int]int{3: sActor, 4: sSignature, 5: sDefinition, 6: sMode, 8: sState, 12: sExpiresAt, 13: sPolicyVersion} {
				r.isText(column, known.str(member))
			}
			r.isCount(7, known.count(known.at[sStep]))
			r.isRaw(9, known.raw(sTerms))
			if votes := r.raw(10); string(votes) != "null" || string(known.raw(sVotes)) != "[]" {
				r.isRaw(10, known.raw(sVotes))
			}
			r.isCount(11, known.count(known.at[sExpiresAtStep]))
			if v.asked && sha256.Sum256(r.raw(14)) != v.call {
				r.fault("%s shows another call than the one that was asked for", slashed(r.name))
			}
		})
}

func (s *stateAudit) compareOperations() error {
	return compareTable(s, s.operations, "tenant, id, task, actor, key, signature, tool, state, effect, definition, outward, since, lease, approval, dispatch, step, run, lookups, proposal, result",
		"tenant = ? AND id = ?", 2,
		func(r row, o *operation) string {
			if o == nil {
				return r.stmt.ColumnText(2)
			}
			return plainText(o.task)
		},
		func(r row, o *operation) {
			for i, want := range [...][]byte{o.task, o.actor, o.key, o.signature, o.tool, o.state, o.effect, o.definition, o.outward, o.since, o.lease, o.approval} {
				r.isText(2+i, want)
			}
			for i, want := range [...]int64{o.dispatch, o.step, o.run, o.lookups} {
				r.isCount(14+i, want)
			}
			if len(o.lease) > 0 && sha256.Sum256(r.raw(18)) != o.call {
				r.fault("%s shows another call than the one that was begun", slashed(r.name))
			}
			if sha256.Sum256(r.raw(19)) != o.result {
				r.fault("result of %s is %s, and the entries say something else", slashed(r.name), shown(r.raw(19)))
			}
		})
}

func (s *stateAudit) compareRecords() error {
	return compareTable(s, s.records, "tenant, task, tool, target, value", "tenant = ? AND task = ? AND tool = ? AND target = ?", 4,
		func(r row, _ *record) string { return second(r.name) },
		func(r row, v *record) {
			if sha256.Sum256(r.raw(4)) != v.value {
				r.fault("value of %s is %s, and the entries say something else", slashed(r.name), shown(r.raw(4)))
			}
		})
}

// compareContents holds what was kept by digest against that, and against the entries that name it. There may be more of it.
func (s *stateAudit) compareContents() error {
	err := query(s.conn, "SELECT digest, bytes FROM contents", nil, func(stmt *sqlite.Stmt) error {
		digest := columnBytes(stmt, 0, nil)
		sum := sha256.Sum256(columnBytes(stmt, 1, nil))
		if hex.EncodeToString(sum[:]) != string(digest) {
			s.state("", "", TableDiffers, "contents: the bytes of %s are not those", shown(digest))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.contents.each(func(digest string, c *content) error {
		found := false
		err := query(s.conn, "SELECT 1 FROM contents WHERE digest = ?", func(stmt *sqlite.Stmt) { stmt.BindText(1, digest) }, func(*sqlite.Stmt) error {
			found = true
			return nil
		})
		if err == nil && !found {
			s.leaf(c.leaf, TableDiffers, "contents: %s, which this entry names, is missing", digest)
		}
		return err
	})
}
