package merkle

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/tlog"
)

// The roots of the trees of 0 to 8 leaves that the tests of Certificate Transparency use, of RFC 6962 section 2.1.
func TestKnownRoots(t *testing.T) {
	leaves := []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	roots := []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	var e Edge
	for size, want := range roots {
		head := e.Head()
		assert.EqualValues(t, size, head.Size)
		assert.Equal(t, want, hex.EncodeToString(head.Root[:]), "%d leaves", size)
		if size < len(leaves) {
			leaf, err := hex.DecodeString(leaves[size])
			require.NoError(t, err)
			e.Append(Leaf(leaf), nil)
		}
	}
}

// Every edge, root and completed hash is that of two other implementations.
func TestEdgeAsOthersHaveIt(t *testing.T) {
	const most = 300
	var stored []Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) (out []Hash, err error) {
		for _, i := range indexes {
			out = append(out, stored[i])
		}
		return out, nil
	})
	factory := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	other := factory.NewEmptyRange(0)
	byLeaf := map[int64][]Hash{}
	var e Edge
	for n := range int64(most) {
		entry := fmt.Appendf(nil, "entry %d", n)
		want, err := tlog.StoredHashes(n, entry, reader)
		require.NoError(t, err)
		stored = append(stored, want...)
		byLeaf[n] = e.Append(Leaf(entry), nil)
		require.Equal(t, want, byLeaf[n])
		require.NoError(t, other.Append(rfc6962.DefaultHasher.HashLeaf(entry), nil))

		root, err := tlog.TreeHash(n+1, reader)
		require.NoError(t, err)
		theirs, err := other.GetRootHash(nil)
		require.NoError(t, err)
		require.Equal(t, Head{n + 1, root}, e.Head())
		require.Equal(t, theirs, root[:])

		roots, err := reader.ReadHashes(EdgeNodes(n + 1))
		require.NoError(t, err)
		again, err := EdgeOf(n+1, roots)
		require.NoError(t, err)
		require.Equal(t, e.Head(), again.Head())
	}
	for node, want := range stored {
		leaf, place := Completed(int64(node))
		require.Equal(t, want, byLeaf[leaf][place], "node %d", node)
	}
	_, err := EdgeOf(5, nil)
	require.Error(t, err)
}
