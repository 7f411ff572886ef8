// Package kerneltest has the numbers on which the tests of kernels try them. It is imported by tests alone.
package kerneltest

import (
	"math"
	"testing"
)

// Special are the float32 at the edges of ranges and of formulas.
var Special = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 2, -2, 3, 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffcp-127, -0x1p-126,
	math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	88.72283, 88.72284, -87.33655, -103.97207, -103.97208, 9.01, 10, 110, -110, 4, 3.9999998, 0x1p24, 0x1p23 + 1, 0x1p20,
	1e30,
}

// Random is what Values need of a rand.Rand.
type Random interface {
	NormFloat64() float64
	IntN(n int) int
	Uint32() uint32
}

// Values makes the numbers of a slice, by their kind.
var Values = map[string]func(r Random) float32{
	"normal": func(r Random) float32 { return float32(r.NormFloat64()) },
	"few bits": func(r Random) float32 { // many sums fall on midpoints
		return float32(math.Ldexp(float64(r.IntN(4096)-2048), r.IntN(40)-30))
	},
	"subnormal": func(r Random) float32 { return math.Float32frombits(r.Uint32() & 0xa0ffffff) },
	"huge":      func(r Random) float32 { return math.Float32frombits(r.Uint32()&0x803fffff | 0x5f000000) },
	"any bits":  func(r Random) float32 { return math.Float32frombits(r.Uint32()) },
	"special": func(r Random) float32 {
		if r.IntN(50) == 0 {
			return Special[r.IntN(len(Special))]
		}
		return float32(r.IntN(3) - 1)
	},
	"negative zero": func(r Random) float32 { return float32(math.Copysign(0, float64(r.IntN(2))-0.5)) },
}

// Sweep calls f on 2^20 bit patterns that cover every sign, exponent and special value, and on a grid of ordinary
// values.
func Sweep(f func(x float32)) {
	steps, near := uint64(4099), 1
	if testing.Short() {
		steps, near = 65537, 64
	}
	for u := uint64(0); u < 1<<32; u += steps {
		f(math.Float32frombits(uint32(u)))
	}
	for i := -1 << 17; i <= 1<<17; i += near {
		f(float32(i) * 0x1p-13)
	}
	for _, x := range Special {
		f(x)
	}
}

// Same compares bits, and takes every NaN for the same one.
func Same(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
}

// FMAOperands makes operands of matmul.FMA32 from random words: any bits; or c and a product within 2^-40 of half a
// unit in the last place of c (or some halves, or a quarter), where rounding twice goes wrong, also below the normal
// range.
func FMAOperands(w [4]uint32) (a, b, c float32) {
	if w[3]%4 == 0 {
		return math.Float32frombits(w[0]), math.Float32frombits(w[1]), math.Float32frombits(w[2])
	}
	c = math.Float32frombits(w[2] % 0x7e800000)
	if w[3]%4 == 1 {
		c = math.Float32frombits(w[2] % 0x01000000) // subnormal, or barely normal
	}
	exponent := max(math.Ilogb(float64(c)), -126) - 24 - int(w[3]>>2%4/3)
	near := float32(w[0]%8) * 0x1p-23
	a = float32(math.Ldexp(float64(1+near), exponent/2)) * float32(1+w[0]>>3%4)
	b = float32(math.Ldexp(float64(1-near), exponent-exponent/2))
	if w[1]&1 != 0 {
		a = -a
	}
	if w[1]&2 != 0 {
		c = -c
	}
	return a, b, c
}
