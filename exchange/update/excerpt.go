package update

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
)

// LeafProof is the leaves of a payload that some elements of its tensor are decoded from, with a proof that they
// belong to it.
type LeafProof struct {
	Bytes []byte         `cbor:"1,keyasint"` // of the leaves, one after the other
	Cover []canon.Digest `cbor:"2,keyasint"` // of them in codec.PayloadTree
}

// LeafProofOf returns the leaf proof for elements lo to before hi, as codec.Spans takes them, of a tensor with this
// payload and its codec.PayloadTree.
func LeafProofOf(name string, s tensor.Shape, lo, hi int, payload []byte, tree *canon.Tree) (x LeafProof, err error) {
	_, at, err := leavesOf(name, s, lo, hi)
	if err != nil {
		return x, err
	}
	for _, i := range at {
		x.Bytes = append(x.Bytes, payload[i*tensor.LeafBytes:min((i+1)*tensor.LeafBytes, len(payload))]...)
	}
	x.Cover, err = tree.Cover(at)
	return x, err
}

// RestoreLeaves decodes the elements of a tensor from lo to before hi, and returns the root of the payload that the
// leaf proof belongs to.
func RestoreLeaves(name string, s tensor.Shape, lo, hi int, x LeafProof) (canon.Digest, *tensor.Tensor, error) {
	fail := func(err error) (canon.Digest, *tensor.Tensor, error) { return canon.Digest{}, nil, err }
	spans, at, err := leavesOf(name, s, lo, hi)
	if err != nil {
		return fail(err)
	}
	c, _ := codec.ByName(name)
	size := codec.Size(c, s)
	payload := make(map[int][]byte, len(at))
	data, rest := make([][]byte, len(at)), x.Bytes
	for k, i := range at {
		n := min(tensor.LeafBytes, size-i*tensor.LeafBytes)
		if len(rest) < n {
			return fail(fmt.Errorf("%w: %d bytes are too few", codec.ErrPayload, len(x.Bytes)))
		}
		data[k], rest = rest[:n], rest[n:]
		payload[i] = data[k]
	}
	if len(rest) > 0 {
		return fail(fmt.Errorf("%w: %d bytes are too many", codec.ErrPayload, len(x.Bytes)))
	}
	root := codec.PayloadTree(nil).Root()
	switch {
	case size > 0:
		root, err = canon.Covered(leafCount(size), at, canon.Leaves(data), x.Cover)
	case len(x.Cover) > 0:
		err = fmt.Errorf("%w: %d digests about no bytes", codec.ErrPayload, len(x.Cover))
	}
	if err != nil {
		return fail(err)
	}
	var piece []byte
	for _, s := range spans {
		for at := s.Lo; at < s.Hi; {
			leaf := payload[at/tensor.LeafBytes]
			from := at % tensor.LeafBytes
			to := min(len(leaf), from+s.Hi-at)
			piece = append(piece, leaf[from:to]...)
			at += to - from
		}
	}
	t, err := codec.RestorePiece(name, s, lo, hi, piece)
	return root, t, err
}

// leavesOf lists the leaves of a payload that elements are decoded from, ascending, and which bytes.
func leavesOf(name string, s tensor.Shape, lo, hi int) (spans []codec.Range, at []int, err error) {
	if spans, err = codec.Spans(name, s, lo, hi); err != nil {
		return nil, nil, err
	}
	for _, s := range spans {
		for i := s.Lo / tensor.LeafBytes; i < leafCount(s.Hi); i++ {
			if len(at) == 0 || i > at[len(at)-1] {
				at = append(at, i)
			}
		}
	}
	return spans, at, nil
}

func leafCount(bytes int) int { return (bytes + tensor.LeafBytes - 1) / tensor.LeafBytes }
