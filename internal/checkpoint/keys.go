package checkpoint

import (
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/wholefile"
)

// Keys are the signing keys of a log, as their file holds them: a line for each.
type Keys struct {
	// Signers sign: one key, or two during a change of keys, the older one first.
	Signers []Signer
	// Retired do not sign any more. What they signed still counts.
	Retired []Verifier
}

// Origin is the name of the log, and of its keys.
func (k Keys) Origin() string { return k.Signers[0].Origin() }

// Public are the keys that sign, as they are published.
func (k Keys) Public() []string {
	var public []string
	for _, s := range k.Signers {
		public = append(public, s.String())
	}
	return public
}

// Trusted are the keys whose signatures count.
func (k Keys) Trusted() []Verifier {
	var trusted []Verifier
	for _, s := range k.Signers {
		trusted = append(trusted, s.Verifier)
	}
	return append(trusted, k.Retired...)
}

// mostKeyBytes bounds a file of keys. One has a line for each change of keys there ever was.
const mostKeyBytes = 1 << 20

// ReadKeys reads a file of signing keys, which nobody else may be able to read. Its errors quote nothing of it.
func ReadKeys(file string) (Keys, error) {
	b, err := wholefile.ReadSecret(file, "the signing key", mostKeyBytes)
	if err != nil {
		return Keys{}, err
	}
	var keys Keys
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if s, err := parseSigner(line); err == nil {
			keys.Signers = append(keys.Signers, s)
		} else if v, err := ParseVerifier(line); err == nil {
			keys.Retired = append(keys.Retired, v)
		} else {
			return Keys{}, damaged(file)
		}
	}
	if n := len(keys.Signers); n < 1 || n > 2 || slices.ContainsFunc(keys.Trusted(), func(v Verifier) bool { return v.Origin() != keys.Origin() }) {
		return Keys{}, damaged(file)
	}
	return keys, nil
}

// ErrKeyFile says that a file which holds a secret is not as it has to be.
var ErrKeyFile = wholefile.ErrUnusable

func damaged(file string) error {
	return wholefile.Unusable("%s does not hold signing keys; restore it from a backup", file)
}

func (k Keys) write(file string) error {
	var b strings.Builder
	for _, s := range k.Signers {
		b.WriteString(s.secret + "\n")
	}
	for _, v := range k.Retired {
		b.WriteString(v.String() + "\n")
	}
	return wholefile.Write(file, []byte(b.String()), 0o600)
}
