package seal_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/seal"
)

func box(t testing.TB, key byte) *seal.Box {
	b, err := seal.New(bytes.Repeat([]byte{key}, 32))
	require.NoError(t, err)
	return b
}

var place = []string{"approvals", "default", "labels-1", "ap-1"}

func TestWhatIsSealedOpensAtItsPlaceAlone(t *testing.T) {
	b := box(t, 1)
	secret := []byte(`{"value":"S3CR3T"}`)
	sealed := b.Seal(secret, place...)
	assert.NotContains(t, string(sealed), "S3CR3T")
	assert.NotEqual(t, sealed, b.Seal(secret, place...), "nobody sees which rows are alike")

	got, err := b.Open(sealed, place...)
	require.NoError(t, err)
	assert.Equal(t, secret, got)

	for name, other := range map[string][]string{
		"table":    {"records", "default", "labels-1", "ap-1"},
		"tenant":   {"approvals", "other", "labels-1", "ap-1"},
		"task":     {"approvals", "default", "labels-2", "ap-1"},
		"row":      {"approvals", "default", "labels-1", "ap-2"},
		"shifted":  {"approvals", "default", "labels-1a", "p-1"},
		"fewer":    {"approvals", "default", "labels-1"},
		"more":     {"approvals", "default", "labels-1", "ap-1", ""},
		"joined":   {"approvalsdefaultlabels-1ap-1"},
		"no place": nil,
	} {
		_, err := b.Open(sealed, other...)
		assert.ErrorIs(t, err, seal.ErrClosed, name)
	}
	_, err = box(t, 2).Open(sealed, place...)
	assert.ErrorIs(t, err, seal.ErrClosed, "another key")
}

func TestEveryByteCounts(t *testing.T) {
	b := box(t, 1)
	sealed := b.Seal([]byte("S3CR3T"), place...)
	for i := range sealed {
		for _, damage := range []byte{0x01, 0x80} {
			damaged := bytes.Clone(sealed)
			damaged[i] ^= damage
			_, err := b.Open(damaged, place...)
			require.ErrorIs(t, err, seal.ErrClosed, "byte %d", i)
		}
		_, err := b.Open(sealed[:i], place...)
		require.ErrorIs(t, err, seal.ErrClosed, "cut to %d", i)
	}
	_, err := b.Open(append(bytes.Clone(sealed), 0), place...)
	require.ErrorIs(t, err, seal.ErrClosed)
}

// The form is what the package says, made here of its parts: the key by RFC 5869 written out, a nonce, and the standard
// library's plain GCM.
func TestTheFormIsAsDescribed(t *testing.T) {
	storeKey := bytes.Repeat([]byte{7}, 32)
	extract := hmac.New(sha256.New, make([]byte, sha256.Size))
	extract.Write(storeKey)
	expand := hmac.New(sha256.New, extract.Sum(nil))
	expand.Write([]byte("govern sealed bytes v1\x01"))
	block, err := aes.NewCipher(expand.Sum(nil))
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)

	sealed := box(t, 7).Seal([]byte("S3CR3T"), "t", "né")
	require.Equal(t, byte(1), sealed[0])
	where := []byte("\x01" + "\x00\x00\x00\x00\x00\x00\x00\x01t" + "\x00\x00\x00\x00\x00\x00\x00\x03né")
	plain, err := gcm.Open(nil, sealed[1:13], sealed[13:], where)
	require.NoError(t, err)
	assert.Equal(t, "S3CR3T", string(plain))
}

func FuzzOpen(f *testing.F) {
	b := box(f, 1)
	f.Add(b.Seal([]byte("S3CR3T"), place...), "approvals")
	f.Add([]byte{1}, "")
	f.Fuzz(func(t *testing.T, foreign []byte, where string) {
		if _, err := b.Open(foreign, where); err == nil {
			t.Fatal("nobody without the key makes what opens")
		}
		sealed := b.Seal(foreign, where)
		got, err := b.Open(sealed, where)
		require.NoError(t, err)
		require.True(t, bytes.Equal(foreign, got))
	})
}
