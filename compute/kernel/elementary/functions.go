// Package elementary is the functions that the versions of the numerics specify apart, on slices: elementary functions,
// activations, and the loss over them. Those of version 1 are formulas over float64 (package detmath). Those of version
// 2 use float32 and 32-bit integers (package single), and its Gelu is a formula over Logistic instead of Tanh.
//
// The vector loops are assembly written by the program in ../gen, and equal the functions of single numbers bit for
// bit.
package elementary

import (
	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/detmath/single"
	"github.com/starling-network/starling/compute/kernel"
)

// Scalars are the elementary functions of a version, of single numbers.
type Scalars struct {
	Exp, Log, Tanh, Erf, Logistic, Rsqrt, Sin, Cos func(float32) float32
	Pow                                            func(x, y float32) float32
}

var scalars = [...]Scalars{
	kernel.Version1: {detmath.Exp, detmath.Log, detmath.Tanh, detmath.Erf, detmath.Logistic, detmath.Rsqrt, detmath.Sin,
		detmath.Cos, detmath.Pow},
	kernel.Version2: {single.Exp, single.Log, single.Tanh, single.Erf, single.Logistic, single.Rsqrt, single.Sin,
		single.Cos, single.Pow},
}

// Math is the elementary functions and the activations of a version, on a path; the zero Path is the active one. dst
// and the operands of its methods are of one length, and the same or disjoint memory.
type Math struct {
	Path    kernel.Path
	Version uint32 // one that kernel.Knows
}

// Scalars are the functions of single numbers. It panics for a version that is not known: programs are checked before.
func (m Math) Scalars() *Scalars {
	if err := kernel.Knows(m.Version); err != nil {
		panic(err)
	}
	return &scalars[m.Version]
}

// rest applies a function of single numbers to the elements that the vector loops leave.
func (m Math) rest(f func(float32) float32, dst, x []float32) {
	for i, v := range x {
		dst[i] = f(v)
	}
}

// Exp sets dst[i] = Exp(x[i]), e^x.
func (m Math) Exp(dst, x []float32) {
	dst = dst[:len(x)]
	p, n := m.Path.Vectors(len(x))
	switch {
	case n == 0:
	case m.Version == kernel.Version1:
		expVector(&dst[0], &x[0], n, p)
	default:
		expSingle(&dst[0], &x[0], n, p)
	}
	m.rest(m.Scalars().Exp, dst[n:], x[n:])
}

// Log sets dst[i] = Log(x[i]), the natural logarithm.
func (m Math) Log(dst, x []float32) {
	dst = dst[:len(x)]
	p, n := m.Path.Vectors(len(x))
	switch {
	case n == 0:
	case m.Version == kernel.Version1:
		logVector(&dst[0], &x[0], n, p)
	default:
		logSingle(&dst[0], &x[0], n, p)
	}
	m.rest(m.Scalars().Log, dst[n:], x[n:])
}

// Tanh sets dst[i] = Tanh(x[i]).
func (m Math) Tanh(dst, x []float32) {
	dst = dst[:len(x)]
	p, n := m.Path.Vectors(len(x))
	switch {
	case n == 0:
	case m.Version == kernel.Version1:
		tanhVector(&dst[0], &x[0], n, p)
	default:
		tanhSingle(&dst[0], &x[0], n, p)
	}
	m.rest(m.Scalars().Tanh, dst[n:], x[n:])
}

// Logistic sets dst[i] = Logistic(x[i]), 1/(1 + e^-x).
func (m Math) Logistic(dst, x []float32) {
	dst = dst[:len(x)]
	p, n := m.Path.Vectors(len(x))
	switch {
	case n == 0:
	case m.Version == kernel.Version1:
		logisticVector(&dst[0], &x[0], n, p)
	default:
		logisticSingle(&dst[0], &x[0], n, p)
	}
	m.rest(m.Scalars().Logistic, dst[n:], x[n:])
}

// Rsqrt sets dst[i] = Rsqrt(x[i]), 1/sqrt(x).
func (m Math) Rsqrt(dst, x []float32) {
	dst = dst[:len(x)]
	p, n := m.Path.Vectors(len(x))
	switch {
	case n == 0:
	case m.Version == kernel.Version1:
		rsqrtVector(&dst[0], &x[0], n, p)
	default:
		rsqrtSingle(&dst[0], &x[0], n, p)
	}
	m.rest(m.Scalars().Rsqrt, dst[n:], x[n:])
}

// Erf sets dst[i] = Erf(x[i]).
func (m Math) Erf(dst, x []float32) { m.rest(m.Scalars().Erf, dst[:len(x)], x) }

// Sin sets dst[i] = Sin(x[i]).
func (m Math) Sin(dst, x []float32) { m.rest(m.Scalars().Sin, dst[:len(x)], x) }

// Cos sets dst[i] = Cos(x[i]).
func (m Math) Cos(dst, x []float32) { m.rest(m.Scalars().Cos, dst[:len(x)], x) }

// Pow sets dst[i] = Pow(x[i], y[i]).
func (m Math) Pow(dst, x, y []float32) {
	pow := m.Scalars().Pow
	for i := range dst {
		dst[i] = pow(x[i], y[i])
	}
}
