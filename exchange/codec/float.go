package codec

import (
	"encoding/binary"
	"math"

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
		dst[i] = fromHalf(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return nil
}

// toHalf rounds a finite number to binary16, to nearest even; what would round to infinity becomes the largest finite
// number.
func toHalf(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b>>16) & 0x8000
	b &^= 1 << 31
	switch {
	case b >= 0x477ff000: // 65520 lies half-way between 65504 and infinity
		return sign | 0x7bff
	case b < 0x38800000: // below 2^-14: a multiple of 2^-24, which is the last place of numbers from 0.5 on
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

func fromHalf(h uint16) float32 {
	sign, b := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case b >= 0x7c00:
		return math.Float32frombits(sign | 0x7f800000 | b&0x3ff<<13)
	case b < 0x400:
		return math.Float32frombits(sign | math.Float32bits(float32(b)*0x1p-24))
	}
	return math.Float32frombits(sign | (b<<13 + 0x38000000))
}

// brain is BFloat16: the upper half of a float32.
type brain struct{ fixed }

func (brain) size(s tensor.Shape) int { return 2 * s.Elements() }

func (brain) encode(b []byte, x *tensor.Tensor) error {
	putBrain(b, x.F32())
	return nil
}

func (brain) decode(x *tensor.Tensor, b []byte) error {
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
		dst[i] = fromBrain(binary.LittleEndian.Uint16(b[2*i:]))
	}
}

// toBrain rounds a finite number to bfloat16, to nearest even; what would round to infinity becomes the largest finite
// number.
func toBrain(v float32) uint16 {
	b := math.Float32bits(v)
	b = min(b&^(1<<31)+0x7fff+b>>16&1, 0x7f7fffff) | b&(1<<31)
	return uint16(b >> 16)
}

func fromBrain(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
