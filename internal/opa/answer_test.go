package opa

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func bundle(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// A decision is answered and recorded whole, so it has an end; and so has what an error quotes of one.
func TestAnswerHasAnEnd(t *testing.T) {
	for name, rego := range map[string]string{
		"a long message": `decision := {"reasons": [concat("", ["x" | some _ in numbers.range(1, 70000)])]}`,
		"many reasons":   `decision := {"reasons": numbers.range(1, 70000)}`,
		"an odd name":    `decision := {{x | some x in numbers.range(1, 5000)}: 1}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ReadFS(bundle(map[string]string{"a.rego": "package policy\n\n" + rego + "\n"}), "here")
			require.NoError(t, err)
			p, err := New(t.Context(), Options{Source: s})
			require.NoError(t, err)
			_, err = p.Decide(t.Context(), ijson.Raw(`{}`))
			var e *dispatch.PolicyError
			require.ErrorAs(t, err, &e)
			require.Equal(t, "policy_malformed", e.Code)
			require.Less(t, len(e.Detail), 10_000)
		})
	}
}

// What lies in a bundle's folder is read, or named as what cannot be: nothing is passed over that somebody may have meant.
func TestFolderHidesNothing(t *testing.T) {
	const rule = "package policy\n\ndecision := {}\n"
	for name, file := range map[string]string{
		"data in a folder below": "sub/blocked.json", "Rego in a folder below": "sub/b.rego",
		"data in capitals": "blocked.JSON", "Rego in capitals": "B.REGO", "capitals in a folder below": "sub/B.Rego",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadFS(bundle(map[string]string{"a.rego": rule, file: "{}"}), "here")
			require.ErrorContains(t, err, "here/"+file)
		})
	}
	s, err := ReadFS(bundle(map[string]string{"a.rego": rule, "schemas/input.json": "{}", "notes.txt": "x"}), "here")
	require.NoError(t, err, "schemas are for opa check alone")
	_, err = New(t.Context(), Options{Source: s})
	require.NoError(t, err)

	s, err = ReadFS(bundle(map[string]string{"a.rego": rule, "pen_test.rego": "package policy\n\nforbid := true\n"}), "here")
	require.NoError(t, err)
	_, err = New(t.Context(), Options{Source: s})
	require.ErrorContains(t, err, "here/pen_test.rego: a file named …_test.rego is no part of the policy")
}
