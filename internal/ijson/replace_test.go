package ijson_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestReplace(t *testing.T) {
	for _, tt := range []struct{ value, pointer, with, want string }{
		{`{"a":1,"b":2}`, "/a", `{"x":[]}`, `{"a":{"x":[]},"b":2}`},
		{`{"a":1,"b":"ü"}`, "/b", `3`, `{"a":1,"b":3}`},
		{`{"a":{"b":{"c":"long"}}}`, "/a/b", `null`, `{"a":{"b":null}}`},
		{`{"a/b":{"~":1}}`, "/a~1b/~0", `2`, `{"a/b":{"~":2}}`},
		{`[1,2,3]`, "/1", `"x"`, `[1,"x",3]`},
		{`{"a":1}`, "", `[]`, `[]`},
	} {
		got, ok := ijson.Replace(ijson.Raw(tt.value), tt.pointer, ijson.Raw(tt.with))
		assert.True(t, ok, tt)
		assert.Equal(t, tt.want, string(got), tt)
	}
	for _, pointer := range []string{"/b", "/a/x", "/A", "a", "/a/"} {
		value := ijson.Raw(`{"a":{"b":1}}`)
		got, ok := ijson.Replace(value, pointer, ijson.Raw("2"))
		assert.False(t, ok, pointer)
		assert.Equal(t, string(value), string(got), pointer)
	}
}

// What was given stays as it was: it may be a part of somebody else's bytes.
func TestReplaceLeavesItsArgumentAlone(t *testing.T) {
	whole := ijson.Raw(`{"a":1,"b":2}`)
	_, ok := ijson.Replace(whole[:len(whole):len(whole)], "/b", ijson.Raw(`3`))
	assert.True(t, ok)
	assert.Equal(t, `{"a":1,"b":2}`, string(whole))
}
