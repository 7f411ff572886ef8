package tensor

import (
	"runtime"
	"slices"

	"github.com/starling-network/starling/canon"
)

// LeafBytes is the size of a leaf of a tensor's tree; the last leaf may be shorter.
const LeafBytes = 4096

// Tree returns the Merkle tree over the bytes of the tensor, LeafBytes a leaf, with every NaN taken as CanonicalNaN.
func (t *Tensor) Tree() *canon.Tree {
	leaves := slices.AppendSeq(make([][]byte, 0, (len(t.mem)+LeafBytes-1)/LeafBytes), t.leaves)
	digests := canon.Leaves(leaves)
	runtime.KeepAlive(t)
	return canon.NewTree(digests)
}

// leaves gives the leaves of Tree one after the other, as they are hashed.
func (t *Tensor) leaves(yield func([]byte) bool) {
	for leaf := range slices.Chunk(t.mem, LeafBytes) {
		if !yield(t.canonicalLeaf(leaf)) {
			return
		}
	}
}

// Leaf returns the bytes of leaf i of Tree as they are hashed. They may be the memory of the tensor: do not write.
func (t *Tensor) Leaf(i int) []byte {
	return t.canonicalLeaf(t.mem[i*LeafBytes : min((i+1)*LeafBytes, len(t.mem))])
}

// canonicalLeaf returns leaf itself, or a canonical copy if it holds a NaN.
func (t *Tensor) canonicalLeaf(leaf []byte) []byte {
	if t.Shape.DType != Float32 || !hasNaN(leaf) {
		return leaf
	}
	c := Alloc(len(leaf))
	copy(c, leaf)
	canonicalize(As[float32](c))
	return c
}

// hasNaN reports whether one of the float32 in b is a NaN, looking at two at a time: without its sign, and with this
// offset added, a NaN alone has the top bit set.
func hasNaN(b []byte) bool {
	const (
		signless = 0x7fffffff_7fffffff
		offset   = 0x007fffff_007fffff
		tops     = 0x80000000_80000000
	)
	whole := len(b) &^ 7
	var found uint64
	for _, pair := range As[int64](b[:whole]) {
		found |= uint64(pair)&signless + offset
	}
	for _, last := range As[float32](b[whole:]) {
		if last != last {
			return true
		}
	}
	return found&tops != 0
}

// Root binds the shape and every element of the tensor. Tensors that differ only in the bits of NaNs have one root.
func (t *Tensor) Root() canon.Digest {
	root := canon.RootOfLeaves(t.leaves)
	runtime.KeepAlive(t)
	return RootOf(t.Shape, root)
}

// RootOf is the root of a tensor whose Tree has the given root.
func RootOf(s Shape, tree canon.Digest) canon.Digest {
	return canon.Sum("starling/tensor/1", canon.MustMarshal(s), tree[:])
}
