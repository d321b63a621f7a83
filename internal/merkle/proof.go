package merkle

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// ErrProof is what is wrong with a proof that proves nothing.
var ErrProof = errors.New("the proof does not lead to that root")

// mostLeaves is the greatest tree that tlog can halve; with more it would never end.
const mostLeaves = 1 << 62

// RootAt gives the root that a log had when it was of a size.
func RootAt(ctx context.Context, log Log, size int64) (Hash, error) {
	if err := within(ctx, log, size); err != nil {
		return Hash{}, err
	}
	return tlog.TreeHash(size, reader{ctx, log})
}

// ProveRecord gives the hashes that lead from a leaf, counted from 0, to the root of a tree of a size, the sibling first (RFC
// 6962 section 2.1.1).
func ProveRecord(ctx context.Context, log Log, leaf, size int64) ([]Hash, error) {
	if err := within(ctx, log, size); err != nil {
		return nil, err
	}
	if leaf < 0 || leaf >= size {
		return nil, fmt.Errorf("there is no entry %d in a log of %d; they are counted from 0", leaf, size)
	}
	return tlog.ProveRecord(size, leaf, reader{ctx, log})
}

// ProveTree gives the hashes which show that a tree of a size begins with the tree of an earlier one (RFC 6962 section
// 2.1.2). Nothing needs to be shown of the empty tree, which every tree begins with.
func ProveTree(ctx context.Context, log Log, old, size int64) ([]Hash, error) {
	if err := within(ctx, log, size); err != nil {
		return nil, err
	}
	if old < 0 || old > size {
		return nil, fmt.Errorf("a log of %d entries has no part of %d", size, old)
	}
	if old == 0 {
		return nil, nil
	}
	return tlog.ProveTree(size, old, reader{ctx, log})
}

// CheckRecord gives ErrProof unless the hashes lead from a leaf to a root.
func CheckRecord(proof []Hash, tree Head, leaf int64, hash Hash) error {
	if tree.Size > mostLeaves || tlog.CheckRecord(proof, tree.Size, tree.Root, leaf, hash) != nil {
		return ErrProof
	}
	return nil
}

// CheckTree gives ErrProof unless the hashes show that a tree begins with an older one.
func CheckTree(proof []Hash, tree, old Head) error {
	switch {
	case old.Size < 0 || old.Size > tree.Size || tree.Size > mostLeaves:
		return ErrProof
	case tree.Size == 0, old.Size == 0:
		var empty Edge
		if len(proof) > 0 || old != empty.Head() || tree.Size == 0 && tree != old {
			return ErrProof
		}
		return nil
	case tlog.CheckTree(proof, tree.Size, tree.Root, old.Size, old.Root) != nil:
		return ErrProof
	}
	return nil
}

// ParseHash reads a hash as proofs and checkpoints write it.
func ParseHash(text string) (Hash, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != tlog.HashSize || base64.StdEncoding.EncodeToString(b) != text {
		return Hash{}, fmt.Errorf("%q is no SHA-256 in base64", text)
	}
	return Hash(b), nil
}

func within(ctx context.Context, log Log, size int64) error {
	now, err := log.Head(ctx)
	if err == nil && (size < 0 || size > now.Size) {
		err = fmt.Errorf("the log has %d entries, and not %d", now.Size, size)
	}
	return err
}

// reader reads a log as tlog wants to.
type reader struct {
	ctx context.Context
	log Log
}

func (r reader) ReadHashes(nodes []int64) ([]Hash, error) { return r.log.Hashes(r.ctx, nodes) }
