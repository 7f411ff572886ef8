package tensor

import (
	"slices"

	"github.com/starling-network/starling/canon"
)

// LeafBytes is the size of a leaf of a tensor's tree; the last leaf may be shorter.
const LeafBytes = 4096

// Tree returns the Merkle tree over the bytes of the tensor, LeafBytes a leaf, with every NaN taken as CanonicalNaN.
func (t *Tensor) Tree() *canon.Tree {
	leaves := make([]canon.Digest, 0, (len(t.mem)+LeafBytes-1)/LeafBytes)
	for leaf := range slices.Chunk(t.mem, LeafBytes) {
		leaves = append(leaves, canon.Leaf(t.canonicalLeaf(leaf)))
	}
	return canon.NewTree(leaves)
}

// Leaf returns the bytes of leaf i of Tree as they are hashed. They may be the memory of the tensor: do not write.
func (t *Tensor) Leaf(i int) []byte {
	return t.canonicalLeaf(t.mem[i*LeafBytes : min((i+1)*LeafBytes, len(t.mem))])
}

// canonicalLeaf returns leaf itself, or a canonical copy if it holds a NaN.
func (t *Tensor) canonicalLeaf(leaf []byte) []byte {
	if t.Shape.DType != Float32 || !slices.ContainsFunc(As[float32](leaf), isNaN) {
		return leaf
	}
	c := Alloc(len(leaf))
	copy(c, leaf)
	canonicalize(As[float32](c))
	return c
}

func isNaN(x float32) bool { return x != x }

// Root binds the shape and every element of the tensor. Tensors that differ only in the bits of NaNs have one root.
func (t *Tensor) Root() canon.Digest { return RootOf(t.Shape, t.Tree().Root()) }

// RootOf is the root of a tensor whose Tree has the given root.
func RootOf(s Shape, tree canon.Digest) canon.Digest {
	return canon.Sum("starling/tensor/1", canon.MustMarshal(s), tree[:])
}
