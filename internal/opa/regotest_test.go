package opa

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTestReports(t *testing.T) {
	s, err := ReadFS(minimal.with("a_test.rego", `package policy_test

import data.policy

test_passes if policy.decision.effect == "allow"

test_fails if {
	print("seen")
	policy.decision.effect == "deny"
}

test_table[note] if {
	some note, n in {"one": 1, "two": 2}
	n == 1
}

test_breaks if to_number("x") == 1

todo_test_later if false
`).fs(), "here")
	require.NoError(t, err)
	results, err := Test(t.Context(), s)
	require.NoError(t, err)
	got := map[string]TestResult{}
	for _, r := range results {
		got[r.Name] = r
	}
	require.Len(t, got, 5)
	assert.True(t, got["test_passes"].Passed)
	assert.Equal(t, "here/a_test.rego:5", got["test_passes"].Location)
	assert.False(t, got["test_fails"].Passed)
	assert.Contains(t, got["test_fails"].Output, "seen")
	assert.False(t, got["test_table"].Passed)
	assert.Contains(t, got["test_table"].Output, "failed: two")
	assert.NotContains(t, got["test_table"].Output, "failed: one")
	assert.False(t, got["test_breaks"].Passed)
	assert.Contains(t, got["test_breaks"].Output, "to_number")
	assert.True(t, got["todo_test_later"].Skipped)
	assert.Equal(t, "test_passes", results[0].Name, "in the order of the files")
}

func TestTestRefuses(t *testing.T) {
	for name, c := range map[string]struct{ tests, want string }{
		"no test":                {"package policy_test\n", "here: there is no Rego test"},
		"skipped tests alone":    {"package policy_test\n\ntodo_test_a if true\n", "here: every Rego test is skipped"},
		"a test that is broken":  {"package policy_test\n\ntest_a if {\n", "here/a_test.rego"},
		"a clock":                {"package policy_test\n\ntest_a if time.now_ns() > 0\n", "undefined function time.now_ns"},
		"two faults":             {"package policy_test\n\ntest_a if f(1)\n\ntest_b if g(1)\n", "the policy's tests do not compile: the policy has 2 faults\nhere/a_test.rego:3: rego_type_error: undefined function f\nhere/a_test.rego:5: "},
		"a test that is unclean": {"package policy_test\n\ntest_a if {\n\tx := 1\n\ttrue\n}\n", "here/a_test.rego:4"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ReadFS(minimal.with("a_test.rego", c.tests).fs(), "here")
			require.NoError(t, err)
			_, err = Test(t.Context(), s)
			require.ErrorContains(t, err, c.want)
		})
	}
	s, err := ReadFS(minimal.with("a_test.rego", "package policy_test\n\ntest_a if true\n").fs(), "here")
	require.NoError(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = Test(ended, s)
	assert.ErrorIs(t, err, context.Canceled)
}
