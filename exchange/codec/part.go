package codec

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec/quantiser"
)

// ErrState is returned for a state between two parts of a payload that is not one.
var ErrState = quantiser.ErrState

// PartElements is how many elements of a tensor a part of its payload is made from, at most, if it is made in parts.
const PartElements = 1 << 16

// PayloadTree is the tree over the leaves of a payload, tensor.LeafBytes each, the last maybe shorter. A commitment to
// an update binds its root.
func PayloadTree(payload []byte) *canon.Tree {
	return canon.NewTree(canon.Leaves(slices.Collect(slices.Chunk(payload, tensor.LeafBytes))))
}

// PartialEncoder is how the payload of a tensor comes out of parts of its elements, one after the other. Between two
// parts there is a state, which is as fixed as the payload.
type PartialEncoder struct {
	codec  Codec
	shape  tensor.Shape
	passes int // over the elements, before the one that writes
	head   int // bytes that are written before those of the first element
	each   int // elements of a part
}

// MakingOf returns how the payload of a tensor is made by a known codec: in one part if the codec takes all elements
// together, or they are few.
func MakingOf(name string, s tensor.Shape) (PartialEncoder, error) {
	c, err := byName(name)
	if err != nil {
		return PartialEncoder{}, err
	}
	m := PartialEncoder{codec: effective(c, s), shape: s, each: s.Elements()}
	switch c := m.codec.(type) {
	case TopK: // in the first pass the positions, in the last the values
		if c.parted() {
			m.passes, m.each = c.passes(), PartElements
		}
	case codebook:
		m.passes, m.head, m.each = quantiser.Passes, 4*levels, PartElements
	case plain, half, bfloat16, e3m0, sign, nothing: // every block on its own, of a length that divides PartElements
		m.each = PartElements
	case RandomK:
		if c.parted() {
			m.each = PartElements
		}
	}
	if s.Elements() <= PartElements {
		m.passes, m.head, m.each = 0, 0, s.Elements()
	}
	return m, nil
}

// pass is the number of parts of a pass.
func (m PartialEncoder) pass() int { return (m.shape.Elements() + m.each - 1) / m.each }

// Parts is the number of parts.
func (m PartialEncoder) Parts() int {
	return m.passes*m.pass() + (m.shape.Elements()+m.head+m.each-1)/m.each
}

// Elements returns which elements of the tensor a part is made from.
func (m PartialEncoder) Elements(part int) (lo, hi int) {
	skip := 0
	if part < m.passes*m.pass() {
		part %= m.pass()
	} else {
		part, skip = part-m.passes*m.pass(), m.head
	}
	n := m.shape.Elements()
	return min(max(part*m.each-skip, 0), n), min((part+1)*m.each-skip, n)
}

// Leaves is how many leaves of the payload are done before a part.
func (m PartialEncoder) Leaves(part int) int {
	if c, ok := m.codec.(TopK); ok {
		return m.sparseBytes(c, part) / tensor.LeafBytes
	}
	written := part - m.passes*m.pass()
	switch {
	case written <= 0:
		return 0
	case m.head > 0:
		return written * m.each / tensor.LeafBytes
	}
	return m.codec.size(tensor.Make(tensor.Float32, written*m.each)) / tensor.LeafBytes
}

// Make makes a part from its elements and the state before it, which is empty before the first, and returns the leaves
// of the payload that it completes and the state after it. Errors are ErrState, or those of Compress.
func (m PartialEncoder) Make(part int, state []byte, x []float32) (leaves [][]byte, next []byte, err error) {
	if err := finite(x); err != nil {
		return nil, nil, err
	}
	last := part+1 == m.Parts()
	var written []byte
	c, sparse := m.codec.(TopK)
	switch {
	case sparse && m.passes > 0:
		written, next, err = m.sparse(c, part, state, x)
	case m.passes > 0:
		written, next, err = m.quantise(part, state, x)
	default:
		written, err = m.write(part, state, x)
	}
	if err != nil {
		return nil, nil, err
	}
	for len(written) >= tensor.LeafBytes {
		leaves, written = append(leaves, written[:tensor.LeafBytes]), written[tensor.LeafBytes:]
	}
	switch {
	case last && len(written) > 0:
		return append(leaves, written), nil, nil
	case last:
		return leaves, nil, nil
	}
	return leaves, append(next, written...), nil
}

// write encodes blocks of their own. The state is what is written of a leaf.
func (m PartialEncoder) write(part int, state []byte, x []float32) ([]byte, error) {
	shape := m.shape
	if m.each < shape.Elements() {
		shape = tensor.Make(tensor.Float32, len(x))
		before := m.codec.size(tensor.Make(tensor.Float32, part*m.each))
		if len(state) != before%tensor.LeafBytes {
			return nil, fmt.Errorf("%w: %d bytes of a leaf, wanted %d", ErrState, len(state), before%tensor.LeafBytes)
		}
	} else if len(state) > 0 {
		return nil, fmt.Errorf("%w: %d bytes before the first part", ErrState, len(state))
	}
	b := make([]byte, m.codec.size(shape))
	if err := m.codec.encode(b, tensor.FromF32(x, shape.Dims...)); err != nil {
		return nil, err
	}
	return append(slices.Clone(state), b...), nil
}

// quantise makes a part of a payload with a codebook. The state is the statistics so far.
func (m PartialEncoder) quantise(part int, state []byte, x []float32) (written, next []byte, err error) {
	pass := min(part/m.pass(), quantiser.Passes)
	q := quantiser.New(m.shape.Elements(), levels)
	book := make([]float32, levels)
	if err := q.Load(pass, part == 0, state, book); err != nil {
		return nil, nil, err
	}
	if pass < quantiser.Passes {
		return nil, q.Pass(pass, (part+1)%m.pass() == 0, x, book), nil
	}
	if part == m.passes*m.pass() {
		written = make([]byte, 4*levels)
		putFloats(written, book)
	}
	codes := make([]byte, len(x))
	q.Codes(codes, x)
	return append(written, codes...), state, nil
}
