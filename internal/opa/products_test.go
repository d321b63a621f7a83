package opa

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// What a built-in makes can be the product of its operands, and nothing stops it on the way: a terabyte of two texts of a
// megabyte ends the whole process.
func TestB012ProductsOfOperands(t *testing.T) {
	const texts = "long := concat(\"\", [\"aaaaaaaaaa\" | some _ in numbers.range(1, 100000)])\n"
	for name, call := range map[string]string{
		"between parts":       `concat(long, split(long, ""))`,
		"between a set's":     `concat(long, {sprintf("%d", [i]) | some i in numbers.range(1, 100000)})`,
		"for each letter":     `replace(long, "a", long)`,
		"for some letters":    `strings.replace_n({"a": long}, long)`,
		"a value many times":  `sprintf(concat("", ["%[1]s" | some _ in numbers.range(1, 100000)]), [long])`,
		"a group many times":  `regex.replace(long, "(.*)", concat("", ["$1" | some _ in numbers.range(1, 100000)]))`,
		"a value of doubles":  `sprintf("%v", [doubled])`,
		"doubles in a string": `$"{doubled}"`,
		"doubles as JSON":     `json.marshal(doubled)`,
	} {
		t.Run(name, func(t *testing.T) {
			p := regoPolicy(t, texts+doubles()+"decision := count("+call+")\n", inTime(time.Minute))
			e := policyError(t, p, `{}`)
			assert.Equal(t, "policy_failed", e.Code)
			assert.Contains(t, e.Detail, "too much of its operands")
			assert.Zero(t, left.Load())
		})
	}
	raw, err := regoPolicy(t, texts+"decision := count(concat(\", \", split(long, \"\")))\n", inTime(time.Minute)).Decide(t.Context(), ijson.Raw(`{}`))
	assert.NoError(t, err)
	assert.Equal(t, "2999998", string(raw))
}

// doubles are rules of a value that has each part twice: small in memory, endless for whoever walks through it.
func doubles() string {
	rules := "x0 := [1]\n"
	for i := range 60 {
		rules += fmt.Sprintf("x%d := array.concat([x%d], [x%d])\n", i+1, i, i)
	}
	return rules + "doubled := x60\n"
}

// Rego compares two values by calling itself once more for each array and object in them, and a stack that overflows
// ends the process. An agent could send that many wherever proposals may be long.
func TestB007MoreArraysThanTheStackHolds(t *testing.T) {
	p := regoPolicy(t, "decision := input.call.arguments.a == input.call.arguments.b\n")
	for name, element := range map[string]string{"lists": "[]", "objects": "{}"} {
		list := "[" + element + strings.Repeat(","+element, 2_000_000) + "]"
		e := policyError(t, p, withArguments(`{"a": `+list+`, "b": `+list+`}`))
		assert.Equal(t, "policy_failed", e.Code, name)
		assert.Contains(t, e.Detail, "arrays and objects", name)
	}
	allows(t, regoPolicy(t, allow))
}

// One comparison after the other in a rule is each on the stack of those before it.
func TestB007ComparisonsFillTheStack(t *testing.T) {
	p := regoPolicy(t, "decision if {\n"+strings.Repeat("\tinput.call.arguments.a == input.call.arguments.b\n\tinput.call.arguments.b == input.call.arguments.a\n", 10)+"}\n", inTime(time.Hour))
	list := "[[]" + strings.Repeat(",[]", 150_000) + "]"
	e := policyError(t, p, withArguments(`{"a": `+list+`, "b": `+list+`}`))
	assert.Equal(t, "policy_failed", e.Code)
	assert.Contains(t, e.Detail, "MiB of memory")
	allows(t, regoPolicy(t, allow))
}

// An answer is no longer than it may be, before it is written out.
func TestAnswerWithoutEnd(t *testing.T) {
	e := policyError(t, regoPolicy(t, doubles()+"decision := doubled\n", inTime(time.Minute)), `{}`)
	assert.Equal(t, "policy_malformed", e.Code)
	assert.Contains(t, e.Detail, "longer than 1048576 bytes")
}
