package checkpoint

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Verifier is the public half of a signing key. Whoever trusts it can tell who signed.
type Verifier struct {
	verifier note.Verifier
	text     string
}

// ParseVerifier reads a verifier key, NAME+HASH+BASE64. Its errors do not quote it: it may be the secret half by mistake.
func ParseVerifier(text string) (Verifier, error) {
	bad := errors.New("it is no verifier key; give NAME+HASH+BASE64, as govern key show prints it")
	found, err := note.NewVerifier(text)
	if err != nil {
		return Verifier{}, bad
	}
	v, err := verifierOf(found.Name(), keyBytes(text, 3))
	if err != nil || v.text != text {
		return Verifier{}, bad
	}
	return v, nil
}

// keyBytes gives the key that is the last of so many fields, after the byte that says what kind it is. Its base64 can
// hold the character that parts them.
func keyBytes(text string, fields int) []byte {
	key, _ := base64.StdEncoding.DecodeString(strings.SplitN(text, "+", fields)[fields-1])
	return key[1:]
}

func verifierOf(name string, key ed25519.PublicKey) (Verifier, error) {
	text, err := note.NewEd25519VerifierKey(name, key)
	if err != nil {
		return Verifier{}, err
	}
	v, err := note.NewVerifier(text)
	return Verifier{v, text}, err
}

// String is the key as it is published.
func (v Verifier) String() string { return v.text }

// Origin is the name of the log that the key signs for.
func (v Verifier) Origin() string { return v.verifier.Name() }

func (v Verifier) id() keyID { return keyID{v.verifier.Name(), v.verifier.KeyHash()} }

// Signer is a signing key. Printed, it is its public half.
type Signer struct {
	Verifier
	signer note.Signer
	secret string
}

// Format writes String for every verb: no way of printing a key gives it away.
func (s Signer) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// NewSigner makes a key for the log of an origin.
func NewSigner(origin string) (Signer, error) {
	if err := CheckOrigin(origin); err != nil {
		return Signer{}, err
	}
	secret, _, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return Signer{}, err
	}
	return parseSigner(secret)
}

// parseSigner reads a secret. Its errors do not quote it.
func parseSigner(secret string) (Signer, error) {
	signer, err := note.NewSigner(secret)
	if err != nil {
		return Signer{}, errors.New("this is no signing key")
	}
	public := ed25519.NewKeyFromSeed(keyBytes(secret, 5)).Public().(ed25519.PublicKey)
	verifier, err := verifierOf(signer.Name(), public)
	return Signer{verifier, signer, secret}, err
}

const maxOrigin = 255

// CheckOrigin says what is wrong with the name of a log.
func CheckOrigin(origin string) error {
	if origin == "" || len(origin) > maxOrigin || strings.ContainsFunc(origin, func(r rune) bool { return r <= ' ' || r > '~' || r == '+' }) {
		return fmt.Errorf("%q is no origin; write a name such as example.com/govern: 1 to %d visible ASCII characters, without spaces and +", origin, maxOrigin)
	}
	return nil
}
