package ijson_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestDigest(t *testing.T) {
	// The form written out: it must not change, since stored digests are compared with new ones.
	framed := sha256.Sum256([]byte("\x00\x00\x00\x00\x00\x00\x00\x04call\x00\x00\x00\x00\x00\x00\x00\x02{}"))
	assert.Equal(t, hex.EncodeToString(framed[:]), ijson.Digest("call", ijson.Raw("{}")))

	seen := map[string]bool{}
	pairs := [][2]string{{"call", "{}"}, {"call{", "}"}, {"", "call{}"}, {"call{}", ""}, {"effect", "{}"}, {"call", "{} "}, {"", ""}}
	for _, pair := range pairs {
		for _, digest := range []string{
			ijson.Digest(pair[0], ijson.Raw(pair[1])),
			ijson.HMAC([]byte("key"), pair[0], []byte(pair[1])),
			ijson.HMAC([]byte("another key"), pair[0], []byte(pair[1])),
		} {
			assert.Regexp(t, "^[0-9a-f]{64}$", digest)
			assert.False(t, seen[digest], pair)
			seen[digest] = true
		}
	}
	assert.Equal(t, ijson.HMAC([]byte("key"), "a", []byte("b")), ijson.HMAC([]byte("key"), "a", []byte("b")))
}

func TestKeyedIsHMAC(t *testing.T) {
	k := ijson.NewKeyed([]byte("key"), "tag")
	for _, data := range []string{"", "b", "longer than one block of SHA-256, which has sixty-four bytes and no more"} {
		assert.Equal(t, "before "+ijson.HMAC([]byte("key"), "tag", []byte(data)), string(k.Append([]byte("before "), []byte(data))))
	}
}
