package ijson

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever Marshal does not check again has nothing in it that a check refuses.
func FuzzPlain(f *testing.F) {
	for _, text := range []string{`[1,-999999999999999,"9999999999999999",true,false,null]`, `9007199254740993`, `1e400`, `1E400`, `0.1`, `1234567890123456`,
		`{"a\"1e5":"\\\\","b":[{}]}`, `"1e400\\"`, `[true,1e400]`, `{"e":1,"E":2}`, `-0`, `[0,1e-400]`, strings.Repeat("[", 5001) + strings.Repeat("]", 5001)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := json.Marshal(Raw(text))
		if err == nil && plain(b) {
			require.NoError(t, check(b, deepest), "%s", text)
		}
	})
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":[true,false,null,"1.5e400"],"b":-123456789012345}`: true, `"\\\"9999999999999999"`: true, `1234567890123456`: false, `1.5`: false, `1e5`: false, `1E5`: false, `[true,1e5]`: false,
	} {
		assert.Equal(t, want, plain([]byte(text)), text)
	}
}
