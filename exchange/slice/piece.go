package slice

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/update"
)

// Piece is a slice of the update of a unit, as it travels: the leaves of the payloads that the slice is decoded from,
// and the digests that show them to belong to the root that the worker committed to.
type Piece struct {
	Round  uint32             `cbor:"1,keyasint"`
	Unit   uint32             `cbor:"2,keyasint"`
	Slice  uint32             `cbor:"3,keyasint"`
	Ranges []update.LeafProof `cbor:"4,keyasint"` // of the plan, in order
	Cover  []canon.Digest     `cbor:"5,keyasint"` // canon.Tree.Cover of their payloads in update.Update.Tree
}

// Cut returns the pieces of an update, encoded, in the order of the slices.
func (p *Plan) Cut(u *update.Update) ([][]byte, error) {
	tree := u.Tree()
	trees := make([]*canon.Tree, len(u.Payloads))
	for i, b := range u.Payloads {
		trees[i] = codec.PayloadTree(b)
	}
	pieces := make([][]byte, p.Len())
	for k, ranges := range p.slices {
		piece := Piece{Round: u.Round, Unit: u.Unit, Slice: uint32(k)}
		for _, r := range ranges {
			l, err := update.LeafProofOf(p.codec, p.shapes[r.Parameter], r.Lo, r.Hi, u.Payloads[r.Parameter], trees[r.Parameter])
			if err != nil {
				return nil, err
			}
			piece.Ranges = append(piece.Ranges, l)
		}
		var err error
		if piece.Cover, err = tree.Cover(parameters(ranges)); err != nil {
			return nil, err
		}
		pieces[k] = canon.MustMarshal(piece)
	}
	return pieces, nil
}

// Expect is the data about a piece that its receiver has before it reads the piece.
type Expect struct {
	Round, Unit uint32
	Slice       int
	Root        canon.Digest // of the update, committed
}

// Open reads the bytes of a piece and restores its slice of the pseudo-gradient: a tensor for each of its ranges,
// shaped as those of Base. Errors about the bytes wrap ErrPiece.
func (p *Plan) Open(b []byte, want Expect) ([]*tensor.Tensor, error) {
	var piece Piece
	if err := canon.Unmarshal(b, &piece); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPiece, err)
	}
	ranges := p.slices[want.Slice]
	switch {
	case piece.Round != want.Round || piece.Unit != want.Unit || piece.Slice != uint32(want.Slice):
		return nil, fmt.Errorf("%w: it is slice %d of unit %d of round %d", ErrPiece, piece.Slice, piece.Unit, piece.Round)
	case len(piece.Ranges) != len(ranges):
		return nil, fmt.Errorf("%w: %d ranges, want %d", ErrPiece, len(piece.Ranges), len(ranges))
	}
	roots, delta := make([]canon.Digest, len(ranges)), make([]*tensor.Tensor, len(ranges))
	for i, r := range ranges {
		var err error
		if roots[i], delta[i], err = update.RestoreLeaves(p.codec, p.shapes[r.Parameter], r.Lo, r.Hi,
			piece.Ranges[i]); err != nil {
			return nil, fmt.Errorf("%w: range %d: %w", ErrPiece, i, err)
		}
	}
	root, err := canon.Covered(len(p.shapes), parameters(ranges), roots, piece.Cover)
	if err == nil && root != want.Root {
		err = fmt.Errorf("it is of another update than its worker committed to")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPiece, err)
	}
	return delta, nil
}

func parameters(ranges []Range) []int {
	at := make([]int, len(ranges))
	for i, r := range ranges {
		at[i] = r.Parameter
	}
	return at
}
