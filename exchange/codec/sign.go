package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

const blockSign = kernel.ChunkSum // elements that share a scale

// sign is Sign, the scaled sign of EF-signSGD (Karimireddy et al. 2019, algorithm 1): an element becomes the mean
// magnitude of its 4096 with its own sign, a zero by its sign bit. It needs error feedback to converge.
type sign struct{ fixed }

func (sign) size(s tensor.Shape) int {
	n := s.Elements()
	return n/blockSign*(4+blockSign/8) + (n%blockSign+7)/8 + 4*min(1, n%blockSign)
}

func (sign) encode(b []byte, x *tensor.Tensor) error {
	for y := x.F32(); len(y) > 0; {
		n := min(blockSign, len(y))
		encodeSigns(b, y[:n])
		b, y = b[4+(n+7)/8:], y[n:]
	}
	return nil
}

func encodeSigns(b []byte, x []float32) {
	putFloats(b, []float32{meanMagnitude(x)})
	for i, v := range x {
		b[4+i/8] |= byte(math.Float32bits(v) >> 31 << (i % 8))
	}
}

func (sign) decode(x *tensor.Tensor, b []byte) error {
	for y := x.F32(); len(y) > 0; {
		n := min(blockSign, len(y))
		if err := decodeSigns(y[:n], b); err != nil {
			return err
		}
		b, y = b[4+(n+7)/8:], y[n:]
	}
	return nil
}

func decodeSigns(x []float32, b []byte) error {
	scale := binary.LittleEndian.Uint32(b)
	if scale >= 0x7f800000 {
		return fmt.Errorf("%w: a scale is %v", ErrPayload, math.Float32frombits(scale))
	}
	if n := len(x); n%8 != 0 && b[4+n/8]>>(n%8) != 0 {
		return fmt.Errorf("%w: bits after the last element", ErrPayload)
	}
	for i := range x {
		x[i] = math.Float32frombits(scale | uint32(b[4+i/8]>>(i%8)&1)<<31)
	}
	return nil
}

// meanMagnitude is the mean of the absolute values, which are summed as kernel sums.
func meanMagnitude(x []float32) float32 {
	magnitudes := make([]float32, len(x))
	kernel.AbsFloat(magnitudes, x)
	var p kernel.Path
	return min(p.Sum(magnitudes), math.MaxFloat32) / float32(len(x))
}
