package elementary

import "github.com/starling-network/starling/compute/kernel"

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
func (m Math) geluTanh(dst, squares, x []float32) {
	n, p := len(x), m.Path
	p.Mul(squares, x, x)
	p.Mul(dst, squares, geluCubics[:n])
	p.Add(dst, dst, geluLinears[:n])
	p.Mul(dst, x, dst)
	m.Tanh(dst, dst)
}

// Gelu is the tanh form of x * Phi(x) (Hendrycks and Gimpel 2016, section 2). In version 1 it is h + h*t, with h =
// x*0.5 and t of geluTanh; in version 2, where 0.5*(1+t) is the logistic function of twice the argument, it is x*s with
// s of geluLogistic. dst may be x.
func (m Math) Gelu(dst, x []float32) {
	if m.Version != kernel.Version1 {
		m.gelu2(dst, x)
		return
	}
	p := m.Path
	activationTiles(dst, [][]float32{x}, func(dst []float32, in [][]float32) {
		var t, h [activationTile]float32
		n := len(dst)
		m.geluTanh(t[:n], h[:n], in[0])
		p.Mul(h[:n], in[0], halves[:n])
		p.Mul(t[:n], h[:n], t[:n])
		p.Add(dst, h[:n], t[:n])
	})
}

// GeluGrad is d times the derivative of Gelu: d * ((0.5 + 0.5*t) + (h*(1-t*t)) * (x*x*(3*c) + s)) in version 1, and
// d * (s * (1 + x*(1-s) * (x*x*(3*2c) + 2*sqrt(2/pi)))) in version 2. dst may be x or d.
func (m Math) GeluGrad(dst, x, d []float32) {
	if m.Version != kernel.Version1 {
		m.geluGrad2(dst, x, d)
		return
	}
	p := m.Path
	activationTiles(dst, [][]float32{x, d}, func(dst []float32, in [][]float32) {
		var t, inner, h, rest [activationTile]float32
		n := len(dst)
		m.geluTanh(t[:n], inner[:n], in[0])
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

// Silu is x*s with s = Logistic(x). dst may be x.
func (m Math) Silu(dst, x []float32) {
	if m.Version != kernel.Version1 {
		m.silu2(dst, x)
		return
	}
	activationTiles(dst, [][]float32{x}, func(dst []float32, in [][]float32) {
		var s [activationTile]float32
		m.Logistic(s[:len(dst)], in[0])
		m.Path.Mul(dst, in[0], s[:len(dst)])
	})
}

// SiluGrad is d times the derivative of Silu: d * (s * (1 + x*(1-s))). dst may be x or d.
func (m Math) SiluGrad(dst, x, d []float32) {
	if m.Version != kernel.Version1 {
		m.siluGrad2(dst, x, d)
		return
	}
	p := m.Path
	activationTiles(dst, [][]float32{x, d}, func(dst []float32, in [][]float32) {
		var s, rest [activationTile]float32
		n := len(dst)
		m.Logistic(s[:n], in[0])
		p.Sub(rest[:n], ones[:n], s[:n])
		p.Mul(rest[:n], in[0], rest[:n])
		p.Add(rest[:n], ones[:n], rest[:n])
		p.Mul(rest[:n], s[:n], rest[:n])
		p.Mul(dst, in[1], rest[:n])
	})
}
