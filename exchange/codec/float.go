package codec

import (
	"encoding/binary"
	"math"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// plain is Float32: the little-endian elements.
type plain struct{ fixed }

func (plain) size(s tensor.Shape) int { return s.Bytes() }

func (plain) encode(b []byte, x *tensor.Tensor) error {
	copy(b, x.Bytes())
	return nil
}

func (plain) decode(x *tensor.Tensor, b []byte) error {
	copy(x.Bytes(), b)
	return nil
}

func putFloats(b []byte, x []float32) {
	for i, v := range x {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
}

func getFloats(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// half is Float16.
type half struct{ fixed }

func (half) size(s tensor.Shape) int { return 2 * s.Elements() }

func (half) encode(b []byte, x *tensor.Tensor) error {
	for i, v := range x.F32() {
		binary.LittleEndian.PutUint16(b[2*i:], toHalf(v))
	}
	return nil
}

func (half) decode(x *tensor.Tensor, b []byte) error {
	dst := x.F32()
	for i := range dst {
		dst[i] = kernel.FromFloat16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return nil
}

// toHalf rounds a finite number to binary16, to nearest even; what would round to infinity becomes the largest finite
// number.
func toHalf(v float32) uint16 {
	h := kernel.ToFloat16(v)
	if h&0x7fff == 0x7c00 {
		h--
	}
	return h
}

// bfloat16 is BFloat16: the upper half of a float32.
type bfloat16 struct{ fixed }

func (bfloat16) size(s tensor.Shape) int { return 2 * s.Elements() }

func (bfloat16) encode(b []byte, x *tensor.Tensor) error {
	putBrain(b, x.F32())
	return nil
}

func (bfloat16) decode(x *tensor.Tensor, b []byte) error {
	getBrain(x.F32(), b)
	return nil
}

func putBrain(b []byte, x []float32) {
	for i, v := range x {
		binary.LittleEndian.PutUint16(b[2*i:], toBrain(v))
	}
}

func getBrain(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = kernel.FromBFloat16(binary.LittleEndian.Uint16(b[2*i:]))
	}
}

// toBrain rounds a finite number to bfloat16, to nearest even; what would round to infinity becomes the largest finite
// number.
func toBrain(v float32) uint16 {
	h := kernel.ToBFloat16(v)
	if h&0x7fff == 0x7f80 {
		h--
	}
	return h
}
