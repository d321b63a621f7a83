package opa

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

func TestGate(t *testing.T) {
	p := shipped(t)
	for _, row := range []struct {
		q    Question
		want Answer
	}{
		{Question{Name: "search", Allowed: []string{"search"}}, GateAllow},
		{Question{Name: "send", Allowed: []string{"search", "send"}, Writes: []string{"send"}}, GateConfirm},
		{Question{Name: "send", Allowed: []string{"search", "send"}, Writes: []string{"send"}, Confirmed: true}, GateAllow},
		{Question{Name: "delete", Writes: []string{"delete"}, Confirmed: true}, GateDeny},
		{Question{}, GateDeny},
	} {
		got, err := p.Gate(t.Context(), row.q)
		require.NoError(t, err)
		assert.Equal(t, row.want, got, "%+v", row.q)
	}
}

// Whatever else a policy's gate says lets nothing through.
func TestGateOfAnotherPolicy(t *testing.T) {
	const rule = "package policy\n\ndecision := {}\n"
	for name, gate := range map[string]string{"none": "", "true": "gate := true\n", "another word": "gate := \"yes\"\n", "nothing": "gate := \"allow\" if false\n"} {
		t.Run(name, func(t *testing.T) {
			s, err := ReadFS(bundle(map[string]string{"a.rego": rule + "\n" + gate}), "here")
			require.NoError(t, err)
			p, err := New(t.Context(), Options{Source: s})
			require.NoError(t, err)
			answer, err := p.Gate(t.Context(), Question{Name: "a", Allowed: []string{"a"}})
			require.Error(t, err)
			assert.Equal(t, GateDeny, answer)
			if name == "none" {
				require.ErrorIs(t, err, ErrNoGate)
				return
			}
			var e *dispatch.PolicyError
			require.ErrorAs(t, err, &e)
		})
	}
}
