package dispatch

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// An outcome that its tool's definition does not allow is a broken tool, and commits nothing.
func TestCheckedOutcome(t *testing.T) {
	read, write := Definition{Name: "r", Effect: Read}, Definition{Name: "w", Effect: Write}
	one := ijson.Raw(`1`)
	for _, row := range []struct {
		name string
		def  Definition
		o    Outcome
		want Status
	}{
		{"ok", read, Outcome{Status: StatusOK, Ran: true, Value: one}, StatusOK},
		{"a write with its record", write, Outcome{Status: StatusOK, Ran: true, Value: one, Record: one}, StatusOK},
		{"a lost reply", write, Outcome{Status: StatusOutcomeUnknown, Ran: true, Retryable: true, Value: one, Record: one}, StatusOutcomeUnknown},
		{"a timeout", read, Outcome{Status: StatusTimeout, Retryable: true}, StatusTimeout},
		{"not found", read, Outcome{Status: StatusNotFound}, StatusNotFound},
		{"nothing said", read, Outcome{}, StatusInternalError},
		{"a status of the policy", read, Outcome{Status: StatusReplayed, Ran: true, Value: one}, StatusInternalError},
		{"ok that did not run", read, Outcome{Status: StatusOK, Value: one}, StatusInternalError},
		{"a timeout that ran", read, Outcome{Status: StatusTimeout, Ran: true, Value: one}, StatusInternalError},
		{"ok without a value", read, Outcome{Status: StatusOK, Ran: true}, StatusInternalError},
		{"a read with a record", read, Outcome{Status: StatusOK, Ran: true, Value: one, Record: one}, StatusInternalError},
		{"a value that is no JSON", read, Outcome{Status: StatusOK, Ran: true, Value: ijson.Raw(`{"a":1,"a":2}`)}, StatusInternalError},
		{"a record that is no JSON", write, Outcome{Status: StatusOK, Ran: true, Value: one, Record: ijson.Raw(`{`)}, StatusInternalError},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := row.o.checked(promises{}, row.def, "target")
			assert.Equal(t, row.want, got.Status)
			if row.want == StatusInternalError {
				assert.False(t, got.Ran)
				assert.Nil(t, got.Record)
				assert.NotEmpty(t, got.Detail)
			}
		})
	}
	assert.Equal(t, StatusInternalError, Outcome{Status: StatusOK, Ran: true, Value: one, Record: one}.checked(promises{}, write, "").Status, "a record needs a target")
	got := Outcome{Status: StatusOK, Ran: true, Value: ijson.Raw(`{"b":1, "a":12.0}`)}.checked(promises{}, read, "")
	assert.Equal(t, `{"a":12,"b":1}`, string(got.Value), "what is recorded is canonical")
}
