package ijson_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestMarshal(t *testing.T) {
	type row struct {
		B     string    `json:"b"`
		A     int64     `json:"a"`
		Time  time.Time `json:"time"`
		Empty []string  `json:"empty"`
		Gone  string    `json:"gone,omitzero"`
		Raw   ijson.Raw `json:"raw"`
	}
	got, err := ijson.Marshal(row{B: "<&>", A: 1 << 53, Raw: ijson.Raw(`{"y":1.0,"x":2}`),
		Time: time.Date(2026, 7, 1, 12, 30, 0, 5e8, time.UTC)})
	require.NoError(t, err)
	assert.Equal(t, `{"a":9007199254740992,"b":"<&>","empty":[],"raw":{"x":2,"y":1},"time":"2026-07-01T12:30:00.5Z"}`, string(got))

	for range 20 {
		got, err := ijson.Marshal(map[string]any{"b": 1, "a": []any{nil, true}, "c": map[string]int(nil)})
		require.NoError(t, err)
		assert.Equal(t, `{"a":[null,true],"b":1,"c":{}}`, string(got))
	}
}

func TestMarshalRefuses(t *testing.T) {
	tests := []struct {
		name  string
		value any
		want  string
	}{
		{"an integer that a double cannot hold", map[string]any{"a": []int64{1<<53 + 1}}, "at /a/0 (byte 6): integer that a double cannot hold"},
		{"the greatest int64", int64(math.MaxInt64), "at byte 0: integer that a double cannot hold"},
		{"infinity", []float64{math.Inf(1)}, "at /0 (byte 1): a Go float64 cannot be written as JSON"},
		{"not UTF-8", map[string]string{"a": "\xff"}, "at /a (byte 5): not UTF-8"},
		{"a channel", map[string]any{"a": make(chan int)}, "at /a (byte 5): a Go chan int cannot be written as JSON"},
		{"a repeated name in a Raw", []ijson.Raw{ijson.Raw(`{"a":1,"a":2}`)}, "at /0/a (byte 8): repeated name"},
		{"a Raw that is no JSON", []ijson.Raw{ijson.Raw(`{"a":hunter2}`)}, "at /0/a (byte 6): not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ijson.Marshal(tt.value)
			assert.Nil(t, got)
			var e *ijson.Error
			require.ErrorAs(t, err, &e)
			assert.EqualError(t, err, tt.want)
		})
	}
}

type limits struct {
	MaxSteps int                `json:"max_steps"`
	Ratio    float64            `json:"ratio"`
	Small    int8               `json:"small"`
	Count    uint               `json:"count"`
	Name     string             `json:"name"`
	On       bool               `json:"on"`
	Names    []string           `json:"names"`
	Inner    map[string]*limits `json:"inner"`
	Until    time.Time          `json:"until"`
	Any      any                `json:"any"`
	Raw      ijson.Raw          `json:"raw"`
	Word     word               `json:"word"`
	Nested   nested             `json:"nested"`
	hidden   int                //lint:ignore U1000 the tests name it in JSON
	Skipped  int                `json:"-"`
	common
}

type common struct {
	Shared string
}

// word takes only lower case.
type word string

func (w *word) UnmarshalText(b []byte) error {
	if strings.ToLower(string(b)) != string(b) {
		return errors.New("write " + string(b) + " in lower case")
	}
	*w = word(b)
	return nil
}

// nested reads its value with this package.
type nested struct{ Value int }

func (n *nested) UnmarshalJSON(b []byte) error {
	var wire struct {
		Value int `json:"value"`
	}
	err := ijson.Unmarshal(b, &wire)
	n.Value = wire.Value
	return err
}

func TestUnmarshal(t *testing.T) {
	var got limits
	require.NoError(t, ijson.Unmarshal([]byte(` {"max_steps":3,"names":["a"],"inner":{"x":{"on":true}},"raw":{"b":1,"a":2.0},"nested":{"value":7},
		"until":"2026-07-01T00:00:00Z","Shared":"s","any":[1,"x",null]} `), &got))
	assert.Equal(t, limits{
		MaxSteps: 3, Names: []string{"a"}, Inner: map[string]*limits{"x": {On: true}}, Raw: ijson.Raw(`{"b":1,"a":2.0}`),
		Nested: nested{Value: 7}, Until: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), common: common{Shared: "s"},
		Any: []any{1.0, "x", nil},
	}, got)
}

func TestUnmarshalRefuses(t *testing.T) {
	tests := []struct{ text, want string }{
		{`{"max_steps":"3"}`, "at /max_steps (byte 13): wants a whole number, not a string"},
		{`{"max_steps":1.5}`, "at /max_steps (byte 13): wants a whole number, without fraction or exponent"},
		{`{"max_steps":9007199254740993}`, "at /max_steps (byte 13): integer that a double cannot hold"},
		{`{"small":128}`, "at /small (byte 9): out of range for a Go int8"},
		{`{"count":-1}`, "at /count (byte 9): wants a whole number from 0 up, without fraction or exponent"},
		{`{"ratio":true}`, "at /ratio (byte 9): wants a number, not true"},
		{`{"ratio":1e400}`, "at /ratio (byte 9): number too large for a double"},
		{`{"any":9007199254740993}`, "at /any (byte 7): integer that a double cannot hold"},
		{`{"name":{}}`, "at /name (byte 8): wants a string, not an object"},
		{`{"name":[]}`, "at /name (byte 8): wants a string, not an array"},
		{`{"on":"yes"}`, "at /on (byte 6): wants true or false, not a string"},
		{`{"names":"a"}`, "at /names (byte 9): wants an array, not a string"},
		{`{"names":["a",2]}`, "at /names/1 (byte 14): wants a string, not a number"},
		{`{"inner":[]}`, "at /inner (byte 9): wants an object, not an array"},
		{`[]`, "at byte 0: wants an object, not an array"},
		{`{"until":"hunter2"}`, "at /until (byte 9): wants a time as RFC 3339 writes it"},
		{`{"word":"Hunter2"}`, "at /word (byte 8): not accepted as a Go ijson_test.word"},
		{`{"nested":{"value":"hunter2"}}`, "at /nested/value (byte 19): wants a whole number, not a string"},
		{`{"name":"a","name":"b"}`, "at /name (byte 12): repeated name"},
		{`{"raw":{"a":1,"a":2}}`, "at /raw/a (byte 14): repeated name"},
		{`{"name":"a"} {}`, "at byte 13: more after the value"},
		{"{\"name\":\"\xff\"}", "at /name (byte 9): not UTF-8"},
		{`{"name":"\ud800"}`, "at /name (byte 9): lone surrogate"},
		{``, "at byte 0: no value"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			var got limits
			err := ijson.Unmarshal([]byte(tt.text), &got)
			var e *ijson.Error
			require.ErrorAs(t, err, &e)
			assert.EqualError(t, err, tt.want)
		})
	}

	t.Run("what a type's own decoder said", func(t *testing.T) {
		err := ijson.Unmarshal([]byte(`{"word":"ABC"}`), new(limits))
		require.Error(t, err)
		assert.EqualError(t, errors.Unwrap(err), "write ABC in lower case")
	})
}

func TestUnmarshalUnknownName(t *testing.T) {
	known := []string{"max_steps", "ratio", "small", "count", "name", "on", "names", "inner", "until", "any", "raw",
		"word", "nested", "Shared"}
	tests := []struct {
		text    string
		pointer string
		offset  int64
		name    string
		known   []string
	}{
		{`{"max_step":3}`, "/max_step", 1, "max_step", known},
		{`{"Name":"a"}`, "/Name", 1, "Name", known},
		{`{"\u017fmall":1}`, "/ſmall", 1, "ſmall", known},
		{`{"hidden":1}`, "/hidden", 1, "hidden", known},
		{`{"Skipped":1}`, "/Skipped", 1, "Skipped", known},
		{`{"common":{}}`, "/common", 1, "common", known},
		{`{"inner":{"a/b":{"c~d":1}}}`, "/inner/a~1b/c~0d", 17, "c~d", known},
		{`{"nested":{"valve":1}}`, "/nested/valve", 11, "valve", []string{"value"}},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			err := ijson.Unmarshal([]byte(tt.text), new(limits))
			assert.Equal(t, &ijson.UnknownMemberError{Pointer: tt.pointer, Offset: tt.offset, Name: tt.name, Known: tt.known}, err)
		})
	}
	err := ijson.Unmarshal([]byte(`{"max_step":3}`), new(limits))
	assert.EqualError(t, err, "at /max_step (byte 1): unknown name")
}
