package evidence

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

// LeafProof is some leaves of a tensor, and the nodes that show them to be in its tree. It does not say which leaves
// they are: the reader knows.
type LeafProof struct {
	Bytes []byte         `cbor:"1,keyasint"` // of the leaves, one after the other
	Cover []canon.Digest `cbor:"2,keyasint"`
}

// Show returns the proof of some leaves of a tensor, ascending, and the tensor as far as these leaves show it.
func Show(t *tensor.Tensor, leaves []int) (x LeafProof, part *tensor.Partial, err error) {
	part = tensor.NewPartial(t.Shape)
	for _, l := range leaves {
		leaf := t.Leaf(l)
		part.Set(l, leaf)
		x.Bytes = append(x.Bytes, leaf...)
	}
	x.Cover, err = t.Tree().Cover(leaves)
	return x, part, err
}

// Read returns a tensor of this shape as far as these leaves show it, and the root that it then has. The error wraps
// ErrPayload.
func (x LeafProof) Read(shape tensor.Shape, leaves []int) (*tensor.Partial, canon.Digest, error) {
	part, rest := tensor.NewPartial(shape), x.Bytes
	bytes := make([][]byte, len(leaves))
	for i, l := range leaves {
		from, to := shape.LeafRange(l)
		n := (to - from) * shape.DType.Size()
		if len(rest) < n {
			return nil, canon.Digest{}, Wrong("%d bytes of a tensor are too few", len(x.Bytes))
		}
		bytes[i], rest = rest[:n], rest[n:]
		part.Set(l, bytes[i])
	}
	if len(rest) > 0 {
		return nil, canon.Digest{}, Wrong("%d bytes of a tensor are too many", len(x.Bytes))
	}
	tree, err := canon.Covered(shape.Leaves(), leaves, canon.Leaves(bytes), x.Cover)
	if err != nil {
		return nil, canon.Digest{}, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return part, tensor.RootOf(shape, tree), nil
}

// LeavesOf lists the leaves of a tensor that hold elements lo up to hi.
func LeavesOf(s tensor.Shape, lo, hi int) (out []int) {
	each := tensor.LeafBytes / s.DType.Size()
	for l := lo / each; l*each < hi; l++ {
		out = append(out, l)
	}
	return out
}

// Elements reads elements lo up to hi of a float32 tensor with a root from the proof of their leaves. The error wraps
// ErrPayload.
func Elements(shape tensor.Shape, x LeafProof, lo, hi int, root canon.Digest) ([]float32, error) {
	if lo == hi {
		return nil, nil
	}
	part, has, err := x.Read(shape, LeavesOf(shape, lo, hi))
	if err != nil {
		return nil, err
	}
	if has != root {
		return nil, Wrong("these are not leaves of the tensor with root %s", root.Short())
	}
	t := tensor.New(tensor.Make(tensor.Float32, hi-lo))
	part.Read(t.Bytes(), lo) // the leaves are those of these elements
	return t.F32(), nil
}
