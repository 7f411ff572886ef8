package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec/quantiser"
)

// sparseChunk is the chunk of a top-k codec that is named.
const sparseChunk = 4096

// TopKName is the name of TopK{4096, k, bits} in a work specification, with 1 <= k <= 4096 and values of 1 to 8, 16 or
// 32 bits: "topk/64/2" is what Sparse is, too.
func TopKName(k, bits int) string { return fmt.Sprintf("%s/%d/%d", Sparse, k, bits) }

// topKByName reads what TopKName writes, and nothing else.
func topKByName(name string) (Codec, bool) {
	c := TopK{Chunk: sparseChunk}
	if !strings.HasPrefix(name, Sparse+"/") || len(name) > len(TopKName(sparseChunk, 32)) {
		return nil, false
	}
	if _, err := fmt.Sscanf(name, Sparse+"/%d/%d", &c.K, &c.Bits); err != nil || name != TopKName(c.K, c.Bits) {
		return nil, false
	}
	return c, c.K <= c.Chunk && c.Check() == nil
}

// parted reports whether a payload can be made in parts of PartElements: each of them begins and ends with a chunk and
// with a byte, of the positions and of the values.
func (c TopK) parted() bool {
	return PartElements%c.Chunk == 0 && c.positionBits(PartElements)%8 == 0 && c.kept(PartElements)*c.Bits%8 == 0
}

// passes is how many passes over the elements come before the one that writes the values.
func (c TopK) passes() int {
	if c.quantised() {
		return quantiser.Passes
	}
	return 1
}

func (c TopK) quantised() bool { return c.Bits > 1 && c.Bits <= 8 }

// sparseBytes is how many bytes of the payload are written before a part.
func (m PartialEncoder) sparseBytes(c TopK, part int) int {
	elements := func(parts int) int { return min(parts*m.each, m.shape.Elements()) }
	n := c.positionSize(elements(part))
	if last := part - m.passes*m.pass(); m.passes > 0 && last > 0 {
		n += valueSize(c.kept(elements(last)), c.Bits)
	}
	return n
}

// sparse makes a part of a payload of TopK. The state is the statistics of the values so far, and what is written of a
// leaf.
func (m PartialEncoder) sparse(c TopK, part int, state []byte, x []float32) (written, next []byte, err error) {
	pass := part / m.pass()
	total, levels := c.kept(m.shape.Elements()), 1<<min(c.Bits, 8)
	q, book := quantiser.New(total, levels), make([]float32, levels)
	tail := m.sparseBytes(c, part) % tensor.LeafBytes
	if len(state) < tail {
		return nil, nil, fmt.Errorf("%w: %d bytes, with %d of a leaf", ErrState, len(state), tail)
	}
	statistics := state[:len(state)-tail]
	var sum float64
	switch {
	case c.quantised():
		err = q.Load(pass, part == 0, statistics, book)
	case c.Bits == 1:
		sum, err = loadSum(part == 0, statistics)
	case len(statistics) > 0:
		err = fmt.Errorf("%w: %d bytes of statistics, wanted none", ErrState, len(statistics))
	}
	if err != nil {
		return nil, nil, err
	}
	written = append(written, state[len(statistics):]...)
	positions := make([]byte, c.positionSize(len(x)))
	kept := c.choose(positions, x)
	if pass == 0 {
		written = append(written, positions...)
	}
	switch {
	case pass < m.passes && c.quantised():
		next = q.Pass(pass, (part+1)%m.pass() == 0, kept, book)
	case pass < m.passes && c.Bits == 1:
		next = binary.LittleEndian.AppendUint64(nil, math.Float64bits(addMagnitudes(sum, kept)))
	case pass == m.passes && c.Bits == 1:
		values := make([]byte, valueSize(len(kept), 1))
		putSigns(values, sum, total, kept)
		if part > m.passes*m.pass() { // the scale comes before the first
			values = values[valueSize(0, 1):]
		}
		written, next = append(written, values...), statistics
	case pass == m.passes && c.quantised():
		values := make([]byte, valueSize(len(kept), c.Bits))
		codes := make([]byte, len(kept))
		q.Codes(codes, kept)
		putFloats(values, book)
		for i, code := range codes {
			putBits(values[4*len(book):], i*c.Bits, uint32(code), c.Bits)
		}
		if part > m.passes*m.pass() { // the book comes before the first
			values = values[4*len(book):]
		}
		written, next = append(written, values...), statistics
	case pass == m.passes:
		values := make([]byte, valueSize(len(kept), c.Bits))
		encodeValues(values, kept, c.Bits)
		written = append(written, values...)
	}
	return written, next, nil
}

// loadSum reads what there is of the sum of magnitudes between two parts.
func loadSum(first bool, state []byte) (float64, error) {
	want := 8
	if first {
		want = 0
	}
	if len(state) != want {
		return 0, fmt.Errorf("%w: %d bytes of a sum, wanted %d", ErrState, len(state), want)
	}
	if first {
		return 0, nil
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(state)), nil
}
