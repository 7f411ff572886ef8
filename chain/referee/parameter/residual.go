package parameter

import (
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
)

// residualEach is how many elements of the residual are made together: those of a piece of the payload.
func (x Sent) residualEach() int {
	each, err := codec.Alignment(x.Codec, x.Shape)
	if err != nil {
		return x.Shape.Elements()
	}
	return each
}

// ResidualParts is in how many parts the residual of a parameter is made.
func (x Sent) ResidualParts() uint64 {
	each := x.residualEach()
	return uint64((x.Shape.Elements() + each - 1) / each)
}

// ResidualRange returns the elements of the residual, lo up to hi, that are made in a part.
func (x Sent) ResidualRange(part uint64) (lo, hi int) {
	each := x.residualEach()
	return int(part) * each, min((int(part)+1)*each, x.Shape.Elements())
}

// ResidualFrontier is the frontier of the tree over the residual of a parameter before a part.
func (x Sent) ResidualFrontier(tree *canon.Tree, part uint64) []canon.Digest {
	lo, _ := x.ResidualRange(part)
	return tree.Frontier(lo * x.Shape.DType.Size() / tensor.LeafBytes)
}
