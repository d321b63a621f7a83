package checkpoint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The key of the examples in golang.org/x/mod/sumdb/note.
const (
	knownSecret = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
	knownPublic = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
)

func TestKnownKey(t *testing.T) {
	s, err := parseSigner(knownSecret)
	require.NoError(t, err)
	assert.Equal(t, knownPublic, s.String())
	v, err := ParseVerifier(knownPublic)
	require.NoError(t, err)
	assert.Equal(t, knownPublic, v.String())
	assert.Equal(t, "PeterNeumann", v.Origin())
}

func TestTextsThatAreNoKey(t *testing.T) {
	for _, text := range []string{"", "PeterNeumann", knownSecret, strings.Replace(knownPublic, "c74f20a3", "c74f20a4", 1),
		strings.Replace(knownPublic, "Peter", "Petra", 1), knownPublic[:len(knownPublic)-4], knownPublic + "\n", "x+" + knownPublic} {
		_, err := ParseVerifier(text)
		require.Error(t, err, text)
	}
	_, err := parseSigner(knownPublic)
	require.Error(t, err)
}

// However a key is printed, its secret stays where it is; and a broken one is not quoted.
func TestSecretsAreNotPrinted(t *testing.T) {
	s, err := NewSigner("example.com/log")
	require.NoError(t, err)
	hidden := strings.SplitN(s.secret, "+", 5)[4]
	require.Len(t, hidden, 44)
	for _, verb := range []string{"%v", "%+v", "%s", "%#v", "%q", "%x", "%d"} {
		for _, printed := range []any{s, &s, []Signer{s}, struct{ S Signer }{s}} {
			assert.NotContains(t, fmt.Sprintf(verb, printed), hidden, verb)
			assert.NotContains(t, fmt.Sprintf(verb, printed), fmt.Sprintf("%x", hidden), verb)
		}
	}
	_, err = parseSigner(knownSecret[:len(knownSecret)-1])
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "YEKFALV")
	_, err = ParseVerifier(knownSecret)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "YEKFALV", "a secret that stands where a public key belongs is not shown either")
}

func TestOrigins(t *testing.T) {
	for _, origin := range []string{"govern/0123456789abcdef", "example.com/log", "x", strings.Repeat("x", 255)} {
		require.NoError(t, CheckOrigin(origin))
	}
	for _, origin := range []string{"", "a b", "a+b", "a\nb", "a\x00b", "ä", "a\u00a0b", strings.Repeat("x", 256)} {
		require.ErrorContains(t, CheckOrigin(origin), "is no origin", "%q", origin)
		_, err := NewSigner(origin)
		require.Error(t, err)
	}
}
