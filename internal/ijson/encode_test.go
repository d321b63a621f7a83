package ijson_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// What people read keeps the order of a struct, sorts a map, and escapes nothing for HTML.
func TestEncode(t *testing.T) {
	v := struct {
		Z string         `json:"z"`
		A map[string]int `json:"a"`
		N ijson.Raw      `json:"n,omitzero"`
	}{"<&> é", map[string]int{"y": 1, "x": 2}, nil}
	b, err := ijson.Encode(v)
	require.NoError(t, err)
	assert.Equal(t, `{"z":"<&> é","a":{"x":2,"y":1}}`, string(b))
	_, err = ijson.Encode(func() {})
	require.Error(t, err)
}

func TestIndent(t *testing.T) {
	in := ijson.Raw(`{"b":[1,{}],"a":"x"}`)
	out, err := ijson.Indent(in)
	require.NoError(t, err)
	assert.Equal(t, "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": \"x\"\n}", string(out))
	assert.Equal(t, `{"b":[1,{}],"a":"x"}`, string(in), "the value is left alone")
	_, err = ijson.Indent(ijson.Raw(`{"a"`))
	require.Error(t, err)
}
