package checkpoint

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// EntryProof shows that an entry is in the log of a checkpoint. Its text is C2SP's tlog-proof
// (https://c2sp.org/tlog-proof).
type EntryProof struct {
	// Index is the place of the entry, counted from 0.
	Index  int64
	Hashes []merkle.Hash
	// Signed is the checkpoint, with its signatures.
	Signed []byte
}

// GrowthProof shows that the log of a checkpoint begins with the log of an older one. Its text is the request that a witness
// gets (add-checkpoint of https://c2sp.org/tlog-witness).
type GrowthProof struct {
	// Old is the size of the older log.
	Old    int64
	Hashes []merkle.Hash
	// Signed is the newer checkpoint, with its signatures.
	Signed []byte
}

const (
	entryHeader = "c2sp.org/tlog-proof@v1"
	mostHashes  = 63
)

// Text is the proof as it is kept.
func (p EntryProof) Text() string {
	return proofText(entryHeader+"\nindex "+strconv.FormatInt(p.Index, 10), p.Hashes, p.Signed)
}

// Text is the proof as it is kept.
func (p GrowthProof) Text() string {
	return proofText("old "+strconv.FormatInt(p.Old, 10), p.Hashes, p.Signed)
}

func proofText(head string, hashes []merkle.Hash, signed []byte) string {
	var b strings.Builder
	b.WriteString(head + "\n")
	for _, h := range hashes {
		b.WriteString(base64.StdEncoding.EncodeToString(h[:]) + "\n")
	}
	b.WriteByte('\n')
	b.Write(signed)
	return b.String()
}

// ParseProof reads a proof: of an entry or of growth. The other one is nil.
func ParseProof(text []byte) (*EntryProof, *GrowthProof, error) {
	head, signed, ok := bytes.Cut(text, []byte("\n\n"))
	if !ok || len(text) > MaxBytes {
		return nil, nil, errors.New("it is no proof: a proof has lines with hashes, an empty line and a checkpoint")
	}
	lines := strings.Split(string(head), "\n")
	if size, ok := strings.CutPrefix(lines[0], "old "); ok {
		growth, err := parseGrowth(size, lines[1:], signed)
		return nil, growth, err
	}
	if lines[0] != entryHeader {
		return nil, nil, fmt.Errorf("it is no proof: a proof begins with %s, or with the word old and a size", entryHeader)
	}
	entry, err := parseEntry(lines[1:], signed)
	return entry, nil, err
}

func parseGrowth(size string, lines []string, signed []byte) (*GrowthProof, error) {
	old, err := ParseNumber(size)
	if err != nil {
		return nil, fmt.Errorf("the size of the older log: %w", err)
	}
	hashes, err := parseHashes(lines)
	if err != nil {
		return nil, err
	}
	return &GrowthProof{old, hashes, signed}, nil
}

func parseEntry(lines []string, signed []byte) (*EntryProof, error) {
	if len(lines) > 0 && strings.HasPrefix(lines[0], "extra ") {
		// Nothing vouches for what applications add there, and nothing here needs it; but it is what it has to be.
		if _, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(lines[0], "extra ")); err != nil {
			return nil, errors.New("the extra data of the proof is not base64")
		}
		lines = lines[1:]
	}
	if len(lines) == 0 || !strings.HasPrefix(lines[0], "index ") {
		return nil, errors.New("the proof has no index")
	}
	index, err := ParseNumber(strings.TrimPrefix(lines[0], "index "))
	if err != nil {
		return nil, fmt.Errorf("the index of the entry: %w", err)
	}
	hashes, err := parseHashes(lines[1:])
	if err != nil {
		return nil, err
	}
	return &EntryProof{index, hashes, signed}, nil
}

func parseHashes(lines []string) ([]merkle.Hash, error) {
	if len(lines) > mostHashes {
		return nil, fmt.Errorf("the proof has more than %d hashes, which no log needs", mostHashes)
	}
	var hashes []merkle.Hash
	for _, line := range lines {
		h, err := merkle.ParseHash(line)
		if err != nil {
			return nil, fmt.Errorf("the proof: %w", err)
		}
		hashes = append(hashes, h)
	}
	return hashes, nil
}

// Check gives the checkpoint under which the bytes of an entry are in the log, if a trusted key signed it and the proof holds.
func (p *EntryProof) Check(entry []byte, trusted []Verifier) (Checkpoint, error) {
	c, err := Open(p.Signed, trusted)
	if err == nil {
		err = merkle.CheckRecord(p.Hashes, c.Head, p.Index, merkle.Leaf(entry))
	}
	if err != nil {
		return Checkpoint{}, err
	}
	return c, nil
}

// Check gives the newer checkpoint, if a trusted key signed it and its log begins with that of the older one.
func (p *GrowthProof) Check(old Checkpoint, trusted []Verifier) (Checkpoint, error) {
	c, err := Open(p.Signed, trusted)
	switch {
	case err != nil:
		return Checkpoint{}, err
	case c.Origin != old.Origin:
		return Checkpoint{}, fmt.Errorf("the proof is about the log %s, and the older checkpoint about %s", c.Origin, old.Origin)
	case p.Old != old.Size:
		return Checkpoint{}, fmt.Errorf("the proof begins at %d entries, and the older checkpoint has %d", p.Old, old.Size)
	}
	if err := merkle.CheckTree(p.Hashes, c.Head, old.Head); err != nil {
		return Checkpoint{}, err
	}
	return c, nil
}
