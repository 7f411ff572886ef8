package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

const block4 = 256 // elements that share a scale

// e3m0 is E3M0, the 4-bit format of Streaming DiLoCo (Douillard et al. 2025): a sign and three bits of
// exponent. The paper leaves the scale open; here 256 elements share one, the largest magnitude among them as a
// bfloat16 s, and a code is 0 for zero or 7-k for s * 2^-k, k from 0 to 6, the nearest of these, plus 8 if negative.
// A tie goes to the larger magnitude.
type e3m0 struct{ fixed }

func (e3m0) size(s tensor.Shape) int {
	n := s.Elements()
	return n/block4*(2+block4/2) + (n%block4+1)/2 + 2*min(1, n%block4)
}

func (e3m0) encode(b []byte, x *tensor.Tensor) error {
	for y := x.F32(); len(y) > 0; {
		n := min(block4, len(y))
		encodeE3M0(b, y[:n])
		b, y = b[2+(n+1)/2:], y[n:]
	}
	return nil
}

func encodeE3M0(b []byte, x []float32) {
	var largest uint32
	for _, v := range x {
		largest = max(largest, math.Float32bits(v)&^(1<<31))
	}
	h := toBrain(math.Float32frombits(largest))
	binary.LittleEndian.PutUint16(b, h)
	s := kernel.FromBFloat16(h)
	if s == 0 {
		return
	}
	for i, v := range x {
		u := math.Float32bits(v)
		q := math.Float32bits(math.Float32frombits(u&^(1<<31)) / s)
		if q < 0x3c000000 { // 2^-7, half of the smallest magnitude
			continue
		}
		// Half of a mantissa more carries into the exponent from 1.5 on, which is half-way to the next power of two.
		code := min(max((q+0x400000)>>23, 121), 127) - 120 | u>>31<<3
		b[2+i/2] |= byte(code << (i % 2 * 4))
	}
}

func (e3m0) decode(x *tensor.Tensor, b []byte) error {
	for y := x.F32(); len(y) > 0; {
		n := min(block4, len(y))
		if err := decodeE3M0(y[:n], b); err != nil {
			return err
		}
		b, y = b[2+(n+1)/2:], y[n:]
	}
	return nil
}

func decodeE3M0(x []float32, b []byte) error {
	h := binary.LittleEndian.Uint16(b)
	if h >= 0x7f80 {
		return fmt.Errorf("%w: a scale is %v", ErrPayload, kernel.FromBFloat16(h))
	}
	var values [16]float32
	for c, v := 7, kernel.FromBFloat16(h); c > 0; c, v = c-1, v*0.5 {
		values[c], values[c+8] = v, -v
	}
	if len(x)%2 == 1 && b[2+len(x)/2]>>4 != 0 {
		return fmt.Errorf("%w: bits after the last element", ErrPayload)
	}
	for i := range x {
		c := b[2+i/2] >> (i % 2 * 4) & 15
		if c == 8 {
			return fmt.Errorf("%w: a negative zero", ErrPayload)
		}
		x[i] = values[c]
	}
	return nil
}
