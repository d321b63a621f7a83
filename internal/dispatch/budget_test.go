package dispatch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func limit(n int64) *int64 { return &n }

// What was allowed is paid for, whatever came of it; what was not allowed is not.
func TestWhatIsSpent(t *testing.T) {
	given := Outcome{Status: StatusOK, Ran: true, Value: ijson.Raw(`{"v":1}`)}
	lost := Outcome{Status: StatusOutcomeUnknown, Ran: true, Retryable: true, Value: ijson.Raw(`{"v":1}`)}
	before := Spent{Cost: 10, Attempts: 2, Output: 100}
	for _, row := range []struct {
		name string
		d    Decision
		o    Outcome
		want Spent
	}{
		{"a run", Decision{Effect: Allow}, given, Spent{15, 3, 107}},
		{"a run whose reply was lost", Decision{Effect: Allow}, lost, Spent{15, 3, 107}},
		{"a timeout", Decision{Effect: Allow}, Outcome{Status: StatusTimeout, Retryable: true}, Spent{15, 3, 100}},
		{"a timeout that claims a value", Decision{Effect: Allow}, Outcome{Status: StatusTimeout, Value: ijson.Raw(`{"v":1}`)}, Spent{15, 3, 100}},
		{"not found", Decision{Effect: Allow}, Outcome{Status: StatusNotFound}, Spent{15, 3, 100}},
		{"a broken tool", Decision{Effect: Allow}, Outcome{Status: StatusInternalError}, Spent{15, 3, 100}},
		{"a broken promise", Decision{Effect: Allow}, Outcome{Status: StatusInvalidResult}, Spent{15, 3, 100}},
		{"a denial", Decision{Effect: Deny, Status: StatusToolDenied}, Outcome{}, before},
		{"a replay", Decision{Effect: Replay, Status: StatusReplayed}, Outcome{Value: ijson.Raw(`{"v":1}`)}, before},
		{"a question to a person", Decision{Effect: RequireApproval, Status: StatusApprovalRequired, Approval: &Terms{}}, Outcome{}, before},
		{"a simulation", Decision{Effect: Simulate, Status: StatusDryRun}, Outcome{}, before},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := writeFacts()
			f.Asked, f.Task.Spent, f.Tool.Cost = ijson.Raw(`{}`), before, 5
			f.Operation = &Operation{Result: ijson.Raw(`{"v":1}`)}
			c, _, err := Next(f, row.d, row.o)
			require.NoError(t, err)
			assert.Equal(t, row.want, c.Task.Spent)
		})
	}
}

// A policy sees the budgets that the profile states, with what is spent of each, and no other.
func TestBudgetsInTheInput(t *testing.T) {
	budgets := func(b Budgets) string {
		f := writeFacts()
		f.Profile.Budgets, f.Task.Spent = b, Spent{Cost: 7, Attempts: 3, Output: 40}
		raw, err := ijson.Marshal(f.Input().State.Budgets)
		require.NoError(t, err)
		return string(raw)
	}
	assert.Equal(t, `{}`, budgets(Budgets{}))
	assert.Equal(t, `{"attempts":{"limit":0,"reserved":0,"spent":3}}`, budgets(Budgets{Attempts: limit(0)}), "none at all is not no limit")
	assert.Equal(t, `{"attempts":{"limit":5,"reserved":0,"spent":3},"cost":{"limit":9,"reserved":0,"spent":7},"output":{"limit":64,"reserved":0,"spent":40}}`,
		budgets(Budgets{Cost: limit(9), Attempts: limit(5), Output: limit(64)}))
}

// A policy that lets a call over a budget has failed.
func TestNothingRunsOverABudget(t *testing.T) {
	for _, row := range []struct {
		name    string
		budgets Budgets
		cost    int64
		want    string // empty for no error
	}{
		{"no budget", Budgets{}, 1_000_000, ""},
		{"cost, exactly", Budgets{Cost: limit(12)}, 5, ""},
		{"cost, one over", Budgets{Cost: limit(11)}, 5, "the budget of cost is spent"},
		{"cost of nothing, with nothing left", Budgets{Cost: limit(7)}, 0, ""},
		{"attempts, the last", Budgets{Attempts: limit(4)}, 5, ""},
		{"attempts, one over", Budgets{Attempts: limit(3)}, 5, "the budget of attempts is spent"},
		{"output, one byte left", Budgets{Output: limit(41)}, 5, ""},
		{"output, none left", Budgets{Output: limit(40)}, 5, "the budget of output is spent"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for answer, mode := range map[string]Mode{allowed: Enforce, simulated: DryRun} {
				input := with(t, func(f *Facts) {
					f.Mode, f.State.Approval.Mode = mode, mode
					f.Profile.Budgets, f.Tool.Cost, f.Task.Spent = row.budgets, row.cost, Spent{Cost: 7, Attempts: 3, Output: 40}
				})
				d, err := Judge(t.Context(), answers{raw: answer}, version, input)
				require.NoError(t, err)
				if row.want == "" {
					assert.NotEqual(t, StatusPolicyError, d.Status, d.Detail)
					continue
				}
				assert.Equal(t, StatusPolicyError, d.Status)
				assert.Contains(t, d.Detail, row.want)
			}
		})
	}
}
