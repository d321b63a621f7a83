package tools

import (
	"fmt"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// RecordDraft names the tool that creates one draft.
const RecordDraft = "record_draft"

func recordDraft() local {
	return local{
		definition: dispatch.Definition{
			Name:    RecordDraft,
			Version: "v1",
			Local:   "record",
			Description: "Creates one draft record, once a person has approved exactly this draft. " +
				"The first proposal waits for that person; any change to it is a new proposal that waits again. " +
				"A draft is never overwritten and is sent to nobody.",
			Effect:   dispatch.Write,
			Approval: dispatch.Always,
			Scopes:   []string{"write:draft"},
			Target:   "/draft_id",
			Key:      "/idempotency_key",
		},
		prepare: func(call dispatch.Call) (operation, dispatch.Outcome) {
			var in struct {
				DraftID        string `json:"draft_id"`
				Purpose        string `json:"purpose"`
				Body           string `json:"body"`
				IdempotencyKey string `json:"idempotency_key"`
			}
			if err := ijson.Unmarshal(call.Arguments, &in); err != nil {
				return nil, broken(err)
			}
			return func() dispatch.Outcome {
				record, err := ijson.Marshal(draft{Purpose: in.Purpose, Body: in.Body})
				if err != nil {
					return broken(fmt.Errorf("record: %w", err))
				}
				outcome := done(draftCreated{DraftID: in.DraftID})
				outcome.Record = record
				return outcome
			}, dispatch.Outcome{}
		},
	}
}

// draft is the record that the tool asks the store to create.
type draft struct {
	Purpose string `json:"purpose"`
	Body    string `json:"body"`
}

// draftCreated is what the caller is told of it.
type draftCreated struct {
	DraftID string `json:"draft_id"`
}
