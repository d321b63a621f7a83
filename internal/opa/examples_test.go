package opa

import (
	"testing"

	"github.com/open-policy-agent/opa/v1/format"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

func exampleLayers(tb testing.TB) []Source {
	tb.Helper()
	var all []Source
	for _, name := range Layers {
		l, err := ReadLayer(name, []string{"../../examples/layers/" + string(name)})
		require.NoError(tb, err)
		all = append(all, l)
	}
	return all
}

// The layers that ship load over the policy that ships, as people would write them.
func TestExampleLayers(t *testing.T) {
	layers := exampleLayers(t)
	p, err := New(t.Context(), Options{Source: shippedSource(t).With(layers...), Profiles: labProfiles})
	require.NoError(t, err)
	assert.Regexp(t, `^lab-1\+org-example-1\+site-example-1@`, p.Version())
	codes := map[string]dispatch.Effect{}
	for _, o := range p.Outcomes() {
		codes[o.Code] = o.Effect
	}
	assert.Equal(t, dispatch.Deny, codes["reserved_draft"])
	assert.Equal(t, dispatch.RequireApproval, codes["two_people"])
	assert.Equal(t, dispatch.Deny, codes["outside_window"])
	assert.Equal(t, dispatch.Allow, codes["ok"], "beside those of the core")
	for _, l := range layers {
		for _, f := range append(l.modules, l.tests...) {
			formatted, err := format.Source(f.path, []byte(f.text))
			require.NoError(t, err)
			assert.Equal(t, string(formatted), f.text, "run: opa fmt --write examples/layers")
		}
	}
	results, err := Test(t.Context(), shippedSource(t).With(layers...))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, r := range results {
		names[r.Name] = true
		assert.True(t, r.Passed, "%s: %s", r.Location, r.Output)
	}
	assert.True(t, names["test_reserved_ids"] && names["test_hours"], "those of both layers ran")
}
