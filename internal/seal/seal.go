// Package seal encrypts the exact bytes of what is sensitive for the place that keeps them: a row of a store. The key is
// derived from the store's, which lies outside of the store.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// version stands before the bytes and says how they were made: AES-256-GCM (NIST SP 800-38D) with a random nonce of 12
// bytes before what it encrypted, under a key that HKDF (RFC 5869) with SHA-256 derives.
const version = 1

// label keeps the derived key apart from whatever else the store's key is used for.
const label = "govern sealed bytes v1"

// ErrClosed says that bytes do not open: they are damaged, or of another place, or the key is another's.
var ErrClosed = errors.New("its sealed bytes do not open")

// Box seals and opens bytes under one key. It is safe for concurrent use. With random nonces one key may seal some
// four billion times (2^32) before two are likely enough to be alike to matter.
type Box struct{ aead cipher.AEAD }

// New makes the box of a store's key.
func New(storeKey []byte) (*Box, error) {
	key, err := hkdf.Key(sha256.New, storeKey, nil, label, 32)
	if err != nil {
		return nil, fmt.Errorf("cannot derive the key of what is sealed: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &Box{aead}, err
}

// Seal encrypts bytes for a place, which a list of names says: of the table and of the row in it.
func (b *Box) Seal(plain []byte, place ...string) []byte {
	return b.aead.Seal([]byte{version}, nil, plain, framed(place))
}

// Open gives the bytes that were sealed for exactly this place, or ErrClosed.
func (b *Box) Open(sealed []byte, place ...string) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != version {
		return nil, ErrClosed
	}
	plain, err := b.aead.Open(nil, nil, sealed[1:], framed(place))
	if err != nil {
		return nil, ErrClosed
	}
	return plain, nil
}

// framed writes the version and each name behind its length, so that no two places run together.
func framed(place []string) []byte {
	out := []byte{version}
	for _, name := range place {
		out = binary.BigEndian.AppendUint64(out, uint64(len(name)))
		out = append(out, name...)
	}
	return out
}
