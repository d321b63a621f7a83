package checkpoint

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	formats "github.com/transparency-dev/formats/log"
	"golang.org/x/mod/sumdb/note"

	"github.com/policy-dispatch/govern/internal/merkle"
)

const (
	sofa     = "example.com/behind-the-sofa"
	sofaRoot = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="
)

func example(t *testing.T) Checkpoint {
	t.Helper()
	root, err := merkle.ParseHash(sofaRoot)
	require.NoError(t, err)
	return Checkpoint{Origin: sofa, Head: merkle.Head{Size: 20852163, Root: root}}
}

// The text is that of the example in C2SP's tlog-checkpoint, and another implementation reads it so too.
func TestTheTextOfTheStandard(t *testing.T) {
	text := sofa + "\n20852163\n" + sofaRoot + "\n"
	c, err := Parse(text)
	require.NoError(t, err)
	assert.Equal(t, example(t), c)
	assert.Equal(t, text, c.Text())

	var theirs formats.Checkpoint
	_, err = theirs.Unmarshal([]byte(text))
	require.NoError(t, err)
	assert.Equal(t, formats.Checkpoint{Origin: c.Origin, Size: uint64(c.Size), Hash: c.Root[:]}, theirs)
}

func TestExtensionsAreKept(t *testing.T) {
	text := sofa + "\n0\n" + sofaRoot + "\nMoon: waxing\nTime: 42\n"
	c, err := Parse(text)
	require.NoError(t, err)
	assert.Equal(t, []string{"Moon: waxing", "Time: 42"}, c.Extensions)
	assert.Equal(t, text, c.Text())
}

func TestTextsThatAreNoCheckpoint(t *testing.T) {
	lines := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	for name, text := range map[string]string{
		"nothing":                  "",
		"two lines":                lines(sofa, "7"),
		"no line break at its end": sofa + "\n7\n" + sofaRoot,
		"an empty origin":          lines("", "7", sofaRoot),
		"an empty extension":       lines(sofa, "7", sofaRoot, "", "x"),
		"an empty last line":       lines(sofa, "7", sofaRoot, ""),
		"a zero in front":          lines(sofa, "07", sofaRoot),
		"two zeros":                lines(sofa, "00", sofaRoot),
		"a sign":                   lines(sofa, "+7", sofaRoot),
		"a negative size":          lines(sofa, "-7", sofaRoot),
		"minus nothing":            lines(sofa, "-0", sofaRoot),
		"a space":                  lines(sofa, "7 ", sofaRoot),
		"hexadecimal":              lines(sofa, "0x7", sofaRoot),
		"an underscore":            lines(sofa, "1_000", sofaRoot),
		"digits of another script": lines(sofa, "٧", sofaRoot),
		"more than any log has":    lines(sofa, "9223372036854775808", sofaRoot),
		"no base64":                lines(sofa, "7", strings.Replace(sofaRoot, "/", "_", 1)),
		"no padding":               lines(sofa, "7", strings.TrimSuffix(sofaRoot, "=")),
		"bits after the end":       lines(sofa, "7", strings.Replace(sofaRoot, "2I=", "2J=", 1)),
		"a shorter root":           lines(sofa, "7", "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxqw=="),
		"a carriage return":        lines(sofa, "7", sofaRoot+"\r"),
		"a tab in the origin":      lines("example.com/\tlog", "7", sofaRoot),
		"no UTF-8":                 lines("example.com/\xff", "7", sofaRoot),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(text)
			require.Error(t, err)
		})
	}
}

func newSigner(t *testing.T, origin string) Signer {
	t.Helper()
	s, err := NewSigner(origin)
	require.NoError(t, err)
	return s
}

// A signature is what C2SP's signed-note says, written out here once more, and another implementation takes it.
func TestSignatureAsTheStandardHasIt(t *testing.T) {
	key, c := newSigner(t, sofa), example(t)
	signed, err := Sign(c, key)
	require.NoError(t, err)

	parts := strings.SplitN(key.String(), "+", 3)
	require.Equal(t, sofa, parts[0])
	public, err := base64.StdEncoding.DecodeString(parts[2])
	require.NoError(t, err)
	require.EqualValues(t, 1, public[0], "Ed25519")
	id := sha256.Sum256(append([]byte(sofa+"\n"), public...))
	require.Equal(t, parts[1], fmt.Sprintf("%x", id[:4]))
	line, ok := strings.CutPrefix(string(signed), c.Text()+"\n— "+sofa+" ")
	require.True(t, ok, "%s", signed)
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(line, "\n"))
	require.NoError(t, err)
	require.Equal(t, id[:4], signature[:4])
	require.True(t, ed25519.Verify(public[1:], []byte(c.Text()), signature[4:]))

	verifier, err := note.NewVerifier(key.String())
	require.NoError(t, err)
	_, _, _, err = formats.ParseCheckpoint(signed, sofa, verifier)
	require.NoError(t, err)
	opened, err := Open(signed, []Verifier{key.Verifier})
	require.NoError(t, err)
	require.Equal(t, c, opened)
}

// During a change of keys both sign: whoever knows one of them is satisfied, and whoever knows both wants both to be good.
func TestOpen(t *testing.T) {
	before, after, other, foreign := newSigner(t, sofa), newSigner(t, sofa), newSigner(t, sofa), newSigner(t, "example.com/other")
	both, err := Sign(example(t), before, after)
	require.NoError(t, err)
	alone, err := Sign(example(t), before)
	require.NoError(t, err)
	changed := strings.Replace(string(both), "20852163", "20852164", 1)
	// The signature that after gave for another size.
	spoiled := func() []byte {
		later := example(t)
		later.Size++
		wrong, err := Sign(later, after)
		require.NoError(t, err)
		_, line, _ := strings.Cut(string(wrong), "\n\n")
		return []byte(string(alone) + line)
	}()
	renamed, err := note.Sign(&note.Note{Text: example(t).Text()}, foreign.signer)
	require.NoError(t, err)

	for name, c := range map[string]struct {
		signed  []byte
		trusted []Signer
		want    error
	}{
		"one key":                                  {alone, []Signer{before}, nil},
		"one key, named twice":                     {alone, []Signer{before, before}, nil},
		"both, the old one known":                  {both, []Signer{before}, nil},
		"both, the new one known":                  {both, []Signer{after}, nil},
		"both, both known":                         {both, []Signer{before, after}, nil},
		"one of two known ones":                    {alone, []Signer{before, after}, nil},
		"nobody known":                             {both, nil, ErrUntrusted},
		"another known":                            {both, []Signer{other}, ErrUntrusted},
		"changed":                                  {[]byte(changed), []Signer{before}, ErrSignature},
		"a bad signature, whose key is known":      {spoiled, []Signer{before, after}, ErrSignature},
		"a bad signature, whose key is not known":  {spoiled, []Signer{before}, nil},
		"a known key of another log":               {renamed, []Signer{foreign}, ErrUntrusted},
		"a known key of another log, and a second": {renamed, []Signer{foreign, before}, ErrUntrusted},
	} {
		t.Run(name, func(t *testing.T) {
			var trusted []Verifier
			for _, s := range c.trusted {
				trusted = append(trusted, s.Verifier)
			}
			opened, err := Open(c.signed, trusted)
			require.ErrorIs(t, err, c.want)
			if c.want == nil {
				require.Equal(t, example(t), opened)
			} else {
				require.Zero(t, opened)
			}
		})
	}
	for name, signed := range map[string]string{
		"nothing":        "",
		"no signature":   example(t).Text(),
		"empty":          example(t).Text() + "\n",
		"too long":       strings.Repeat("x", MaxBytes+1),
		"a line too few": "example.com/behind-the-sofa\n7\n\n" + strings.SplitAfterN(string(alone), "\n\n", 2)[1],
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open([]byte(signed), []Verifier{before.Verifier})
			require.Error(t, err)
		})
	}
	_, err = Open(both, []Verifier{other.Verifier})
	require.ErrorContains(t, err, strings.Join(strings.SplitN(before.String(), "+", 3)[:2], "+"), "it names who signed")
}

func TestSignRefusesWhatIsNoCheckpoint(t *testing.T) {
	key := newSigner(t, sofa)
	for name, spoil := range map[string]func(*Checkpoint){
		"another log's":        func(c *Checkpoint) { c.Origin = "example.com/other" },
		"an empty extension":   func(c *Checkpoint) { c.Extensions = []string{""} },
		"a size that is not":   func(c *Checkpoint) { c.Size = -1 },
		"a control character":  func(c *Checkpoint) { c.Extensions = []string{"a\tb"} },
		"a break in its name":  func(c *Checkpoint) { c.Origin = sofa + "\n9" },
		"nothing for its name": func(c *Checkpoint) { c.Origin = "" },
	} {
		t.Run(name, func(t *testing.T) {
			c := example(t)
			spoil(&c)
			signed, err := Sign(c, key)
			require.Error(t, err)
			require.Nil(t, signed)
		})
	}
}

// Whatever can be read is written again as it was.
func FuzzParse(f *testing.F) {
	f.Add(sofa + "\n20852163\n" + sofaRoot + "\n")
	f.Add(sofa + "\n0\n" + sofaRoot + "\nx\ny\n")
	f.Add("a\n007\n" + sofaRoot + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err == nil {
			require.Equal(t, text, c.Text())
			require.GreaterOrEqual(t, c.Size, int64(0))
			require.NotEmpty(t, c.Origin)
			var theirs formats.Checkpoint
			_, err := theirs.Unmarshal([]byte(text))
			require.NoError(t, err, "another implementation reads it too")
		}
	})
}

// Nothing but what was signed can be opened.
func FuzzOpen(f *testing.F) {
	key, err := NewSigner(sofa)
	if err != nil {
		f.Fatal(err)
	}
	c := Checkpoint{Origin: sofa, Head: merkle.Head{Size: 7}}
	signed, err := Sign(c, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Add([]byte(c.Text() + "\n— " + sofa + " AAAA\n"))
	f.Fuzz(func(t *testing.T, signed []byte) {
		if opened, err := Open(signed, []Verifier{key.Verifier}); err == nil {
			require.Equal(t, c, opened)
		}
	})
}
