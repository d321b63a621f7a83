package sqlite

import (
	"fmt"
	"strconv"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/seal"
)

// The places of rows, outside of which their bytes do not open.

func approvalPlace(a *dispatch.Approval) []string {
	return []string{"approvals", a.Task.Tenant, a.Task.ID, a.ID}
}

func operationPlace(o *dispatch.Operation) []string {
	place := []string{"operations", o.Task.Tenant, o.Task.ID, o.Actor, o.Key}
	if o.Key == "" {
		place = append(place, strconv.Itoa(o.Dispatch))
	}
	return place
}

// proposalPlace is longer than the other of the same row, and so never that of a result.
func proposalPlace(o *dispatch.Operation) []string {
	return []string{"operations", o.Task.Tenant, o.Task.ID, o.Actor, o.Key, strconv.Itoa(o.Dispatch), "proposal"}
}

func recordPlace(r *dispatch.Record) []string {
	return []string{"records", r.Task.Tenant, r.Task.ID, r.Tool, r.Target}
}

// sealWith encrypts the exact bytes that the rows get, where there are any. A row that changes keeps its own otherwise.
func (r *rows) sealWith(box *seal.Box) {
	sealed := func(exact ijson.Raw, place []string) []byte {
		if exact == nil {
			return nil
		}
		b := box.Seal(exact, place...)
		r.size += int64(len(b))
		return b
	}
	for i := range r.approvals {
		if a := &r.approvals[i]; a.From == "" || a.released() {
			a.sealed = sealed(a.Exact, approvalPlace(&a.Approval))
		}
	}
	if o := r.Operation; o != nil {
		r.operationSealed = sealed(o.Exact, operationPlace(&o.Operation))
		if o.State != dispatch.Committed {
			r.proposalSealed = sealed(o.ExactProposal, proposalPlace(&o.Operation))
		}
	}
	if v := r.Record; v != nil {
		r.recordSealed = sealed(v.Exact, recordPlace(v))
	}
}

// unseal gives the exact bytes of a column that has any, to who has the key.
func (r *Reader) unseal(stmt *sqlite.Stmt, column string, place []string) (ijson.Raw, error) {
	sealed := getBytes(stmt, column)
	if sealed == nil || r.box == nil {
		return nil, nil
	}
	exact, err := r.box.Open(sealed, place...)
	if err != nil {
		return nil, fmt.Errorf("the row %q of the table %s: %w; the state was changed by hand or is damaged: restore it, and its key, from the same backup", place[1:], place[0], err)
	}
	return exact, nil
}

// exactApproval scans an approval with its exact call.
func (r *Reader) exactApproval(stmt *sqlite.Stmt) (dispatch.Approval, error) {
	a, err := scanApproval(stmt)
	if err == nil {
		a.Exact, err = r.unseal(stmt, "sealed", approvalPlace(&a))
	}
	return a, err
}

// exactOperation scans an operation with its exact call and what it gave.
func (r *Reader) exactOperation(stmt *sqlite.Stmt) (dispatch.Operation, error) {
	o, err := scanOperation(stmt)
	if err == nil {
		o.Exact, err = r.unseal(stmt, "sealed", operationPlace(&o))
	}
	if err == nil {
		o.ExactProposal, err = r.unseal(stmt, "proposal_sealed", proposalPlace(&o))
	}
	return o, err
}

// exactRecord scans a record with what it is.
func (r *Reader) exactRecord(stmt *sqlite.Stmt) (dispatch.Record, error) {
	v, err := scanRecord(stmt)
	if err == nil {
		v.Exact, err = r.unseal(stmt, "sealed", recordPlace(&v))
	}
	return v, err
}
