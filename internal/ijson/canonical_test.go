package ijson_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/policy-dispatch/govern/internal/ijson"
)

const shared = "../../../shared/cases/json/"

// refused asserts that a text is refused for one rule, and gives the error.
func refused(t *testing.T, text, rule string) *ijson.Error {
	t.Helper()
	got, err := ijson.Canonical([]byte(text), ijson.DefaultLimits)
	require.Error(t, err)
	assert.Nil(t, got)
	var e *ijson.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, rule, e.Rule)
	return e
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	got, err := ijson.Canonical([]byte(text), ijson.DefaultLimits)
	require.NoError(t, err)
	return string(got)
}

// cases are the files of public test suites, which stand beside the checkout. Where they do not, the test says
// that it was skipped; CI does not let it.
func cases(t *testing.T, pattern string, want int) []string {
	t.Helper()
	files, err := filepath.Glob(shared + pattern)
	require.NoError(t, err)
	if len(files) == 0 && os.Getenv("CI") != "true" {
		t.Skipf("there is no %s beside the checkout", strings.TrimPrefix(shared, "../../../")+pattern)
	}
	require.Len(t, files, want)
	return files
}

func TestVectorsOfRFC8785(t *testing.T) {
	inputs := cases(t, "jcs/input/*.json", 5)
	for _, input := range inputs {
		name := filepath.Base(input)
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(input)
			require.NoError(t, err)
			before := string(text)
			want, err := os.ReadFile(shared + "jcs/output/" + name)
			require.NoError(t, err)
			assert.Equal(t, string(want), canonical(t, string(text)))
			assert.Equal(t, before, string(text), "the input is left alone")
		})
	}
}

// narrower are the texts that JSON allows and this package does not, with the rule that each breaks.
var narrower = map[string]string{
	"y_object_duplicated_key.json":           "repeated name",
	"y_object_duplicated_key_and_value.json": "repeated name",
}

func TestParsingSuite(t *testing.T) {
	files := cases(t, "parsing/*.json", 283)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			rule := narrower[name]
			switch {
			case strings.HasPrefix(name, "n_"):
				_, err := ijson.Canonical(text, ijson.DefaultLimits)
				assert.Error(t, err)
			case rule != "":
				refused(t, string(text), rule)
			default:
				assert.JSONEq(t, string(text), canonical(t, string(text)))
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	const (
		inexact = "integer that a double cannot hold"
		large   = "number too large for a double"
		small   = "number too close to zero for a double"
	)
	tests := []struct{ text, want, rule string }{
		{text: "0", want: "0"},
		{text: "-0", want: "0"},
		{text: "-0.0", want: "0"},
		{text: "0e99999999999999999999", want: "0"},
		{text: "-0.000E-5", want: "0"},
		{text: "12", want: "12"},
		{text: "-12", want: "-12"},
		{text: "12.0", want: "12"},
		{text: "1e2", want: "100"},
		{text: "100e-2", want: "1"},
		{text: "1.50", want: "1.5"},
		{text: "4.50", want: "4.5"},
		{text: "1e0000000000000000003", want: "1000"},
		{text: "999999999999999", want: "999999999999999"},
		{text: "1000000000000000", want: "1000000000000000"},
		{text: "9007199254740991", want: "9007199254740991"},
		{text: "9007199254740992", want: "9007199254740992"},
		{text: "-9007199254740992", want: "-9007199254740992"},
		{text: "9007199254740993", rule: inexact},
		{text: "-9007199254740993", rule: inexact},
		{text: "9007199254740993.0", rule: inexact},
		{text: "9007199254740.993e3", rule: inexact},
		{text: "90071992547409930e-1", rule: inexact},
		{text: "9007199254740994", want: "9007199254740994"},
		// The double is exact, and the canonical form is another decimal: 2^60.
		{text: "1152921504606846976", rule: inexact},
		{text: "1152921504606847000", want: "1152921504606847000"},
		{text: "9223372036854775807", rule: inexact},
		{text: "18446744073709551616", rule: inexact},
		{text: "100000000000000000000", want: "100000000000000000000"},
		{text: "28857836529306024611912", rule: inexact},
		{text: "1E30", want: "1e+30"},
		{text: "1000000000000000000000000000000", want: "1e+30"},
		{text: "1000000000000000000000000000001", rule: inexact},
		{text: "1e23", want: "1e+23"},
		{text: "17976931348623157e292", want: "1.7976931348623157e+308"},
		{text: "0.1", want: "0.1"},
		{text: "333333333.33333329", want: "333333333.3333333"},
		{text: "0.30000000000000004441", want: "0.30000000000000004"},
		{text: "9007199254740993.5", want: "9007199254740994"},
		{text: "1e-7", want: "1e-7"},
		{text: "5e-324", want: "5e-324"},
		{text: "3e-324", want: "5e-324"},
		{text: "1e-400", rule: small},
		{text: "-1e-400", rule: small},
		{text: "1e309", rule: large},
		{text: "1e400", rule: large},
		{text: "-1e400", rule: large},
		{text: "1e99999", rule: large},
		{text: "1e999999999", rule: "exponent out of range"},
		{text: "1e-999999999", rule: "exponent out of range"},
		{text: "1e99999999999999999999999999", rule: "exponent out of range"},
		{text: "0." + strings.Repeat("0", 200) + "1e201", want: "1"},
		{text: "1" + strings.Repeat("0", 400) + "e-400", want: "1"},
		{text: strings.Repeat("9", 400), rule: large},
		{text: strings.Repeat("9", 300), rule: inexact},
		{text: "0." + strings.Repeat("0", 400) + "1", rule: small},
		{text: "0." + strings.Repeat("3", 100_000), want: "0.3333333333333333"},
		// strconv reads the exponent as -10330 and so the number as 1.
		{text: "1" + strings.Repeat("0", 10_330) + "e-103300", rule: "exponent out of range"},
	}
	for _, tt := range tests {
		name := tt.text
		if len(name) > 40 {
			name = name[:40]
		}
		t.Run(name, func(t *testing.T) {
			if tt.rule != "" {
				e := refused(t, `{"a":[0,`+tt.text+`]}`, tt.rule)
				assert.Equal(t, "/a/1", e.Pointer)
				assert.EqualValues(t, len(`{"a":[0,`), e.Offset)
				return
			}
			assert.Equal(t, tt.want, canonical(t, tt.text))
		})
	}
}

func TestRules(t *testing.T) {
	const repeated = "repeated name"
	tests := []struct {
		name, text, pointer, rule string
	}{
		{"repeated at the top", `{"a":1,"a":2}`, "/a", repeated},
		{"repeated with one value", `{"a":1,"a":1}`, "/a", repeated},
		{"repeated two levels down", `{"a":{"b":{"c":1,"d":2,"c":3}}}`, "/a/b/c", repeated},
		{"repeated in an array", `[1,{"a":[{"b":1,"b":2}]}]`, "/1/a/0/b", repeated},
		{"repeated after unescaping", `{"arguments":{"a":1,"\u0061":2}}`, "/arguments/a", repeated},
		{"repeated with an escaped solidus", `{"a/b":1,"a\/b":2}`, "/a~1b", repeated},
		{"repeated as a surrogate pair", `{"𝄞":1,"\ud834\udd1e":2}`, "/𝄞", repeated},
		{"repeated empty name", `{"":1,"":2}`, "/", repeated},
		{"lone high surrogate", `{"a":"\ud800"}`, "/a", "lone surrogate"},
		{"lone low surrogate", `["\udc00"]`, "/0", "lone surrogate"},
		{"surrogates the wrong way round", `["\udc00\ud800"]`, "/0", "lone surrogate"},
		{"high surrogate before a letter", `["\ud800\u0061"]`, "/0", "lone surrogate"},
		{"lone surrogate in a name", `{"\ud800":1}`, "", "lone surrogate"},
		{"not UTF-8 in a string", "[\"\xff\"]", "/0", "not UTF-8"},
		{"not UTF-8 in a name", "{\"\xff\":1}", "", "not UTF-8"},
		{"overlong UTF-8", "[\"\xc0\x80\"]", "/0", "not UTF-8"},
		{"surrogate as UTF-8", "[\"\xed\xa0\x80\"]", "/0", "not UTF-8"},
		{"byte order mark", "\ufeff{}", "", "not JSON"},
		{"unknown escape", `["\x"]`, "/0", "no such escape"},
		{"control character", "[\"a\nb\"]", "/0", "not JSON"},
		{"nothing", "", "", "no value"},
		{"white space", " \t\r\n", "", "no value"},
		{"cut short", `{"a":[1`, "/a", "the text ends early"},
		{"two values", `{} {}`, "", "more after the value"},
		{"two values on two lines", "1\n2", "", "more after the value"},
		{"a comma after the value", `{},`, "", "more after the value"},
		{"a bracket too many", `[]]`, "", "more after the value"},
		{"a null byte after the value", "{}\x00", "", "more after the value"},
		{"a name that is no string", `{1:2}`, "", "a name must be a string"},
		{"a secret that is no JSON", `{"password":hunter2}`, "/password", "not JSON"},
		{"comment", `[1 /* one */]`, "", "not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := refused(t, tt.text, tt.rule)
			assert.Equal(t, tt.pointer, e.Pointer)
		})
	}
}

func TestNamesThatOnlyLookAlike(t *testing.T) {
	tests := []struct{ text, want string }{
		{`{"b":1,"B":2}`, `{"B":2,"b":1}`},
		{`{"s":1,"ſ":2,"S":3}`, `{"S":3,"s":1,"ſ":2}`},                 // U+017F folds to s
		{`{"k":1,"\u212a":2,"K":3}`, "{\"K\":3,\"k\":1,\"\u212a\":2}"}, // KELVIN SIGN folds to k
		{`{"\u00e9":1,"e\u0301":2}`, "{\"e\u0301\":2,\"\u00e9\":1}"},   // one letter in two normal forms
		{`{"a":1,"a ":2,"a\u0000":3}`, `{"a":1,"a\u0000":3,"a ":2}`},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			assert.Equal(t, tt.want, canonical(t, tt.text))
		})
	}
}

func TestCanonicalForm(t *testing.T) {
	tests := []struct{ text, want string }{
		{" \r\n\t{ \"b\" : [ 1 , true , null ] , \"a\" : { } } \n", `{"a":{},"b":[1,true,null]}`},
		{`"<>&\/\u2028\u001f\u007f"`, "\"<>&/\u2028\\u001f\u007f\""},
		{`"\ud834\udd1e\uffff"`, "\"𝄞\uffff\""},                     // a noncharacter stays what it is
		{`{"\ue000":1,"\ud834\udd1e":2}`, "{\"𝄞\":2,\"\ue000\":1}"}, // names in the order of UTF-16
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			assert.Equal(t, tt.want, canonical(t, tt.text))
		})
	}
}

func TestDepth(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	assert.Equal(t, nested(64), canonical(t, nested(64)))
	assert.Equal(t, objects(64), canonical(t, objects(64)))
	e := refused(t, nested(65), "nested deeper than 64 levels")
	assert.EqualValues(t, 64, e.Offset)
	assert.Equal(t, strings.Repeat("/0", 64), e.Pointer)
	refused(t, objects(65), "nested deeper than 64 levels")
	refused(t, strings.Repeat("[", 100_000), "nested deeper than 64 levels")
	refused(t, strings.Repeat(`{"a":`, 100_000), "nested deeper than 64 levels")

	// Width is no depth.
	assert.NotPanics(t, func() { canonical(t, "["+strings.Repeat("[],", 1000)+"[]]") })

	_, err := ijson.Canonical([]byte("1"), ijson.Limits{Bytes: 1})
	require.NoError(t, err, "a scalar has no depth")
	_, err = ijson.Canonical([]byte("[]"), ijson.Limits{Bytes: 2})
	require.Error(t, err)
	_, err = ijson.Canonical([]byte(strings.Repeat("[", 100_000)), ijson.Limits{Bytes: 1 << 20, Depth: 1 << 20})
	assert.EqualError(t, err, "at "+strings.Repeat("/0", 100)+"… (byte 5000): nested deeper than 5000 levels")
}

func TestLength(t *testing.T) {
	text := func(n int) string { return `"` + strings.Repeat("a", n-2) + `"` }
	assert.Len(t, canonical(t, text(1<<20)), 1<<20)
	e := refused(t, text(1<<20+1), "longer than 1048576 bytes")
	assert.EqualValues(t, 1<<20, e.Offset)
	refused(t, "1"+strings.Repeat(" ", 1<<20), "longer than 1048576 bytes")
	_, err := ijson.Canonical([]byte("1"), ijson.Limits{})
	assert.Error(t, err, "the zero value refuses everything")

	// Neither the text nor its canonical form is longer: what is accepted once is accepted again.
	_, err = ijson.Canonical([]byte("[1e20]"), ijson.Limits{Bytes: 23, Depth: 1})
	require.NoError(t, err)
	_, err = ijson.Canonical([]byte("[1e20]"), ijson.Limits{Bytes: 22, Depth: 1})
	assert.EqualError(t, err, "at byte 6: longer than 22 bytes in its canonical form")
}

func TestErrorText(t *testing.T) {
	_, err := ijson.Canonical([]byte(`{"tool":"x","arguments":{"a":1,"a":2}}`), ijson.DefaultLimits)
	assert.EqualError(t, err, "at /arguments/a (byte 31): repeated name")
	_, err = ijson.Canonical([]byte(`[] []`), ijson.DefaultLimits)
	assert.EqualError(t, err, "at byte 3: more after the value")
	_, err = ijson.Canonical([]byte(`{"\u001b[31m\u202e":hunter2}`), ijson.DefaultLimits)
	assert.EqualError(t, err, `at /\x1b[31m\u202e (byte 20): not JSON`)
	_, err = ijson.Canonical([]byte(`{"`+strings.Repeat("é", 1000)+`":hunter2}`), ijson.DefaultLimits)
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 300)
	assert.True(t, utf8.ValidString(err.Error()))
}

func BenchmarkCanonical(b *testing.B) {
	text := []byte(`{"call_id":"c1","tool":"record_draft","arguments":{"amount":12.5,"path":"a/b","tags":["x","y"],"n":3}}`)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = ijson.Canonical(text, ijson.DefaultLimits)
	}
}

// anyValue draws a value as encoding/json decodes it.
func anyValue(depth int) *rapid.Generator[any] {
	text := rapid.Map(rapid.String(), func(s string) string { return strings.ToValidUTF8(s, "") })
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		text.AsAny(),
		rapid.Float64().AsAny(),
		rapid.Map(rapid.Int32(), func(i int32) any { return float64(i) }),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) }), 0, 4).AsAny(),
			rapid.MapOfN(text, rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) }), 0, 4).AsAny())
	}
	return rapid.OneOf(kinds...)
}

func TestCanonicalKeepsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := anyValue(4).Draw(t, "value")
		text, err := json.Marshal(value)
		require.NoError(t, err)
		got, err := ijson.Canonical(text, ijson.DefaultLimits)
		require.NoError(t, err)
		assert.JSONEq(t, string(text), string(got))

		// Every way of writing the same value has the same canonical form.
		indented, err := json.MarshalIndent(value, " ", "\t")
		require.NoError(t, err)
		again, err := ijson.Canonical(indented, ijson.DefaultLimits)
		require.NoError(t, err)
		assert.Equal(t, string(got), string(again))
		own, err := ijson.Marshal(value)
		require.NoError(t, err)
		assert.Equal(t, string(got), string(own))
		theirs, err := jcs.Transform(text)
		require.NoError(t, err)
		assert.Equal(t, string(theirs), string(own))

		// And no other value has it.
		other := anyValue(1).Draw(t, "other")
		form, err := ijson.Marshal(other)
		require.NoError(t, err)
		assert.Equal(t, reflect.DeepEqual(value, other), string(form) == string(own))
	})
}
