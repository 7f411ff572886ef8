package codec

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/tensor"
)

// TopK keeps the K elements of largest magnitude of every Chunk consecutive ones (SparseLoCo, Sarfi et al. 2025: 64
// of 4096 in 2 bits) and decodes the others as zeros. Of equal magnitudes those that come first are kept.
// A chunk of its own for every few rows keeps rows that seldom move, such as rare tokens, from starving.
//
// The payload is the places of every chunk; then the values.
type TopK struct {
	Chunk int // elements, 1 to 65536; the last chunk may be shorter
	K     int // kept of each chunk, at least 1; of a shorter one the same share, rounded up
	Bits  int // of a value: 1 to 8, 16 or 32
}

// Check implements Codec.
func (c TopK) Check() error {
	if c.Chunk < 1 || c.Chunk > 1<<16 || c.K < 1 || !knownWidth(c.Bits) {
		return fmt.Errorf("codec: no top-k keeps %d of %d elements in %d bits", c.K, c.Chunk, c.Bits)
	}
	return nil
}

// of returns how many are kept of a chunk of n elements.
func (c TopK) of(n int) int { return (n*min(c.K, c.Chunk) + c.Chunk - 1) / c.Chunk }

// kept returns how many are kept of n elements from the start of a chunk on.
func (c TopK) kept(n int) int { return n/c.Chunk*c.of(c.Chunk) + c.of(n%c.Chunk) }

// places is how the positions in a chunk of n elements are written.
func (c TopK) places(n int) places { return placesOf(n, c.of(n)) }

// positionBits is the size of the places of n elements from the start of a chunk on.
func (c TopK) positionBits(n int) int {
	return n/c.Chunk*c.places(c.Chunk).bits() + c.places(n%c.Chunk).bits()
}

// positionSize is positionBits in bytes.
func (c TopK) positionSize(n int) int { return bytesOf(c.positionBits(n), 1) }

func (c TopK) size(s tensor.Shape) int { return c.sizeOf(s.Elements()) }

func (c TopK) sizeOf(n int) int { return c.positionSize(n) + valueSize(c.kept(n), c.Bits) }

func (c TopK) encode(b []byte, x *tensor.Tensor) error {
	c.pack(b, x.F32())
	return nil
}

func (c TopK) decode(x *tensor.Tensor, b []byte) error { return c.unpack(x.F32(), b) }

// pack fills b, sizeOf zero bytes.
func (c TopK) pack(b []byte, x []float32) {
	kept := c.choose(b, x)
	encodeValues(b[c.positionSize(len(x)):], kept, c.Bits)
}

// choose fills b, zero bytes, with the positions of the kept elements of x, and returns these elements.
func (c TopK) choose(b []byte, x []float32) []float32 {
	kept := make([]float32, 0, c.kept(len(x)))
	at := 0
	for len(x) > 0 {
		chunk := x[:min(c.Chunk, len(x))]
		x = x[len(chunk):]
		p := c.places(len(chunk))
		threshold, ties := kth(chunk, p.k)
		chosen := 0
		for i, v := range chunk {
			m := magnitude(v)
			if m < threshold || m == threshold && ties == 0 {
				continue
			}
			if m == threshold {
				ties--
			}
			p.put(b, at, chosen, i)
			kept = append(kept, v)
			chosen++
		}
		at += p.bits()
	}
	return kept
}

// unpack fills x, zeros.
func (c TopK) unpack(x []float32, b []byte) error {
	at, kept := 0, make([]float32, c.kept(len(x)))
	positions := b[:c.positionSize(len(x))]
	if err := decodeValues(kept, b[len(positions):], c.Bits); err != nil {
		return err
	}
	for len(x) > 0 {
		chunk := x[:min(c.Chunk, len(x))]
		x = x[len(chunk):]
		p := c.places(len(chunk))
		if err := p.get(positions, at, func(i int) { chunk[i], kept = kept[0], kept[1:] }); err != nil {
			return err
		}
		at += p.bits()
	}
	return padded(positions, at)
}

// magnitude orders finite numbers by their absolute value.
func magnitude(v float32) uint32 { return math.Float32bits(v) &^ (1 << 31) }

// kth returns the k-th largest magnitude of x, and how many elements of that magnitude are among the k largest. It
// takes the same time for any x: four passes, each of which finds one more byte of the answer.
func kth(x []float32, k int) (threshold uint32, ties int) {
	var mask uint32
	for shift := 24; shift >= 0; shift -= 8 {
		var count [256]int
		for _, v := range x {
			if m := magnitude(v); m&mask == threshold {
				count[m>>shift&255]++
			}
		}
		digit := 255
		for ; count[digit] < k; digit-- {
			k -= count[digit]
		}
		threshold |= uint32(digit) << shift
		mask |= 255 << shift
	}
	return threshold, k
}
