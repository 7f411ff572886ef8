package referee

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

// excerpt is some leaves of a tensor, with what shows that they are in its tree. Which leaves they are is known beside.
type excerpt struct {
	Bytes []byte         `cbor:"1,keyasint"` // of the leaves, one after the other
	Cover []canon.Digest `cbor:"2,keyasint"`
}

// excerptOf brings some leaves of a tensor, ascending, and what can be read of it then.
func excerptOf(t *tensor.Tensor, leaves []int) (x excerpt, part *tensor.Partial, err error) {
	part = tensor.NewPartial(t.Shape)
	for _, l := range leaves {
		leaf := t.Leaf(l)
		part.Set(l, leaf)
		x.Bytes = append(x.Bytes, leaf...)
	}
	x.Cover, err = t.Tree().Cover(leaves)
	return x, part, err
}

// read returns what can be read of a tensor of this shape that has these leaves, and the root that it then has.
func (x excerpt) read(shape tensor.Shape, leaves []int) (*tensor.Partial, canon.Digest, error) {
	part, rest := tensor.NewPartial(shape), x.Bytes
	bytes := make([][]byte, len(leaves))
	for i, l := range leaves {
		from, to := shape.LeafRange(l)
		n := (to - from) * shape.DType.Size()
		if len(rest) < n {
			return nil, canon.Digest{}, wrong("%d bytes of a tensor are too few", len(x.Bytes))
		}
		bytes[i], rest = rest[:n], rest[n:]
		part.Set(l, bytes[i])
	}
	if len(rest) > 0 {
		return nil, canon.Digest{}, wrong("%d bytes of a tensor are too many", len(x.Bytes))
	}
	tree, err := canon.Covered(shape.Leaves(), leaves, canon.Leaves(bytes), x.Cover)
	if err != nil {
		return nil, canon.Digest{}, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return part, tensor.RootOf(shape, tree), nil
}
