package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func scanTask(stmt *sqlite.Stmt) (dispatch.Task, error) {
	deadline, err := getTime(stmt, "deadline")
	updated, err2 := getTime(stmt, "updated")
	inFlight, err3 := scanInFlight(stmt)
	return dispatch.Task{
		TaskKey: dispatch.TaskKey{Tenant: stmt.GetText("tenant"), ID: stmt.GetText("id")},
		Profile: stmt.GetText("profile"),
		Actor:   stmt.GetText("actor"),
		Steps:   int(stmt.GetInt64("steps")),
		Spent: dispatch.Spent{
			Cost:     stmt.GetInt64("spent_cost"),
			Attempts: stmt.GetInt64("spent_attempts"),
			Output:   stmt.GetInt64("spent_output"),
		},
		InFlight:  inFlight,
		Cancelled: stmt.GetBool("cancelled"),
		Deadline:  deadline,
		Updated:   updated,
		Entries:   int(stmt.GetInt64("entries")),
		Revision:  stmt.GetInt64("revision"),
	}, errors.Join(err, err2, err3)
}

func scanInFlight(stmt *sqlite.Stmt) (calls []dispatch.InFlight, err error) {
	b := getBytes(stmt, "in_flight")
	if b == nil {
		return nil, nil
	}
	if err := ijson.Unmarshal(b, &calls); err != nil {
		return nil, fmt.Errorf("the calls under way of task %s: %w", stmt.GetText("id"), err)
	}
	return calls, nil
}

// scanTaskKey reads the task of any other row.
func scanTaskKey(stmt *sqlite.Stmt) dispatch.TaskKey {
	return dispatch.TaskKey{Tenant: stmt.GetText("tenant"), ID: stmt.GetText("task")}
}

func scanApproval(stmt *sqlite.Stmt) (dispatch.Approval, error) {
	a := dispatch.Approval{
		ID:            stmt.GetText("id"),
		Task:          scanTaskKey(stmt),
		Actor:         stmt.GetText("actor"),
		Signature:     stmt.GetText("signature"),
		Definition:    stmt.GetText("definition"),
		Mode:          dispatch.Mode(stmt.GetText("mode")),
		Step:          int(stmt.GetInt64("step")),
		Proposal:      getBytes(stmt, "proposal"),
		State:         dispatch.ApprovalState(stmt.GetText("state")),
		ExpiresAtStep: int(stmt.GetInt64("expires_at_step")),
		PolicyVersion: stmt.GetText("policy_version"),
	}
	var err error
	if a.ExpiresAt, err = getTime(stmt, "expires_at"); err != nil {
		return a, err
	}
	if err := ijson.Unmarshal(getBytes(stmt, "terms"), &a.Terms); err != nil {
		return a, fmt.Errorf("the terms of approval %s: %w", a.ID, err)
	}
	if err := ijson.Unmarshal(getBytes(stmt, "votes"), &a.Votes); err != nil {
		return a, fmt.Errorf("the votes on approval %s: %w", a.ID, err)
	}
	if len(a.Votes) == 0 {
		a.Votes = nil // as an approval without votes is made
	}
	return a, nil
}

func scanOperation(stmt *sqlite.Stmt) (dispatch.Operation, error) {
	since, err := getTime(stmt, "since")
	lease, err2 := getTime(stmt, "lease")
	return dispatch.Operation{
		ID:            stmt.GetText("id"),
		Task:          scanTaskKey(stmt),
		Actor:         stmt.GetText("actor"),
		Key:           stmt.GetText("key"),
		Dispatch:      int(stmt.GetInt64("dispatch")),
		Signature:     stmt.GetText("signature"),
		Tool:          stmt.GetText("tool"),
		State:         dispatch.OperationState(stmt.GetText("state")),
		Step:          int(stmt.GetInt64("step")),
		Run:           int(stmt.GetInt64("run")),
		Effect:        stmt.GetText("effect"),
		Definition:    stmt.GetText("definition"),
		Outward:       stmt.GetText("outward"),
		Since:         since,
		Lease:         lease,
		Target:        stmt.GetText("target"),
		Approval:      stmt.GetText("approval"),
		PolicyVersion: stmt.GetText("policy_version"),
		Lookups:       int(stmt.GetInt64("lookups")),
		Proposal:      getBytes(stmt, "proposal"),
		Result:        getBytes(stmt, "result"),
	}, errors.Join(err, err2)
}

func scanRecord(stmt *sqlite.Stmt) (dispatch.Record, error) {
	return dispatch.Record{
		Task:   scanTaskKey(stmt),
		Tool:   stmt.GetText("tool"),
		Target: stmt.GetText("target"),
		Value:  getBytes(stmt, "value"),
	}, nil
}

func scanEntry(stmt *sqlite.Stmt) (dispatch.Entry, error) {
	return dispatch.Entry{
		Task: scanTaskKey(stmt),
		Step: int(stmt.GetInt64("step")),
		N:    int(stmt.GetInt64("n")),
		Kind: dispatch.Kind(stmt.GetText("kind")),
		Body: getBytes(stmt, "body"),
	}, nil
}
