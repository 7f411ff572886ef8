package slice

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
)

// Piece is a slice of the update of a unit, as it travels: the leaves of the payloads that the slice is decoded from, and the
// digests that show them to belong to the root that the worker committed to.
type Piece struct {
	Round  uint32         `cbor:"1,keyasint"`
	Unit   uint32         `cbor:"2,keyasint"`
	Slice  uint32         `cbor:"3,keyasint"`
	Ranges []Leaves       `cbor:"4,keyasint"` // of the plan, in order
	Cover  []canon.Digest `cbor:"5,keyasint"` // canon.Tree.Cover of their payloads in codec.Update.Tree
}

// Leaves are some leaves of one payload.
type Leaves struct {
	Bytes []byte         `cbor:"1,keyasint"` // one after the other
	Cover []canon.Digest `cbor:"2,keyasint"` // of them in codec.PayloadTree
}

// Cut returns the pieces of an update, encoded, in the order of the slices.
func (p *Plan) Cut(u *codec.Update) ([][]byte, error) {
	tree := u.Tree()
	trees := make([]*canon.Tree, len(u.Payloads))
	for i, b := range u.Payloads {
		trees[i] = codec.PayloadTree(b)
	}
	pieces := make([][]byte, p.Len())
	for k, ranges := range p.slices {
		piece := Piece{Round: u.Round, Unit: u.Unit, Slice: uint32(k)}
		for _, r := range ranges {
			at, err := p.leaves(r)
			if err != nil {
				return nil, err
			}
			var l Leaves
			if l.Cover, err = trees[r.Parameter].Cover(at); err != nil {
				return nil, err
			}
			for _, i := range at {
				l.Bytes = append(l.Bytes, u.Payloads[r.Parameter][i*tensor.LeafBytes:min((i+1)*tensor.LeafBytes, len(u.Payloads[r.Parameter]))]...)
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

// Expect is what a receiver knows about a piece before it reads it.
type Expect struct {
	Round, Unit uint32
	Slice       int
	Root        canon.Digest // of the update, committed
}

// Open reads the bytes of a piece and restores its slice of the pseudo-gradient: a tensor for each of its ranges, shaped as
// those of Base. Errors about the bytes wrap ErrPiece.
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
		if roots[i], delta[i], err = p.restore(r, piece.Ranges[i]); err != nil {
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

// restore returns the root of the payload that leaves belong to, and what they decode to.
func (p *Plan) restore(r Range, l Leaves) (canon.Digest, *tensor.Tensor, error) {
	at, err := p.leaves(r)
	if err != nil {
		return canon.Digest{}, nil, err
	}
	size := p.size(r.Parameter)
	payload := make(map[int][]byte, len(at))
	data, rest := make([][]byte, len(at)), l.Bytes
	for k, i := range at {
		n := min(tensor.LeafBytes, size-i*tensor.LeafBytes)
		if len(rest) < n {
			return canon.Digest{}, nil, fmt.Errorf("%d bytes are too few", len(l.Bytes))
		}
		data[k], rest = rest[:n], rest[n:]
		payload[i] = data[k]
	}
	if len(rest) > 0 {
		return canon.Digest{}, nil, fmt.Errorf("%d bytes are too many", len(l.Bytes))
	}
	root, err := canon.Covered(leavesOf(size), at, canon.Leaves(data), l.Cover)
	if err != nil {
		return canon.Digest{}, nil, err
	}
	spans, err := codec.Spans(p.codec, p.shapes[r.Parameter], r.Lo, r.Hi)
	if err != nil {
		return canon.Digest{}, nil, err
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
	t, err := codec.RestorePiece(p.codec, p.shapes[r.Parameter], r.Lo, r.Hi, piece)
	return root, t, err
}

// leaves lists the leaves of a payload that a range is decoded from, ascending.
func (p *Plan) leaves(r Range) ([]int, error) {
	spans, err := codec.Spans(p.codec, p.shapes[r.Parameter], r.Lo, r.Hi)
	if err != nil {
		return nil, err
	}
	var at []int
	for _, s := range spans {
		for i := s.Lo / tensor.LeafBytes; i < leavesOf(s.Hi); i++ {
			if len(at) == 0 || i > at[len(at)-1] {
				at = append(at, i)
			}
		}
	}
	return at, nil
}

func leavesOf(bytes int) int { return (bytes + tensor.LeafBytes - 1) / tensor.LeafBytes }

// size of the payload of a parameter.
func (p *Plan) size(parameter int) int {
	c, _ := codec.ByName(p.codec) // the plan has been made with it
	return codec.Size(c, p.shapes[parameter])
}

func parameters(ranges []Range) []int {
	at := make([]int, len(ranges))
	for i, r := range ranges {
		at[i] = r.Parameter
	}
	return at
}
