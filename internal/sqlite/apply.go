package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// Apply makes a commit durable, all of it or none.
//
// When it returns nil, the commit is synced to disk and MUST survive a crash of the process and of the machine. When
// it returns dispatch.ErrMoved, dispatch.ErrTaskExists or dispatch.ErrUnavailable, nothing of the commit was kept or
// will be. After any other error the caller MUST NOT assume either: it reads the state again.
//
// A ctx that ends before the writer has taken up the commit calls it back. Later it changes nothing: Apply MUST NOT
// say no to what became durable, so it waits for the outcome.
func (s *Store) Apply(ctx context.Context, commit dispatch.Commit) error {
	r, err := encode(commit)
	if err != nil {
		return err
	}
	r.sealWith(s.box)
	return s.writer.write(ctx, r)
}

// rows is a commit in the form in which the tables have it.
type rows struct {
	dispatch.Commit
	approvals []approvalRow
	leaves    []merkle.Hash // of the entries
	inFlight  ijson.Raw     // nil where nothing is
	// operationSealed, proposalSealed and recordSealed are the exact bytes beside what has seals, encrypted.
	operationSealed, proposalSealed, recordSealed []byte
	// size is about what the rows take in the write-ahead log.
	size int64
}

// rowSize is about what a row takes there beside its bytes: a page of its table and one of an index.
const rowSize = 2 * frameSize

type approvalRow struct {
	dispatch.ApprovalChange
	terms, votes ijson.Raw
	sealed       []byte
}

// encode also refuses a commit that is not about one task and its next revision: a fault of the program, not of the
// moment.
func encode(c dispatch.Commit) (rows, error) {
	if c.Task.Revision != c.Revision+1 {
		return rows{}, fmt.Errorf("a commit on revision %d cannot make revision %d", c.Revision, c.Task.Revision)
	}
	r := rows{Commit: c, approvals: make([]approvalRow, len(c.Approvals))}
	keys := make([]dispatch.TaskKey, 0, len(c.Approvals)+len(c.Entries)+2)
	for i, a := range c.Approvals {
		terms, err := ijson.Marshal(a.Terms)
		if err != nil {
			return rows{}, fmt.Errorf("the terms of approval %s: %w", a.ID, err)
		}
		votes, err := ijson.Marshal(a.Votes)
		if err != nil {
			return rows{}, fmt.Errorf("the votes on approval %s: %w", a.ID, err)
		}
		r.approvals[i] = approvalRow{ApprovalChange: a, terms: terms, votes: votes}
		r.size += int64(len(a.Proposal) + len(terms) + len(votes))
		keys = append(keys, a.Task)
	}
	if len(c.Task.InFlight) > 0 {
		var err error
		if r.inFlight, err = ijson.Marshal(c.Task.InFlight); err != nil {
			return rows{}, fmt.Errorf("the calls under way of task %s: %w", c.Task.ID, err)
		}
		r.size += int64(len(r.inFlight))
	}
	if c.Operation != nil {
		keys = append(keys, c.Operation.Task)
		r.size += int64(len(c.Operation.Proposal) + len(c.Operation.Result))
	}
	if c.Record != nil {
		keys = append(keys, c.Record.Task)
		r.size += int64(len(c.Record.Value))
	}
	r.leaves = make([]merkle.Hash, 0, len(c.Entries))
	for _, e := range c.Entries {
		keys = append(keys, e.Task)
		r.leaves = append(r.leaves, merkle.Leaf(e.Body))
		r.size += int64(len(e.Body))
	}
	for _, v := range c.Contents {
		r.size += int64(len(v.Bytes))
	}
	r.size += int64(1+len(keys)+len(r.leaves)+len(c.Contents)) * rowSize
	for _, key := range keys {
		if key != c.Task.TaskKey {
			return rows{}, fmt.Errorf("a commit of task %q holds a row of task %q", c.Task.TaskKey, key)
		}
	}
	return r, nil
}

// insert writes the rows behind as many entries as there are. The task's row goes first: its revision is the guard of all
// others, and a commit that is refused there has written nothing; begun says that it came further.
func (r *rows) insert(conn *sqlite.Conn, entries int64) (begun bool, err error) {
	if err := r.insertTask(conn); err != nil {
		return false, err
	}
	return true, r.insertOthers(conn, entries)
}

func (r *rows) insertOthers(conn *sqlite.Conn, entries int64) error {
	for _, a := range r.approvals {
		if err := a.insert(conn); err != nil {
			return err
		}
	}
	if r.Operation != nil {
		if err := r.insertOperation(conn); err != nil {
			return err
		}
	}
	if v := r.Record; v != nil {
		if err := guarded(conn, sqlRecordCreate, func(stmt *sqlite.Stmt) { bindRecord(stmt, v, r.recordSealed) }); err != nil {
			return err
		}
	}
	for _, v := range r.Contents {
		err := each(conn, sqlContentKeep, func(stmt *sqlite.Stmt) {
			stmt.SetText(":digest", v.Digest)
			stmt.SetBytes(":bytes", v.Bytes)
		}, nil)
		if err != nil {
			return err
		}
	}
	for _, e := range r.Entries {
		entries++
		err := each(conn, sqlEntryCreate, func(stmt *sqlite.Stmt) { bindEntry(stmt, entries, e) }, nil)
		switch {
		case sqlite.ErrCode(err) == sqlite.ResultConstraintPrimaryKey:
			return errBeyondHead
		case isTaken(err):
			return dispatch.ErrMoved
		case err != nil:
			return err
		}
	}
	return nil
}

func (r *rows) insertTask(conn *sqlite.Conn) error {
	if r.Revision == 0 {
		err := each(conn, sqlTaskCreate, r.bindTask, nil)
		if isTaken(err) {
			return dispatch.ErrTaskExists
		}
		return err
	}
	return guarded(conn, sqlTaskChange, func(stmt *sqlite.Stmt) {
		r.bindTask(stmt)
		stmt.SetInt64(":from", r.Revision)
	})
}

// insertOperation leaves the exact call of a row that changes to the statement, which knows the row.
func (r *rows) insertOperation(conn *sqlite.Conn) error {
	o := r.Operation
	if o.From == "" {
		return guarded(conn, sqlOperationCreate, r.bindOperation)
	}
	return guarded(conn, sqlOperationChange, func(stmt *sqlite.Stmt) {
		r.bindOperation(stmt)
		stmt.SetText(":from", string(o.From))
		stmt.SetInt64(":from_run", int64(o.FromRun))
	})
}

// released says that an approval comes back, because its call was never sent.
func (a approvalRow) released() bool {
	return a.From == dispatch.Consumed && a.State == dispatch.Approved
}

func (a approvalRow) insert(conn *sqlite.Conn) error {
	if a.From == "" {
		return guarded(conn, sqlApprovalCreate, a.bind)
	}
	err := guarded(conn, sqlApprovalChange, func(stmt *sqlite.Stmt) {
		a.bind(stmt)
		stmt.SetText(":from", string(a.From))
	})
	if !errors.Is(err, dispatch.ErrMoved) {
		return err
	}
	// Nobody else can have changed what an approval is of: that it differs is the program's fault.
	old, failed := approvalByID(conn, a.Task.Tenant, a.ID, scanApproval)
	if failed != nil {
		return failed
	}
	if old != nil && !a.sameCall(old) {
		return fmt.Errorf("%w: %s", errAnotherCall, a.ID)
	}
	return err
}

// errAnotherCall refuses to give what people said of one call to another.
var errAnotherCall = errors.New("a commit changes what an approval is of")

func (a approvalRow) sameCall(old *dispatch.Approval) bool {
	return a.Task == old.Task && a.Actor == old.Actor && a.Signature == old.Signature && a.Definition == old.Definition &&
		a.Mode == old.Mode && a.Step == old.Step && bytes.Equal(a.Proposal, old.Proposal)
}

// guarded runs a statement that must write exactly one row. That it wrote none, or that its place is taken, means that
// another commit came first.
func guarded(conn *sqlite.Conn, sql string, bind func(*sqlite.Stmt)) error {
	if err := each(conn, sql, bind, nil); err != nil {
		if isTaken(err) {
			return dispatch.ErrMoved
		}
		return err
	}
	if conn.Changes() != 1 {
		return dispatch.ErrMoved
	}
	return nil
}

func isTaken(err error) bool {
	switch sqlite.ErrCode(err) {
	case sqlite.ResultConstraintUnique, sqlite.ResultConstraintPrimaryKey, sqlite.ResultConstraintRowID:
		return true
	}
	return false
}

func (r *rows) bindTask(stmt *sqlite.Stmt) {
	t := &r.Task
	stmt.SetText(":tenant", t.Tenant)
	stmt.SetText(":id", t.ID)
	stmt.SetText(":profile", t.Profile)
	stmt.SetText(":actor", t.Actor)
	stmt.SetInt64(":steps", int64(t.Steps))
	stmt.SetInt64(":spent_cost", t.Spent.Cost)
	stmt.SetInt64(":spent_attempts", t.Spent.Attempts)
	stmt.SetInt64(":spent_output", t.Spent.Output)
	setName(stmt, ":in_flight", string(r.inFlight))
	stmt.SetBool(":cancelled", t.Cancelled)
	setTime(stmt, ":deadline", t.Deadline)
	setTime(stmt, ":updated", t.Updated)
	stmt.SetInt64(":entries", int64(t.Entries))
	stmt.SetInt64(":revision", t.Revision)
}

func (a approvalRow) bind(stmt *sqlite.Stmt) {
	stmt.SetText(":tenant", a.Task.Tenant)
	stmt.SetText(":task", a.Task.ID)
	stmt.SetText(":id", a.ID)
	stmt.SetText(":actor", a.Actor)
	stmt.SetText(":signature", a.Signature)
	stmt.SetText(":definition", a.Definition)
	stmt.SetText(":mode", string(a.Mode))
	stmt.SetInt64(":step", int64(a.Step))
	stmt.SetBytes(":proposal", a.Proposal)
	stmt.SetText(":state", string(a.State))
	stmt.SetText(":terms", string(a.terms))
	stmt.SetText(":votes", string(a.votes))
	stmt.SetInt64(":expires_at_step", int64(a.ExpiresAtStep))
	setTime(stmt, ":expires_at", a.ExpiresAt)
	stmt.SetText(":policy_version", a.PolicyVersion)
	setBytes(stmt, ":sealed", a.sealed)
}

func (r *rows) bindOperation(stmt *sqlite.Stmt) {
	o := r.Operation
	stmt.SetText(":tenant", o.Task.Tenant)
	stmt.SetText(":task", o.Task.ID)
	stmt.SetText(":actor", o.Actor)
	stmt.SetText(":key", o.Key)
	stmt.SetInt64(":dispatch", int64(o.Dispatch))
	stmt.SetText(":id", o.ID)
	stmt.SetText(":signature", o.Signature)
	stmt.SetText(":tool", o.Tool)
	stmt.SetText(":state", string(o.State))
	stmt.SetInt64(":step", int64(o.Step))
	stmt.SetInt64(":run", int64(o.Run))
	setName(stmt, ":effect", o.Effect)
	setName(stmt, ":definition", o.Definition)
	setName(stmt, ":outward", o.Outward)
	setTime(stmt, ":since", o.Since)
	setTime(stmt, ":lease", o.Lease)
	setName(stmt, ":target", o.Target)
	setName(stmt, ":approval", o.Approval)
	setName(stmt, ":policy_version", o.PolicyVersion)
	stmt.SetInt64(":lookups", int64(o.Lookups))
	setBytes(stmt, ":proposal", o.Proposal)
	setBytes(stmt, ":proposal_sealed", r.proposalSealed)
	setBytes(stmt, ":result", o.Result)
	setBytes(stmt, ":sealed", r.operationSealed)
}

func bindRecord(stmt *sqlite.Stmt, r *dispatch.Record, sealed []byte) {
	stmt.SetText(":tenant", r.Task.Tenant)
	stmt.SetText(":task", r.Task.ID)
	stmt.SetText(":tool", r.Tool)
	stmt.SetText(":target", r.Target)
	stmt.SetBytes(":value", r.Value)
	setBytes(stmt, ":sealed", sealed)
}

func bindEntry(stmt *sqlite.Stmt, seq int64, e dispatch.Entry) {
	stmt.SetInt64(":seq", seq)
	stmt.SetText(":tenant", e.Task.Tenant)
	stmt.SetText(":task", e.Task.ID)
	stmt.SetInt64(":step", int64(e.Step))
	stmt.SetInt64(":n", int64(e.N))
	stmt.SetText(":kind", string(e.Kind))
	stmt.SetBytes(":body", e.Body)
}
