// Package merkle is the tree over the log: every entry is a leaf, in the order of the log, hashed as RFC 6962 section 2.1
// says. Whoever keeps the root of one moment can tell later that nothing before it was changed, dropped or reordered.
package merkle

import (
	"context"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// Hash is the SHA-256 of a leaf or of an inner node.
type Hash = tlog.Hash

// Leaf hashes the bytes of an entry.
func Leaf(entry []byte) Hash { return tlog.RecordHash(entry) }

// Head is a tree as a whole: how many leaves it has, and the hash that covers all of them.
type Head struct {
	Size int64
	Root Hash
}

// Log is a log of which any hash can be read.
type Log interface {
	// Head gives the tree as it is now.
	Head(ctx context.Context) (Head, error)
	// Hashes gives the hashes of nodes, which tlog.StoredHashIndex numbers. Once the tree has grown over a node, its hash
	// never changes.
	Hashes(ctx context.Context, nodes []int64) ([]Hash, error)
}

// Edge is what a tree needs in order to grow: the roots of its complete subtrees, the largest first. The zero value is the
// empty tree.
type Edge struct {
	size  int64
	roots []Hash
}

// Size is the number of leaves.
func (e *Edge) Size() int64 { return e.size }

// Append adds a leaf and appends the hashes that it completes to completed: its own, then that of each subtree of which it
// is the last leaf, from the bottom up.
func (e *Edge) Append(leaf Hash, completed []Hash) []Hash {
	completed = append(completed, leaf)
	h := leaf
	for left := e.size; left&1 == 1; left >>= 1 {
		last := len(e.roots) - 1
		h = tlog.NodeHash(e.roots[last], h)
		e.roots = e.roots[:last]
		completed = append(completed, h)
	}
	e.roots = append(e.roots, h)
	e.size++
	return completed
}

// Head gives the tree that ends here. The root of an empty one is the hash of nothing (RFC 6962 section 2.1).
func (e *Edge) Head() Head {
	if e.size == 0 {
		root, _ := tlog.TreeHash(0, nil) // reads nothing
		return Head{Root: root}
	}
	h := e.roots[len(e.roots)-1]
	for i := len(e.roots) - 2; i >= 0; i-- {
		h = tlog.NodeHash(e.roots[i], h)
	}
	return Head{e.size, h}
}

// EdgeNodes numbers the nodes that make up the edge of a tree of a size, the largest first.
func EdgeNodes(size int64) []int64 {
	var nodes []int64
	begin := int64(0)
	for level := 62; level >= 0; level-- {
		if size>>level&1 == 1 {
			nodes = append(nodes, tlog.StoredHashIndex(level, begin>>level))
			begin += 1 << level
		}
	}
	return nodes
}

// EdgeOf makes the edge of a tree from the hashes of its EdgeNodes.
func EdgeOf(size int64, roots []Hash) (Edge, error) {
	if size < 0 || len(roots) != bits.OnesCount64(uint64(size)) {
		return Edge{}, fmt.Errorf("a tree of %d leaves has no edge of %d hashes", size, len(roots))
	}
	return Edge{size, append([]Hash{}, roots...)}, nil
}

// Completed says which leaf completes a node, and at which place of what Append gives for that leaf its hash is.
func Completed(node int64) (leaf int64, place int) {
	level, n := tlog.SplitStoredHashIndex(node)
	return (n+1)<<level - 1, level
}

// LeafNode numbers the node of a leaf.
func LeafNode(leaf int64) int64 { return tlog.StoredHashIndex(0, leaf) }
