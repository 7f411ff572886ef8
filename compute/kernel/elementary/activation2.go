package elementary

import "github.com/starling-network/starling/compute/detmath/single"

// The activations of version 2, in one pass each. Every operation is rounded.

// Factors of Gelu of version 2: 2*sqrt(2/pi), and that times 0.044715.
const (
	gelu2Linear = 2 * geluLinear
	gelu2Cubic  = 0.044715 * gelu2Linear
)

// geluLogistic returns Logistic(x * (x*x*c + s)) for s = gelu2Linear and c = gelu2Cubic, and x*x.
func geluLogistic(x float32) (s, square float32) {
	square = x * x
	return single.Logistic(float32(x * (float32(square*gelu2Cubic) + gelu2Linear))), square
}

func (m Math) gelu2(dst, x []float32) {
	dst = dst[:len(x)]
	p, n := m.Path.Vectors(len(x))
	if n > 0 {
		geluSingle(&dst[0], &x[0], n, p)
	}
	for i, v := range x[n:] {
		s, _ := geluLogistic(v)
		dst[n+i] = v * s
	}
}

func (m Math) geluGrad2(dst, x, d []float32) {
	dst, d = dst[:len(x)], d[:len(x)]
	p, n := m.Path.Vectors(len(x))
	if n > 0 {
		geluGradSingle(&dst[0], &x[0], &d[0], n, p)
	}
	for i, v := range x[n:] {
		s, square := geluLogistic(v)
		rest := float32(float32(v*(1-s)) * (float32(square*(3*gelu2Cubic)) + gelu2Linear))
		dst[n+i] = d[n+i] * float32(s*(1+rest))
	}
}

func (m Math) silu2(dst, x []float32) {
	dst = dst[:len(x)]
	p, n := m.Path.Vectors(len(x))
	if n > 0 {
		siluSingle(&dst[0], &x[0], n, p)
	}
	for i, v := range x[n:] {
		dst[n+i] = v * single.Logistic(v)
	}
}

func (m Math) siluGrad2(dst, x, d []float32) {
	dst, d = dst[:len(x)], d[:len(x)]
	p, n := m.Path.Vectors(len(x))
	if n > 0 {
		siluGradSingle(&dst[0], &x[0], &d[0], n, p)
	}
	for i, v := range x[n:] {
		s := single.Logistic(v)
		dst[n+i] = d[n+i] * float32(s*(1+float32(v*(1-s))))
	}
}
