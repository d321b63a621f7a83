package cursor_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/cursor"
)

type row struct {
	Task string `json:"task"`
	Step int    `json:"step"`
}

var (
	key    = []byte(strings.Repeat("k", 32))
	listed = row{"labels-1", 7}
)

func made(t testing.TB) string {
	t.Helper()
	c, err := cursor.Make(key, "default", "log decisions", listed)
	require.NoError(t, err)
	return c
}

func TestCursorNamesItsRow(t *testing.T) {
	c := made(t)
	assert.Equal(t, c, made(t), "a row has one cursor, whenever it is asked for")
	assert.Regexp(t, `^[-_A-Za-z0-9]+$`, c)
	var got row
	require.NoError(t, cursor.Read(key, "default", "log decisions", c, &got))
	assert.Equal(t, listed, got)
}

func TestCursorBelongsToOneListing(t *testing.T) {
	c := made(t)
	var got row
	var other *cursor.OtherError
	require.ErrorAs(t, cursor.Read(key, "default", "log decisions --task labels-1", c, &got), &other)
	assert.Equal(t, "log decisions", other.Listing)
	require.ErrorAs(t, cursor.Read(key, "default", "log actions", c, &got), &other)
	assert.ErrorIs(t, cursor.Read(key, "elsewhere", "log decisions", c, &got), cursor.ErrForged)
	assert.ErrorIs(t, cursor.Read([]byte("another store's key"), "default", "log decisions", c, &got), cursor.ErrForged)
	assert.Zero(t, got)
}

// Whatever is done to a cursor, it is good for nothing then.
func TestAlteredCursorsAreRefused(t *testing.T) {
	c := made(t)
	altered := []string{"", "x", c + "A", c + "=", c + "\n", c[:10] + "\r\n" + c[10:], " " + c, c[1:], c[:len(c)-1], c[:20], c + c, strings.ToUpper(c)}
	raw, err := base64.RawURLEncoding.DecodeString(c)
	require.NoError(t, err)
	for i := range raw {
		for bit := range 8 {
			b := []byte(string(raw))
			b[i] ^= 1 << bit
			altered = append(altered, base64.RawURLEncoding.EncodeToString(b))
		}
	}
	for i := range c {
		for _, with := range []byte("AZaz09-_+/ ") {
			if c[i] != with {
				altered = append(altered, c[:i]+string(with)+c[i+1:])
			}
		}
	}
	for _, a := range altered {
		var got row
		require.ErrorIs(t, cursor.Read(key, "default", "log decisions", a, &got), cursor.ErrForged, "%q", a)
		require.Zero(t, got)
	}
}

func FuzzRead(f *testing.F) {
	good := made(f)
	f.Add(good)
	f.Add(good[:22])
	f.Fuzz(func(t *testing.T, c string) {
		var got row
		if err := cursor.Read(key, "default", "log decisions", c, &got); c == good {
			assert.NoError(t, err)
			assert.Equal(t, listed, got)
		} else {
			assert.ErrorIs(t, err, cursor.ErrForged)
		}
	})
}
