package referee

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

// zeroRoot is the root of a tensor of zeros. On every level of its tree all nodes are the same, but for the last.
func zeroRoot(s tensor.Shape) canon.Digest {
	n := s.Bytes()
	leaves := s.Leaves()
	node := canon.Leaf(make([]byte, tensor.LeafBytes))
	last := canon.Leaf(make([]byte, n-(leaves-1)*tensor.LeafBytes))
	for level := 1; level <= canon.Height(leaves); level++ {
		children := make([]canon.Digest, canon.Fanout)
		for i := range children {
			children[i] = node
		}
		few := canon.Width(leaves, level-1) - canon.Fanout*(canon.Width(leaves, level)-1) // of the last node
		end := append(slices.Clone(children[:few-1]), last)
		node, last = canon.Inner(level, children), canon.Inner(level, end)
	}
	return tensor.RootOf(s, canon.RootOf(leaves, last))
}
