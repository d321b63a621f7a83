package dispatch

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// promises is a tool whose output schema forbids values with the word "secret" in them.
type promises struct{ Tool }

func (promises) Project(value ijson.Raw) ijson.Raw { return value }

func (promises) CheckOutput(value ijson.Raw) []Violation {
	if bytes.Contains(value, []byte("secret")) {
		return []Violation{{Path: "", Message: "must be public"}, {Path: "/a", Message: "must be a number"}}
	}
	return nil
}

// A result that breaks the tool's promise is none: of a local tool nothing has happened, whatever it says.
func TestResultThatBreaksThePromise(t *testing.T) {
	limited := Definition{Name: "w", Effect: Write, Limits: ToolLimits{OutputBytes: 10}}
	for _, row := range []struct {
		name, value string
		status      Status
		want        Status
		detail      string
	}{
		{"as long as it may be", `"12345678"`, StatusOK, StatusOK, ""},
		{"as long as it may be, once it is canonical", `  "12345678" `, StatusOK, StatusOK, ""},
		{"one byte longer", `"123456789"`, StatusOK, StatusInvalidResult, "w: the result is 11 bytes long; limits.output_bytes is 10"},
		{"bytes are counted, not characters", `"éééé"`, StatusOK, StatusOK, ""},
		{"one character longer", `"ééééé"`, StatusOK, StatusInvalidResult, "w: the result is 12 bytes long; limits.output_bytes is 10"},
		{"another shape", `"secret"`, StatusOK, StatusInvalidResult, "w: the result breaks the output schema: must be public; /a must be a number"},
		{"another shape that nobody would have been told", `"secret"`, StatusOutcomeUnknown, StatusInvalidResult,
			"w: the result breaks the output schema: must be public; /a must be a number"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := Outcome{Status: row.status, Ran: true, Retryable: row.status == StatusOutcomeUnknown, Value: ijson.Raw(row.value), Record: ijson.Raw(`{}`)}
			got := o.checked(promises{}, limited, "target")
			assert.Equal(t, row.want, got.Status)
			assert.Equal(t, row.detail, got.Detail)
			if row.want == StatusInvalidResult {
				assert.Equal(t, Outcome{Status: StatusInvalidResult, Detail: row.detail}, got)
			}
		})
	}
}

// Seals are not told as if they were what they stand for: what is encrypted beside them may be gone, and an agent or a tool
// may have written what only has their form.
func TestSavedResultWithSealsAndNothingBeside(t *testing.T) {
	const seal = `{"$sealed":"00","length":2}`
	def := Definition{Name: "w", Effect: Write}
	for result, told := range map[string]bool{
		seal: false, `{"token":` + seal + `}`: false, `["a",{"b":[` + seal + `]}]`: false,
		`{"$sealed":"00"}`: true, `{"$sealed":"00","length":2,"z":1}`: true, `"\"$sealed\""`: true, `{}`: true,
	} {
		o := savedResult(promises{}, def, &Operation{Result: ijson.Raw(result)})
		assert.Equal(t, told, o.Value != nil, result)
		assert.Equal(t, told, o.Detail == "", result)
		exact := ijson.Raw(`"x"`)
		o = savedResult(promises{}, def, &Operation{Result: ijson.Raw(result), Exact: exact})
		assert.Equal(t, Outcome{Value: exact, SealedValue: ijson.Raw(result)}, o)
	}
}

// What was sealed when it was saved stays so, whatever the tool's definition says by now: why it is not told names nothing
// in it.
func TestSavedResultThatIsSealedAndBreaksThePresentPromise(t *testing.T) {
	o := savedResult(promises{}, Definition{Name: "w", Effect: Write}, &Operation{Result: ijson.Raw(`"x"`), Exact: ijson.Raw(`"secret"`)})
	assert.Equal(t, Outcome{Detail: "w: the result breaks the output schema: must be public; " +
		"has something in it under a name that is not shown, which must be a number"}, o)
}

// A saved result is told only as long as the tool could give it.
func TestSavedResultThatBreaksThePresentPromise(t *testing.T) {
	def := Definition{Name: "w", Effect: Write, Limits: ToolLimits{OutputBytes: 10}}
	for saved, withheld := range map[string]string{
		`"public"`:    "",
		`"too long "`: "w: the result is 11 bytes long; limits.output_bytes is 10",
		`"secret"`:    "w: the result breaks the output schema: must be public; /a must be a number",
	} {
		f := writeFacts()
		f.Asked = ijson.Raw(`{}`)
		f.Operation = &Operation{Signature: "s", Result: ijson.Raw(saved)}
		c, r, err := Next(f, Decision{Effect: Replay, Status: StatusReplayed, PolicyVersion: version}, savedResult(promises{}, def, f.Operation))
		require.NoError(t, err)
		assert.Equal(t, StatusReplayed, r.Status)
		var e DecisionEntry
		require.NoError(t, ijson.Unmarshal(c.Entries[0].Body, &e))
		assert.Equal(t, withheld, e.Detail)
		if withheld == "" {
			assert.Equal(t, saved, string(r.Value))
			assert.Nil(t, r.ResultKnown)
			continue
		}
		assert.Nil(t, r.Value)
		require.NotNil(t, r.ResultKnown)
		assert.False(t, *r.ResultKnown)
	}
}
