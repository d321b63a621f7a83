package merkle

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/merkle/testonly"
)

// memory is a log that keeps every hash.
type memory struct {
	edge  Edge
	nodes map[int64][]Hash
	// heads holds the head at every size, and theirs the same tree as another implementation has it.
	heads  []Head
	theirs *testonly.Tree
}

func newMemory(size int64) *memory {
	m := &memory{nodes: map[int64][]Hash{}, theirs: testonly.New(rfc6962.DefaultHasher)}
	m.heads = append(m.heads, m.edge.Head())
	for n := range size {
		m.nodes[n] = m.edge.Append(Leaf(entry(n)), nil)
		m.heads = append(m.heads, m.edge.Head())
		m.theirs.AppendData(entry(n))
	}
	return m
}

func entry(n int64) []byte { return fmt.Appendf(nil, `{"n":%d}`, n) }

func (m *memory) Head(context.Context) (Head, error) { return m.edge.Head(), nil }

func (m *memory) Hashes(_ context.Context, nodes []int64) (out []Hash, err error) {
	for _, n := range nodes {
		leaf, place := Completed(n)
		out = append(out, m.nodes[leaf][place])
	}
	return out, nil
}

func slicesOf(hashes []Hash) [][]byte {
	out := [][]byte{}
	for _, h := range hashes {
		out = append(out, slices.Clone(h[:]))
	}
	return out
}

func hashesOf(proof [][]byte) []Hash {
	out := []Hash{}
	for _, h := range proof {
		out = append(out, Hash(h))
	}
	return out
}

const largest = 70

// Every proof of an entry in every small tree is that of another implementation, and each takes the other's.
func TestRecordProofsAsOthersHaveThem(t *testing.T) {
	m := newMemory(largest)
	for size := int64(1); size <= largest; size++ {
		head := m.heads[size]
		root, err := RootAt(t.Context(), m, size)
		require.NoError(t, err)
		require.Equal(t, head.Root, root)
		require.Equal(t, m.theirs.HashAt(uint64(size)), root[:])
		for leaf := range size {
			ours, err := ProveRecord(t.Context(), m, leaf, size)
			require.NoError(t, err)
			theirs, err := m.theirs.InclusionProof(uint64(leaf), uint64(size))
			require.NoError(t, err)
			require.Equal(t, hashesOf(theirs), append([]Hash{}, ours...))
			hash := Leaf(entry(leaf))
			require.NoError(t, proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(leaf), uint64(size), hash[:], slicesOf(ours), root[:]))
			require.NoError(t, CheckRecord(hashesOf(theirs), head, leaf, hash))

			// What is wrong in it, neither takes.
			refused := func(hashes []Hash, tree Head, leaf int64, hash Hash) {
				t.Helper()
				require.ErrorIs(t, CheckRecord(hashes, tree, leaf, hash), ErrProof)
				require.Error(t, proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(leaf), uint64(tree.Size), hash[:], slicesOf(hashes), tree.Root[:]))
			}
			refused(ours, head, leaf, Leaf([]byte("another entry")))
			refused(append(slices.Clone(ours), hash), head, leaf, hash)
			refused(ours, Head{size, Leaf(nil)}, leaf, hash)
			refused(ours, head, size, hash)
			if size > 1 {
				refused(ours, head, (leaf+1)%size, hash)
				refused(ours[1:], head, leaf, hash)
			}
			for i := range ours {
				spoiled := slices.Clone(ours)
				spoiled[i][0] ^= 1
				refused(spoiled, head, leaf, hash)
			}
		}
	}
}

// The same for the proofs that a tree begins with an older one.
func TestTreeProofsAsOthersHaveThem(t *testing.T) {
	m := newMemory(largest)
	for size := int64(0); size <= largest; size++ {
		for old := int64(0); old <= size; old++ {
			tree, before := m.heads[size], m.heads[old]
			ours, err := ProveTree(t.Context(), m, old, size)
			require.NoError(t, err)
			theirs, err := m.theirs.ConsistencyProof(uint64(old), uint64(size))
			require.NoError(t, err)
			require.Equal(t, hashesOf(theirs), append([]Hash{}, ours...), "%d in %d", old, size)
			require.NoError(t, proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(old), uint64(size), slicesOf(ours), before.Root[:], tree.Root[:]))
			require.NoError(t, CheckTree(hashesOf(theirs), tree, before))

			refused := func(hashes []Hash, tree, before Head) {
				t.Helper()
				require.ErrorIs(t, CheckTree(hashes, tree, before), ErrProof, "%d in %d", before.Size, tree.Size)
				if before.Size > 0 { // theirs takes any root for that of the empty tree
					require.Error(t, proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(before.Size), uint64(tree.Size), slicesOf(hashes), before.Root[:], tree.Root[:]))
				}
			}
			refused(ours, tree, Head{old, Leaf([]byte("another"))})
			if old > 0 || size == 0 {
				refused(ours, Head{size, Leaf([]byte("another"))}, before)
			}
			refused(append(slices.Clone(ours), tree.Root), tree, before)
			refused(ours, tree, Head{size + 1, before.Root})
			refused(ours, tree, Head{-1, before.Root})
			if old < size && old > 0 {
				refused(ours[1:], tree, before)
			}
			for i := range ours {
				spoiled := slices.Clone(ours)
				spoiled[i][31] ^= 0x80
				refused(spoiled, tree, before)
			}
		}
	}
}

func TestWhatThereIsNoProofOf(t *testing.T) {
	m := newMemory(5)
	for name, prove := range map[string]func() ([]Hash, error){
		"an entry that is not there":  func() ([]Hash, error) { return ProveRecord(t.Context(), m, 5, 5) },
		"an entry before the first":   func() ([]Hash, error) { return ProveRecord(t.Context(), m, -1, 5) },
		"an entry of the empty log":   func() ([]Hash, error) { return ProveRecord(t.Context(), m, 0, 0) },
		"a log that has not grown so": func() ([]Hash, error) { return ProveRecord(t.Context(), m, 0, 6) },
		"a larger old log":            func() ([]Hash, error) { return ProveTree(t.Context(), m, 5, 4) },
		"a later log":                 func() ([]Hash, error) { return ProveTree(t.Context(), m, 5, 6) },
		"a negative size":             func() ([]Hash, error) { return ProveTree(t.Context(), m, -1, 5) },
	} {
		t.Run(name, func(t *testing.T) {
			hashes, err := prove()
			require.Error(t, err)
			require.Nil(t, hashes)
		})
	}
	_, err := RootAt(t.Context(), m, 6)
	require.EqualError(t, err, "the log has 5 entries, and not 6")
}

// A size that somebody else wrote may be any number.
func TestSizesThatNoTreeHas(t *testing.T) {
	hashes := make([]Hash, 70)
	for _, size := range []int64{mostLeaves, mostLeaves + 1, math.MaxInt64, math.MinInt64} {
		require.ErrorIs(t, CheckRecord(hashes, Head{Size: size}, 0, Hash{}), ErrProof)
		require.ErrorIs(t, CheckRecord(hashes, Head{Size: size}, size-1, Hash{}), ErrProof)
		require.ErrorIs(t, CheckTree(hashes, Head{Size: size}, Head{Size: 1}), ErrProof)
	}
}

func TestHashesAreWrittenInOneWay(t *testing.T) {
	h := Leaf(nil)
	text := base64.StdEncoding.EncodeToString(h[:])
	read, err := ParseHash(text)
	require.NoError(t, err)
	require.Equal(t, h, read)
	for _, wrong := range []string{"", text + "\n", text[:43], strings.TrimSuffix(text, "=") + "==", "A" + text, base64.URLEncoding.EncodeToString(h[:]) + "=", fmt.Sprintf("%x", h[:])} {
		_, err := ParseHash(wrong)
		require.Error(t, err, wrong)
	}
}
