package suite

import (
	"math"

	"github.com/starling-network/starling/compute/philox"
)

// sort is a sort of numbers on which kernels are compared.
type sort struct {
	name string
	next func(r *philox.Reader) float32
}

// edges are the numbers at the ends of ranges, and those whose products and sums are half-way between two others.
var edges = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1 + 0x1p-23, -1 + 0x1p-24, 0x1p-126, -0x1p-126, 0x1p-149,
	-0x1p-149, 0x1p-75, -0x1p-75, math.MaxFloat32, -math.MaxFloat32, 0x1p63, -0x1p64, 1.5, -0x1.fffffep-127, 88.72283,
	88.72284, -87.33655, -103.97207, -103.97208, 9.01, 10, 4, 3.9999998, 0x1p24, 0x1p31, -0x1p31, 0x1p32, 127.5, -128.5}

// extraordinary are infinities and a NaN that signals.
var extraordinary = []uint32{0x7f800000, 0xff800000, 0xff812345}

// sorts are all of them. Sums and products of ordinary ones are rounded, those of tiny ones are subnormal or underflow,
// and many of half-way ones fall in the middle between two numbers.
var sorts = []sort{
	{"ordinary", func(r *philox.Reader) float32 { return float32(int32(r.Uint32())) * float32(math.Ldexp(1, -30)) }},
	{"bits", func(r *philox.Reader) float32 { return math.Float32frombits(r.Uint32()) }},
	{"finite", func(r *philox.Reader) float32 {
		for {
			if x := math.Float32frombits(r.Uint32()); x-x == 0 {
				return x
			}
		}
	}},
	{"tiny", func(r *philox.Reader) float32 {
		exponent := uint32(r.Uint64n(2)*r.Uint64n(40)) << 24
		return math.Float32frombits(r.Uint32()&0x80ffffff | exponent)
	}},
	{"edges", func(r *philox.Reader) float32 { return edges[r.Uint64n(uint64(len(edges)))] }},
	{"special", func(r *philox.Reader) float32 {
		if k := r.Uint64n(400); k < uint64(len(extraordinary)) {
			return math.Float32frombits(extraordinary[k])
		}
		return float32(int32(r.Uint32())) * 0x1p-30
	}},
	{"half-way", func(r *philox.Reader) float32 {
		return float32(2*r.Uint64n(1<<12)+1) * float32(math.Ldexp(1, int(r.Uint64n(25))-12))
	}},
}

// fill sets every element to a number of the sort, in a stream of its own for each piece.
func (s sort) fill(x []float32, piece int, stream uint64) {
	r := numbers(piece, stream)
	for i := range x {
		x[i] = s.next(r)
	}
}

// numbers are those of a stream in a piece.
func numbers(piece int, stream uint64) *philox.Reader { return philox.New(seed+uint64(piece), stream) }

// seed of the numbers of the first piece: the same on every machine, so that a case that failed can be tried again.
const seed = 27

// sweep sets the elements to bit patterns at equal distances over all of them, of every sign and exponent, and to the
// edges. Those of a piece lie a piece's number above those of the first.
func sweep(x []float32, piece int) {
	n := len(x) - len(edges)
	step := (1<<32)/uint64(max(n, 1)) | 1
	for i := range n {
		x[i] = math.Float32frombits(uint32(uint64(i)*step + uint64(piece)))
	}
	copy(x[n:], edges)
}
