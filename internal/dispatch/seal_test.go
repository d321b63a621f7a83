package dispatch

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/ijson"
)

var testSealer = sealer{key: bytes.Repeat([]byte{1}, 32), tenant: "default"}

// The seal is HMAC-SHA-256 over the framed tag and the framed canonical form of tenant and value, written out here.
func TestSealIsAsDescribed(t *testing.T) {
	mac := hmac.New(sha256.New, testSealer.key)
	mac.Write([]byte("\x00\x00\x00\x00\x00\x00\x00\x16govern sealed value v1"))
	mac.Write([]byte("\x00\x00\x00\x00\x00\x00\x00\x14[\"default\",\"S3CR3T\"]"))
	got, err := SealOf(testSealer.key, "default", ijson.Raw(`"S3CR3T"`))
	require.NoError(t, err)
	assert.Equal(t, Seal{Digest: hex.EncodeToString(mac.Sum(nil)), Length: 6}, got)
	raw, err := testSealer.seal(ijson.Raw(`"S3CR3T"`))
	require.NoError(t, err)
	assert.Equal(t, `{"$sealed":"`+got.Digest+`","length":6}`, string(raw))
	read, ok := ReadSeal(raw)
	assert.True(t, ok)
	assert.Equal(t, got, read)
	for _, other := range []string{`{"$sealed":"x"}`, `{"length":6}`, `{"$sealed":1,"length":6}`, `{"$sealed":"x","length":"6"}`, `{"$sealed":"x","length":6,"z":1}`, `"$sealed"`, `[]`} {
		_, ok := ReadSeal(ijson.Raw(other))
		assert.False(t, ok, other)
	}
}

func TestLengthOfASeal(t *testing.T) {
	for value, want := range map[string]int{`"é😀\n"`: 3, `""`: 0, `12`: 2, `true`: 4, `{"a":"é"}`: 10, `[]`: 2} {
		got, err := SealOf(nil, "default", ijson.Raw(value))
		require.NoError(t, err)
		assert.Equal(t, want, got.Length, value)
	}
}

func TestEchoes(t *testing.T) {
	seal := func(value string) string {
		raw, err := testSealer.seal(ijson.Raw(value))
		require.NoError(t, err)
		return string(raw)
	}
	for name, c := range map[string]struct{ sensitive, value, want string }{
		"the whole":              {`"S3CR3T"`, `"S3CR3T"`, seal(`"S3CR3T"`)},
		"deep":                   {`"S3CR3T"`, `{"a":[1,{"b":"S3CR3T"}]}`, `{"a":[1,{"b":` + seal(`"S3CR3T"`) + `}]}`},
		"inside a text":          {`"S3CR3T"`, `["it is S3CR3T.","it is not"]`, `[` + seal(`"it is S3CR3T."`) + `,"it is not"]`},
		"in a name":              {`"S3CR3T"`, `{"x":{"a S3CR3T":1,"b":2},"y":3}`, `{"x":` + seal(`{"a S3CR3T":1,"b":2}`) + `,"y":3}`},
		"escaped":                {`"a\"b\n"`, `["x a\"b\n y"]`, `[` + seal(`"x a\"b\n y"`) + `]`},
		"four characters":        {`"abcd"`, `["xabcdx"]`, `[` + seal(`"xabcdx"`) + `]`},
		"three characters alone": {`"äöü"`, `["xäöüx","äöü"]`, `["xäöüx",` + seal(`"äöü"`) + `]`},
		"a number":               {`31415926`, `[31415926,"pin 31415926","31415926",3]`, `[` + seal(`31415926`) + `,` + seal(`"pin 31415926"`) + `,` + seal(`"31415926"`) + `,3]`},
		"a short number":         {`7`, `[7,77,"7"]`, `[` + seal(`7`) + `,77,` + seal(`"7"`) + `]`},
		"true":                   {`true`, `[true,false,"true"]`, `[` + seal(`true`) + `,false,"true"]`},
		"an object":              {`{"pin":"0007","who":"a"}`, `{"got":{"pin":"0007","who":"a"},"pin":"x","s":"nr 0007"}`, ""},
		"a part of an object":    {`{"p":["0007"]}`, `{"s":"nr 0007","t":1}`, `{"s":` + seal(`"nr 0007"`) + `,"t":1}`},
		"nothing":                {`"S3CR3T"`, `{"a":["s3cr3t",1.5,null,true,{}],"b":"é"}`, `{"a":["s3cr3t",1.5,null,true,{}],"b":"é"}`},
	} {
		if c.want == "" { // a name that is sensitive seals what it is a name in
			c.want = seal(c.value)
		}
		got, err := newEchoes(testSealer, []ijson.Raw{ijson.Raw(c.sensitive)}, nil).seal(ijson.Raw(c.value))
		require.NoError(t, err)
		assert.Equal(t, c.want, string(got), name)
	}
}

// However many texts an agent calls sensitive, and however often it repeats them, it takes no time to speak of.
func TestManyEchoes(t *testing.T) {
	parts := make([]string, 100_000)
	for i := range parts {
		parts[i] = fmt.Sprintf("%05d", i)
	}
	value, err := ijson.Marshal(parts)
	require.NoError(t, err)
	few, err := ijson.Marshal(parts[:mostEchoes])
	require.NoError(t, err)
	begun := time.Now()
	got, err := newEchoes(testSealer, []ijson.Raw{value}, nil).seal(ijson.Raw(`["00099"]`))
	require.NoError(t, err)
	assert.Contains(t, string(got), "$sealed", "as a whole, since there are too many")
	got, err = newEchoes(testSealer, []ijson.Raw{few}, nil).seal(value)
	require.NoError(t, err)
	assert.Contains(t, string(got), `"00099"`)
	assert.NotContains(t, string(got), `"00063"`)
	assert.Less(t, time.Since(begun), 10*time.Second)
}

// A seal that was made stays one, even if the digest happens to hold what is sensitive; what has the form of one does not.
func TestEchoesInSeals(t *testing.T) {
	made, err := testSealer.seal(ijson.Raw(`"S3CR3T"`))
	require.NoError(t, err)
	digits := string(made[12:18])
	e := newEchoes(testSealer, []ijson.Raw{ijson.Raw(`"` + digits + `"`)}, []ijson.Raw{made})
	got, err := e.seal(made)
	require.NoError(t, err)
	assert.Equal(t, string(made), string(got))
	forged := strings.Replace(string(made), digits, digits+digits, 1)
	got, err = e.seal(ijson.Raw(forged))
	require.NoError(t, err)
	assert.NotContains(t, string(got), digits+digits)
}

func TestUnnamedViolations(t *testing.T) {
	schema := ijson.Raw(`{"properties":{"a":{"properties":{"b/c":{}}},"list":{}},"required":["needed"]}`)
	value := ijson.Raw(`{"S3CR3T":1,"a":{"b/c":{"S3CR3T":1},"31":1},"list":[[{"S3CR3T":1}]]}`)
	shown := func(path string) string {
		got := unnamed([]Violation{{Path: path, Message: "is bad"}}, schema, value)
		require.Len(t, got, 1)
		return got[0].Path + " " + got[0].Message
	}
	const under = " has something in it under a name that is not shown, which is bad"
	for path, want := range map[string]string{
		"": " is bad", "/needed": "/needed is bad", "/S3CR3T": under, "/a/b~1c": "/a/b~1c is bad", "/a/b~1c/S3CR3T": "/a/b~1c" + under,
		"/a/31": "/a" + under, "/list/0/0": "/list/0/0 is bad", "/list/0/0/S3CR3T": "/list/0/0" + under, "/S3CR3T/a": under,
	} {
		assert.Equal(t, want, shown(path), path)
	}
	assert.Len(t, unnamed([]Violation{{"/x", "m"}, {"/y", "m"}}, schema, value), 1, "what reads alike is said once")
}

// What a tool outside gave stands under one name of the value; what is said of it leads into that.
func TestSensitiveOutputOfAToolOutside(t *testing.T) {
	def := Definition{Name: "pay", Effect: Write, Outside: ijson.Raw(`{}`), SensitiveOutput: []string{"/token"},
		Output: ijson.Raw(`{"properties":{"token":{},"n":{"type":"integer"}}}`)}
	secret := `"S3CR3T"`
	made, err := testSealer.seal(ijson.Raw(secret))
	require.NoError(t, err)
	o := Outcome{Status: StatusOK, Sent: true, State: Committed, Ran: true, Value: ijson.Raw(`{"token":"outer","value":{"note":` + secret + `,"token":` + secret + `}}`)}
	got, err := o.sealed(testSealer, &def, nil)
	require.NoError(t, err)
	assert.Equal(t, `{"token":"outer","value":{"note":`+string(made)+`,"token":`+string(made)+`}}`, string(got.SealedValue))
	assert.Equal(t, o.Value, got.Value)

	lost, err := Outcome{Status: StatusInvalidResult, Sent: true, State: Committed, Ran: true}.sealed(testSealer, &def, nil)
	require.NoError(t, err)
	assert.Nil(t, lost.SealedValue, "what could not be kept has no form")

	bad := breaks{[]Violation{{Path: "/n", Message: "must be an integer"}, {Path: "/list/0", Message: "is odd"}, {Path: "/list/0/S3CR3T", Message: "is odd"}}}
	def.Output = ijson.Raw(`{"properties":{"n":{},"list":{}}}`)
	assert.Equal(t, "pay: the result breaks the output schema: /n must be an integer; /list/0 is odd; /list/0 has something in it under a name that is not shown, which is odd",
		breach(bad, def, ijson.Raw(`{"value":{"n":"x","list":[{"S3CR3T":1}]}}`), true))
}

// breaks is a tool whose values break its output schema.
type breaks struct{ found []Violation }

func (breaks) Definition() Definition              { return Definition{} }
func (breaks) Check(ijson.Raw) []Violation         { return nil }
func (b breaks) CheckOutput(ijson.Raw) []Violation { return b.found }
func (breaks) Project(value ijson.Raw) ijson.Raw   { return value }
func (breaks) Run(context.Context, Call) Outcome   { return Outcome{} }

// FuzzSealAt: whatever the arguments, nothing of a sensitive one is left, everything else is, and with it they are what
// they were.
func FuzzSealAt(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":"d"}}`), "x", uint(0))
	f.Add([]byte(`{"~":[],"a/b":null}`), "\"\n", uint(1))
	f.Fuzz(func(t *testing.T, foreign []byte, text string, which uint) {
		arguments, err := ijson.Canonical(foreign, ijson.DefaultLimits)
		members, ok := ijson.Members(arguments)
		const marker = "S3CR3T"
		if err != nil || !ok || len(members) == 0 || !utf8.ValidString(text) || strings.Contains(string(arguments), marker) {
			return
		}
		secret, err := ijson.Marshal(map[string]any{text + marker: []string{marker, marker + text}})
		require.NoError(t, err)
		pointer := "/" + ijson.EscapeToken(members[which%uint(len(members))].Name)
		arguments, ok = ijson.Replace(arguments, pointer, secret)
		require.True(t, ok)

		sealed, values, seals, err := testSealer.at(arguments, []string{pointer, "/not/there"})
		require.NoError(t, err)
		require.NotContains(t, string(sealed), marker)
		require.Equal(t, []ijson.Raw{secret}, values)
		back, ok := ijson.Replace(sealed, pointer, secret)
		require.True(t, ok)
		require.Equal(t, string(arguments), string(back))
		canonical, err := ijson.Canonical(sealed, ijson.Limits{Bytes: len(sealed), Depth: 100})
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(sealed))
		again, _, _, err := testSealer.at(arguments, []string{pointer})
		require.NoError(t, err)
		require.Equal(t, string(sealed), string(again), "equal values have equal seals")
		stands, _ := ijson.Lookup(sealed, pointer)
		require.Equal(t, string(seals[0]), string(stands))
	})
}

// FuzzEchoes: whatever a tool gives, no name and no text outside of a seal repeats what is sensitive, and what repeats
// nothing stays as it is.
func FuzzEchoes(f *testing.F) {
	f.Add([]byte(`{"a":["xS3CR3Tx",{"S3CR3T":1}],"b":"84"}`), "S3CR3T")
	f.Add([]byte(`[1,12345,"12",true]`), "1234")
	f.Add([]byte(`{"$sealed":"abcd","length":4}`), "abcd")
	f.Fuzz(func(t *testing.T, foreign []byte, secret string) {
		value, err := ijson.Canonical(foreign, ijson.DefaultLimits)
		if err != nil || !utf8.ValidString(secret) {
			return
		}
		sensitive, err := ijson.Marshal(secret)
		require.NoError(t, err)
		e := newEchoes(testSealer, []ijson.Raw{sensitive}, nil)
		shown, err := e.seal(value)
		require.NoError(t, err)
		loud := func(text string) bool {
			return text == secret || utf8.RuneCountInString(secret) >= 4 && strings.Contains(text, secret)
		}
		any := false
		for _, text := range textsOf(value) {
			any = any || loud(text)
		}
		require.Equal(t, any, string(shown) != string(value))
		canonical, err := ijson.Canonical(shown, ijson.Limits{Bytes: len(shown), Depth: 100})
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(shown))
		var look func(v ijson.Raw)
		look = func(v ijson.Raw) {
			if _, is := ReadSeal(v); is && !bytes.Contains(value, v) {
				return
			}
			if text, ok := ijson.String(v); ok {
				require.False(t, loud(text), text)
			}
			members, _ := ijson.Members(v)
			for _, m := range members {
				require.False(t, loud(m.Name), m.Name)
				look(m.Value)
			}
			var elements []ijson.Raw
			if v.Kind() == '[' && ijson.Unmarshal(v, &elements) == nil {
				for _, element := range elements {
					look(element)
				}
			}
		}
		look(shown)
	})
}
