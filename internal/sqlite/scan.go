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
		Cancelled: stmt.GetBool("cancelled"),
		Deadline:  deadline,
		Updated:   updated,
		Entries:   int(stmt.GetInt64("entries")),
		Revision:  stmt.GetInt64("revision"),
	}, errors.Join(err, err2)
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
	return dispatch.Operation{
		Task:      scanTaskKey(stmt),
		Actor:     stmt.GetText("actor"),
		Key:       stmt.GetText("key"),
		Signature: stmt.GetText("signature"),
		Tool:      stmt.GetText("tool"),
		Step:      int(stmt.GetInt64("step")),
		Result:    getBytes(stmt, "result"),
	}, nil
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
