package opa

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

var keptConfig = ijson.Raw(`{"profiles":{"lab":{}}}`)

// withLayers is the shipped policy under the layers of the examples.
func withLayers(t *testing.T) Source {
	t.Helper()
	var layers []Source
	for _, l := range Layers {
		s, err := ReadLayer(l, []string{"../../examples/layers/" + string(l)})
		require.NoError(t, err)
		layers = append(layers, s)
	}
	return shippedSource(t).With(layers...)
}

// The version comes out of what is kept alone: the policy with its layers and data, and the configuration.
func TestVersionOfWhatIsKept(t *testing.T) {
	for name, source := range map[string]Source{
		"shipped":         shippedSource(t),
		"with layers":     withLayers(t),
		"two of one name": twice(t),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(t.Context(), Options{Source: source, Profiles: profilesOf(source), Config: keptConfig})
			require.NoError(t, err)
			kept, err := p.Kept()
			require.NoError(t, err)
			again, err := ReadKept(kept, keptConfig)
			require.NoError(t, err)
			assert.Equal(t, p.Version(), again.Version())

			files, err := again.Files()
			require.NoError(t, err)
			regos := 0
			for file := range files {
				if strings.HasPrefix(file, "rego/") {
					regos++
				}
			}
			texts := 0
			for range source.allModules() {
				texts++
			}
			assert.Equal(t, texts, regos, "every file is written")

			other, err := ReadKept(kept, ijson.Raw(`{}`))
			require.NoError(t, err)
			assert.NotEqual(t, p.Version(), other.Version())
			other, err = ReadKept(ijson.Raw(strings.Replace(string(kept), "allow", "Allow", 1)), keptConfig)
			require.NoError(t, err)
			assert.NotEqual(t, p.Version(), other.Version())
		})
	}
}

// A file that is not UTF-8 is kept too, byte by byte, whatever an OPA to come makes of it.
func TestKeptBytesAreThoseOfTheFile(t *testing.T) {
	odd := "package policy\n\n# \xff is no UTF-8\n"
	s, err := ReadFS(files{"a.rego": odd}.fs(), "test")
	require.NoError(t, err)
	p := &Policy{source: s, data: map[string]any{}}
	version, err := versionOf(s.Revision(), s.allModules(), p.data, keptConfig)
	require.NoError(t, err)
	policy, err := p.Kept()
	require.NoError(t, err)
	kept, err := ReadKept(policy, keptConfig)
	require.NoError(t, err)
	assert.Equal(t, version, kept.Version())
	files, err := kept.Files()
	require.NoError(t, err)
	assert.Equal(t, odd, string(files["rego/a.rego"]))
}

// twice is a policy of two folders, each with a file of the same name.
func twice(t *testing.T) Source {
	t.Helper()
	one := files{"a.rego": "package policy\n\n" + allow}.write(t)
	two := files{"a.rego": "package policy\n\n_b := 1\n"}.write(t)
	s, err := ReadPaths([]string{one, two}, Source{})
	require.NoError(t, err)
	return s
}

func profilesOf(s Source) map[string]Profile {
	if s.ReadableSets() == nil {
		return nil
	}
	return labProfiles
}

func TestReadKeptRefuses(t *testing.T) {
	for name, policy := range map[string]string{
		"no JSON":       `{`,
		"another text":  `{"revision":"x","modules":[],"data":{},"more":1}`,
		"without data":  `{"revision":"x","modules":[]}`,
		"data is null":  `{"revision":"x","modules":[],"data":null}`,
		"a list":        `[]`,
		"no name":       `{"revision":"x","modules":[{"rego":""}],"data":{}}`,
		"a way out":     `{"revision":"x","modules":[{"name":"../a.rego","rego":""}],"data":{}}`,
		"another place": `{"revision":"x","modules":[{"name":"/a.rego","rego":""}],"data":{}}`,
		"no Rego":       `{"revision":"x","modules":[{"name":"a.sh","rego":""}],"data":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			k, err := ReadKept(ijson.Raw(policy), keptConfig)
			if err == nil {
				_, err = k.Files()
			}
			require.ErrorContains(t, err, "the policy that was kept")
		})
	}
}

// Stock OPA gives the same decisions from the files of what was kept.
func TestStockOPADecidesWithWhatIsKept(t *testing.T) {
	p, err := New(t.Context(), Options{Source: withLayers(t), Profiles: labProfiles, Config: keptConfig})
	require.NoError(t, err)
	policy, err := p.Kept()
	require.NoError(t, err)
	kept, err := ReadKept(policy, keptConfig)
	require.NoError(t, err)
	files, err := kept.Files()
	require.NoError(t, err)
	var data map[string]any
	require.NoError(t, json.Unmarshal(files["data.json"], &data))
	options := []func(*rego.Rego){rego.Query("data.policy.decision"), rego.Store(inmem.NewFromObject(data))}
	for name, text := range files {
		if strings.HasPrefix(name, "rego/") {
			options = append(options, rego.Module(name, string(text)))
		}
	}
	query, err := rego.New(options...).PrepareForEval(t.Context())
	require.NoError(t, err)
	for _, name := range []string{"allow_read", "allow_draft", "approval_required", "cancelled", "resource_denied"} {
		input := sample(t, name)
		var in any
		require.NoError(t, json.Unmarshal(input, &in))
		want, err := p.Decide(t.Context(), input)
		require.NoError(t, err, name)
		got, err := query.Eval(t.Context(), rego.EvalInput(in))
		require.NoError(t, err, name)
		have, err := json.Marshal(got[0].Expressions[0].Value)
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(have), name)
	}
}
