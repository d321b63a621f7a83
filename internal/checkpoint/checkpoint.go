// Package checkpoint says what a log was at one moment, signed: its origin, its size and its root, as C2SP's
// tlog-checkpoint (https://c2sp.org/tlog-checkpoint) and signed-note have it. Whoever keeps one can tell later that the log
// was cut, replaced or changed, without asking the log.
package checkpoint

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// Checkpoint is a log at one moment.
type Checkpoint struct {
	// Origin names the log. It is the name of the key that signs.
	Origin string
	merkle.Head
	// Extensions are lines with a meaning of somebody else's. Checkpoints of govern have none.
	Extensions []string
}

// Text is what is signed.
func (c Checkpoint) Text() string {
	lines := append([]string{c.Origin, strconv.FormatInt(c.Size, 10), base64.StdEncoding.EncodeToString(c.Root[:])}, c.Extensions...)
	return strings.Join(lines, "\n") + "\n"
}

// MaxBytes bounds a signed checkpoint: whoever reads one reads no more than this.
const MaxBytes = 1 << 20

// Parse reads what was signed. One checkpoint has one text: what would be written otherwise is refused.
func Parse(text string) (Checkpoint, error) {
	body, whole := strings.CutSuffix(text, "\n")
	if !whole {
		return Checkpoint{}, errors.New("the checkpoint does not end with a line break")
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(body, func(r rune) bool { return r < ' ' && r != '\n' }) {
		return Checkpoint{}, errors.New("the checkpoint is not UTF-8, or has control characters in it")
	}
	lines := strings.Split(body, "\n")
	if len(lines) < 3 || slices.Contains(lines, "") {
		return Checkpoint{}, errors.New("a checkpoint has an origin, a size and a root, each on a line, and no empty line")
	}
	size, err := ParseNumber(lines[1])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("the size of the checkpoint: %w", err)
	}
	root, err := merkle.ParseHash(lines[2])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("the root of the checkpoint: %w", err)
	}
	c := Checkpoint{Origin: lines[0], Head: merkle.Head{Size: size, Root: root}}
	if len(lines) > 3 {
		c.Extensions = lines[3:]
	}
	return c, nil
}

// ParseNumber reads a size or a place of a log: digits alone, without zeros in front.
func ParseNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%q is no number of entries; write digits, without zeros in front", text)
	}
	return n, nil
}

// Sign signs a checkpoint with each of the keys, which bear the name of its origin.
func Sign(c Checkpoint, keys ...Signer) ([]byte, error) {
	text := c.Text()
	if again, err := Parse(text); err != nil || again.Text() != text {
		return nil, errors.Join(errors.New("this is no checkpoint that can be signed"), err)
	}
	var signers []note.Signer
	for _, k := range keys {
		if k.Origin() != c.Origin {
			return nil, fmt.Errorf("a key of %s does not sign for %s", k.Origin(), c.Origin)
		}
		signers = append(signers, k.signer)
	}
	return note.Sign(&note.Note{Text: text}, signers...)
}

// Open gives a signed checkpoint if a trusted key of its origin signed it, and no signature of a trusted key in it is bad.
// Signatures of others do not count: during a change of keys there are two, and witnesses add theirs.
func Open(signed []byte, trusted []Verifier) (Checkpoint, error) {
	if len(signed) > MaxBytes {
		return Checkpoint{}, fmt.Errorf("it is longer than %d bytes, which no checkpoint is", MaxBytes)
	}
	known := verifiers{}
	for _, v := range trusted {
		known[v.id()] = v.verifier
	}
	n, err := note.Open(signed, known)
	if _, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		return Checkpoint{}, fmt.Errorf("%w: it is signed by %s", ErrUntrusted, signedBy(signed))
	}
	if e, ok := errors.AsType[*note.InvalidSignatureError](err); ok {
		return Checkpoint{}, fmt.Errorf("%w: that of the key %s+%08x does not fit the text", ErrSignature, e.Name, e.Hash)
	}
	if err != nil {
		return Checkpoint{}, errors.New("it is no signed checkpoint: a text, an empty line, and lines with signatures")
	}
	c, err := Parse(n.Text)
	if err != nil {
		return Checkpoint{}, err
	}
	if !slices.ContainsFunc(n.Sigs, func(s note.Signature) bool { return s.Name == c.Origin }) {
		return Checkpoint{}, fmt.Errorf("%w: it is of %s, and only keys of another name signed it", ErrUntrusted, c.Origin)
	}
	return c, nil
}

// Errors of Open.
var (
	ErrUntrusted = errors.New("no trusted key signed this checkpoint")
	ErrSignature = errors.New("a signature of a trusted key is wrong")
)

// signedBy names the keys that say that they signed.
func signedBy(signed []byte) string {
	var names []string
	_, err := note.Open(signed, note.VerifierList())
	if e, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		for _, s := range e.Note.UnverifiedSigs {
			names = append(names, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
		}
	}
	return strings.Join(names, ", ")
}

// verifiers finds a key by name and hash. Unlike note's own list it takes a key that is named twice for the one that it is.
type verifiers map[keyID]note.Verifier

type keyID struct {
	name string
	hash uint32
}

func (v verifiers) Verifier(name string, hash uint32) (note.Verifier, error) {
	if found, ok := v[keyID{name, hash}]; ok {
		return found, nil
	}
	return nil, &note.UnknownVerifierError{Name: name, KeyHash: hash}
}
