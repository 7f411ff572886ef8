package codec

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
)

// Alignment is of how many elements a piece of a tensor must be a multiple, counted from its start, for the piece to be
// decoded without the rest of the payload: all of them if the codec takes them together, or they are few.
func Alignment(name string, s tensor.Shape) (int, error) {
	c, err := byName(name)
	if err != nil {
		return 0, err
	}
	if s.Elements() > PartElements {
		switch c := effective(c, s).(type) {
		case codebook, plain, half, bfloat16, e3m0, sign, nothing:
			return PartElements, nil
		case RandomK:
			if c.parted() {
				return PartElements, nil
			}
		case TopK:
			if PartElements%c.Chunk == 0 {
				return PartElements, nil
			}
		}
	}
	return s.Elements(), nil
}

// tile is how many elements of a tensor are decoded by themselves if every block of the codec is: a multiple of all
// blocks.
const tile = 4096

// Tile is Grain, but smaller where blocks are decoded by themselves: of how many elements a piece must be a multiple so
// that it can be decoded from the leaves of the payload that hold it.
func Tile(name string, s tensor.Shape) (int, error) {
	c, err := byName(name)
	if err != nil {
		return 0, err
	}
	switch effective(c, s).(type) {
	case codebook, plain, half, bfloat16, e3m0, sign, nothing:
		return min(tile, s.Elements()), nil
	}
	return Alignment(name, s)
}

// Range is some bytes of a payload, from Lo to before Hi.
type Range struct{ Lo, Hi int }

// Spans returns which bytes of the payload of a tensor its elements from lo to before hi are decoded from. lo is a
// multiple of the Tile, and hi too or the end. Put one after the other they are the payload of the piece as a tensor of
// its own.
func Spans(name string, s tensor.Shape, lo, hi int) ([]Range, error) {
	c, err := sliced(name, s, lo, hi)
	if err != nil {
		return nil, err
	}
	if lo == 0 && hi == s.Elements() {
		return []Range{{0, c.size(s)}}, nil
	}
	switch c := c.(type) {
	case codebook:
		return []Range{{0, 4 * levels}, {4*levels + lo, 4*levels + hi}}, nil
	case TopK:
		head, values := valueSize(0, c.Bits), c.positionSize(s.Elements())
		return []Range{
			{c.positionSize(lo), c.positionSize(hi)}, {values, values + head},
			{values + valueSize(c.kept(lo), c.Bits), values + valueSize(c.kept(hi), c.Bits)},
		}, nil
	}
	size := func(n int) int { return c.size(tensor.Make(tensor.Float32, n)) }
	return []Range{{size(lo), size(hi)}}, nil
}

// RestorePiece decodes the elements of a tensor from lo to before hi from the bytes of their Spans, one after the
// other.
func RestorePiece(name string, s tensor.Shape, lo, hi int, payload []byte) (*tensor.Tensor, error) {
	c, err := sliced(name, s, lo, hi)
	if err != nil {
		return nil, err
	}
	piece := tensor.Make(tensor.Float32, hi-lo)
	if lo == 0 && hi == s.Elements() {
		piece = s
	}
	if n := c.size(piece); len(payload) != n {
		return nil, fmt.Errorf("%w: %d bytes for elements %d to %d of %s, want %d", ErrPayload, len(payload), lo, hi, s, n)
	}
	t := tensor.New(piece)
	return t, errors.Join(c.decode(t, payload), finite(t.F32()))
}

// sliced returns the codec of a tensor of which a piece may be decoded by itself.
func sliced(name string, s tensor.Shape, lo, hi int) (Codec, error) {
	each, err := Tile(name, s)
	if err != nil {
		return nil, err
	}
	if n := s.Elements(); lo < 0 || lo >= hi || hi > n || lo%each != 0 || hi%each != 0 && hi != n {
		return nil, fmt.Errorf("codec: no piece of %s is elements %d to %d, pieces are multiples of %d", s, lo, hi, each)
	}
	c, err := byName(name)
	return effective(c, s), err
}
