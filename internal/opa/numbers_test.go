package opa

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// A number that no call can have is found where it is compared, with the place and what to do.
func TestB100NumbersThatNoCallCanHave(t *testing.T) {
	for name, body := range map[string]string{
		"equal":              "input.call.arguments.serial == 28857836529306024611912",
		"equal, turned":      "28857836529306024611912 == input.call.arguments.serial",
		"unequal":            "input.call.arguments.serial != 28857836529306024611912",
		"ordered":            "input.call.arguments.serial < 28857836529306024611912",
		"in a list":          "input.call.arguments.serial in [1, 28857836529306024611912]",
		"in a set of a rule": "input.call.arguments.serial in _serials",
		"by another name":    "x := 28857836529306024611912\n\tinput.call.arguments.serial == x",
		"in an object":       `input.call.arguments == {"serial": 28857836529306024611912}`,
		"one past 2^53":      "input.call.arguments.serial == 9007199254740993",
		"beyond all doubles": "input.call.arguments.serial < 1e400",
		"with data":          "data.serials.a == 28857836529306024611912",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, files{"a.rego": "package policy\n\ndecision := {} if _x\n", "d.json": `{"serials": {"a": 1}}`,
				"b.rego": "package policy\n\n_x if {\n\t" + body + "\n}\n\n_serials := {1, 28857836529306024611912}\n"})
			require.ErrorContains(t, err, "bundle/b.rego:")
			require.ErrorContains(t, err, "no call and no data can have the number")
			require.ErrorContains(t, err, "let it be a string there")
		})
	}
	l, err := layer(t, Site, files{"site.rego": "package site\n\n" + told("closed") +
		"deny contains {\"code\": \"closed\", \"message\": \"m\", \"status\": \"closed\"} if input.call.arguments.serial == 28857836529306024611912\n"})
	require.NoError(t, err)
	_, err = New(t.Context(), Options{Source: shippedSource(t).With(l)})
	require.ErrorContains(t, err, "no call and no data can have the number 28857836529306024611912: integer that a double cannot hold")
}

// What a call can have is equal to itself alone, in whatever form it is written, in an input and in data.
func TestB100LargeIntegersAreExact(t *testing.T) {
	bundle := files{"d.json": `{"serials": {"a": 9007199254740991}}`,
		"a.rego": "package policy\n\ndecision := [input.call.arguments.serial == 9007199254740991, input.call.arguments.serial == data.serials.a, " +
			"input.call.arguments.serial in {9007199254740991, 1}, input.call.arguments.serial <= 9007199254740990, data.serials.a]\n",
		"a_test.rego": "package policy_test\n\nimport data.policy\n\n" +
			"test_same if policy.decision == [true, true, true, false, 9007199254740991] with input.call.arguments.serial as 9007199254740991\n\n" +
			"test_other if policy.decision == [false, false, false, true, 9007199254740991] with input.call.arguments.serial as 9007199254740990\n"}
	p, err := load(t, bundle)
	require.NoError(t, err)
	for serial, want := range map[string]string{
		"9007199254740991":     `[true,true,true,false,9007199254740991]`,
		"9007199254740991.0":   `[true,true,true,false,9007199254740991]`,
		"9007199254740990":     `[false,false,false,true,9007199254740991]`,
		"9007199254740992":     `[false,false,false,false,9007199254740991]`,
		"-9007199254740991":    `[false,false,false,true,9007199254740991]`,
		"9.007199254740991e15": `[true,true,true,false,9007199254740991]`,
		`"9007199254740991"`:   `[false,false,false,false,9007199254740991]`,
	} {
		raw, err := p.Decide(t.Context(), ijson.Raw(withArguments(`{"serial": `+serial+`}`)))
		require.NoError(t, err)
		assert.Equal(t, want, string(raw), serial)
	}
	results, err := Test(t.Context(), mustSource(t, bundle))
	require.NoError(t, err)
	require.Len(t, results, 2)
	for _, r := range results {
		assert.True(t, r.Passed, r)
	}
	for _, digits := range []string{"28857836529306024611912", "9007199254740993", "1e400"} {
		_, err = load(t, bundle.with("d.json", `{"serials": {"a": `+digits+`}}`))
		require.ErrorContains(t, err, "bundle/d.json: at /serials/a", "data keeps its digits or is refused")
		assert.Equal(t, "policy_failed", policyError(t, p, withArguments(`{"serial": `+digits+`}`)).Code, "and so is an input")
	}
}

// Numbers of a few bytes that are of a billion digits, and what arithmetic makes of the largest that a call can have.
func TestB096HugeExponents(t *testing.T) {
	for rule, want := range map[string]string{
		"to_number(input.call.arguments.text)":                                                 "policy_failed",
		"json.unmarshal(input.call.arguments.text)":                                            "policy_failed",
		"units.parse(input.call.arguments.text)":                                               "policy_failed",
		"time.add_date(0, input.call.arguments.many, 1, 1)":                                    "policy_failed",
		"input.call.arguments.large * input.call.arguments.large":                              "policy_malformed",
		"input.call.arguments.large / input.call.arguments.tiny":                               "policy_malformed",
		"sum([input.call.arguments.large, input.call.arguments.large])":                        "policy_malformed",
		"round(input.call.arguments.large)":                                                    "policy_malformed",
		"count(sprintf(\"%*d\", [input.call.arguments.many, 1]))":                              "13", // %!(BADWIDTH)1
		"input.call.arguments.large * input.call.arguments.large > input.call.arguments.large": "true",
		"input.call.arguments.tiny * input.call.arguments.tiny > 0":                            "true",
		"input.call.arguments.large % 7 < 7":                                                   "true",
		"substring(\"abc\", input.call.arguments.many, 1)":                                     `""`,
		"count(array.slice([1], 0, input.call.arguments.many))":                                "1",
		"bits.rsh(1, input.call.arguments.many)":                                               "0",
		"count(strings.split_n(\"a,b\", \",\", input.call.arguments.many))":                    "2",
		"count(numbers.range(input.call.arguments.many, input.call.arguments.many))":           "1",
	} {
		t.Run(rule, func(t *testing.T) {
			p := regoPolicy(t, "decision := "+rule+"\n")
			input := withArguments(`{"text": "1e999999999", "large": 1e308, "tiny": 1e-308, "many": 9007199254740991}`)
			raw, err := p.Decide(t.Context(), ijson.Raw(input))
			if err != nil {
				assert.Equal(t, want, policyError(t, p, input).Code)
				return
			}
			assert.Equal(t, want, string(raw))
		})
	}
	for _, number := range []string{"1e400", "1e10000", "1e1000000", "1e999999999", "-1e999999999", "1e-999999999"} {
		assert.Equal(t, "policy_failed", policyError(t, regoPolicy(t, allow), withArguments(`{"n": `+number+`}`)).Code)
	}
}
