package kernel

import "github.com/starling-network/starling/compute/detmath"

const (
	geluLinear = 0.7978845608028654 // sqrt(2/pi)
	geluCubic  = 0.044715 * geluLinear
)

// activationTile is the number of elements that activations are computed on at a time, in the first-level cache.
const activationTile = 256

// lanesOf is a constant as an operand of vector loops.
func lanesOf(x float32) *[activationTile]float32 {
	v := new([activationTile]float32)
	for i := range v {
		v[i] = x
	}
	return v
}

var (
	halves, ones                           = lanesOf(0.5), lanesOf(1)
	geluLinears, geluCubics, geluCubicRise = lanesOf(geluLinear), lanesOf(geluCubic), lanesOf(3 * geluCubic)
)

// activationTiles calls f for pieces of dst, with the same piece of every x.
func activationTiles(dst []float32, x [][]float32, f func(dst []float32, x [][]float32)) {
	part := make([][]float32, len(x))
	for lo := 0; lo < len(dst); lo += activationTile {
		hi := min(lo+activationTile, len(dst))
		for k := range x {
			part[k] = x[k][lo:hi]
		}
		f(dst[lo:hi], part)
	}
}

// geluTanh sets dst to Tanh(x * (x*x*c + s)) for s = sqrt(2/pi) and c = 0.044715*s, and squares to x*x. Every operation
// is rounded, here and below.
func geluTanh(p Path, dst, squares, x []float32) {
	n := len(x)
	p.Mul(squares, x, x)
	p.Mul(dst, squares, geluCubics[:n])
	p.Add(dst, dst, geluLinears[:n])
	p.Mul(dst, x, dst)
	if p == Portable {
		for i, v := range dst {
			dst[i] = detmath.Tanh(v)
		}
	} else {
		TanhTo(dst, dst)
	}
}

// Gelu is the tanh form of x * Phi(x) (Hendrycks and Gimpel 2016, section 2): h + h*t, with h = x*0.5 and t of
// geluTanh. dst may be x. The zero Path is the active one, here and below.
func (p Path) Gelu(dst, x []float32) {
	activationTiles(dst, [][]float32{x}, func(dst []float32, in [][]float32) {
		var t, h [activationTile]float32
		n := len(dst)
		geluTanh(p, t[:n], h[:n], in[0])
		p.Mul(h[:n], in[0], halves[:n])
		p.Mul(t[:n], h[:n], t[:n])
		p.Add(dst, h[:n], t[:n])
	})
}

// GeluGrad is d times the derivative of Gelu: d * ((0.5 + 0.5*t) + (h*(1-t*t)) * (x*x*(3*c) + s)). dst may be x or d.
func (p Path) GeluGrad(dst, x, d []float32) {
	activationTiles(dst, [][]float32{x, d}, func(dst []float32, in [][]float32) {
		var t, inner, h, rest [activationTile]float32
		n := len(dst)
		geluTanh(p, t[:n], inner[:n], in[0])
		p.Mul(inner[:n], inner[:n], geluCubicRise[:n])
		p.Add(inner[:n], inner[:n], geluLinears[:n])
		p.Mul(h[:n], in[0], halves[:n])
		p.Mul(rest[:n], t[:n], t[:n])
		p.Sub(rest[:n], ones[:n], rest[:n])
		p.Mul(rest[:n], h[:n], rest[:n])
		p.Mul(rest[:n], rest[:n], inner[:n])
		p.Mul(t[:n], halves[:n], t[:n])
		p.Add(t[:n], halves[:n], t[:n])
		p.Add(t[:n], t[:n], rest[:n])
		p.Mul(dst, in[1], t[:n])
	})
}

func logistic(p Path, dst, x []float32) {
	if p == Portable {
		for i := range dst {
			dst[i] = detmath.Logistic(x[i])
		}
	} else {
		LogisticTo(dst, x)
	}
}

// Silu is x*s with s = Logistic(x). dst may be x.
func (p Path) Silu(dst, x []float32) {
	activationTiles(dst, [][]float32{x}, func(dst []float32, in [][]float32) {
		var s [activationTile]float32
		logistic(p, s[:len(dst)], in[0])
		p.Mul(dst, in[0], s[:len(dst)])
	})
}

// SiluGrad is d times the derivative of Silu: d * (s * (1 + x*(1-s))). dst may be x or d.
func (p Path) SiluGrad(dst, x, d []float32) {
	activationTiles(dst, [][]float32{x, d}, func(dst []float32, in [][]float32) {
		var s, rest [activationTile]float32
		n := len(dst)
		logistic(p, s[:n], in[0])
		p.Sub(rest[:n], ones[:n], s[:n])
		p.Mul(rest[:n], in[0], rest[:n])
		p.Add(rest[:n], ones[:n], rest[:n])
		p.Mul(rest[:n], s[:n], rest[:n])
		p.Mul(dst, in[1], rest[:n])
	})
}
