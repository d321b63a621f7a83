package ijson

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Digest is the lower-case hex SHA-256 of a canonical form under a tag, which says what the bytes are and in which
// version of their form. Different pairs of tag and bytes are hashed as different texts.
func Digest(tag string, canonical Raw) string {
	return sum(sha256.New(), tag, canonical)
}

// HMAC is the lower-case hex HMAC-SHA-256 (RFC 2104) of data under a key and a tag, framed as Digest does it. It is
// an equality key that does not let who sees it test guesses.
func HMAC(key []byte, tag string, data []byte) string {
	return sum(hmac.New(sha256.New, key), tag, data)
}

// Keyed makes HMACs under one key and one tag, one after the other and without allocating. It is not safe for concurrent
// use.
type Keyed struct {
	h   hash.Hash
	tag []byte
	sum [sha256.Size]byte
}

// NewKeyed gives what HMAC gives for the same key and tag.
func NewKeyed(key []byte, tag string) *Keyed {
	return &Keyed{h: hmac.New(sha256.New, key), tag: []byte(tag)}
}

// Append appends the HMAC of data to dst, as HMAC writes it.
func (k *Keyed) Append(dst, data []byte) []byte {
	k.h.Reset()
	write(k.h, k.tag)
	write(k.h, data)
	return hex.AppendEncode(dst, k.h.Sum(k.sum[:0]))
}

// sum hashes tag and data, each behind its length as eight bytes, so that no two pairs run together.
func sum(h hash.Hash, tag string, data []byte) string {
	write(h, []byte(tag))
	write(h, data)
	return hex.EncodeToString(h.Sum(nil))
}

func write(h hash.Hash, part []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	h.Write(length[:])
	h.Write(part)
}
