package elementary

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/detmath/single"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
)

// The formulas of the activations, one element at a time.

func naiveGelu(x, _ float32) float32 {
	inner := x * (float32(float32(x*x)*float32(geluCubic)) + float32(geluLinear))
	h := x * 0.5
	return h + float32(h*detmath.Tanh(inner))
}

func naiveGeluGrad(x, d float32) float32 {
	square := x * x
	t := detmath.Tanh(x * (float32(square*float32(geluCubic)) + float32(geluLinear)))
	rest := float32(x*0.5) * (1 - float32(t*t))
	rest = float32(rest * (float32(square*float32(3*geluCubic)) + float32(geluLinear)))
	return d * ((0.5 + float32(0.5*t)) + rest)
}

func naiveSilu(x, _ float32) float32 { return x * detmath.Logistic(x) }

func naiveSiluGrad(x, d float32) float32 {
	s := detmath.Logistic(x)
	return d * (s * (1 + float32(x*(1-s))))
}

// Those of version 2.

const linear2, cubic2 = float32(2 * 0.7978845608028654), float32(2 * 0.044715 * 0.7978845608028654)

func naiveGelu2(x, _ float32) float32 {
	return x * single.Logistic(x*(float32(float32(x*x)*cubic2)+linear2))
}

func naiveGeluGrad2(x, d float32) float32 {
	s := single.Logistic(x * (float32(float32(x*x)*cubic2) + linear2))
	slope := float32(float32(x*x)*float32(3*2*0.044715*0.7978845608028654)) + linear2
	return d * (s * (1 + float32(float32(x*(1-s))*slope)))
}

func naiveSilu2(x, _ float32) float32 { return x * single.Logistic(x) }

func naiveSiluGrad2(x, d float32) float32 {
	s := single.Logistic(x)
	return d * (s * (1 + float32(x*(1-s))))
}

type naive = func(x, d float32) float32

func both(first, second naive) map[uint32]naive {
	return map[uint32]naive{kernel.Version1: first, kernel.Version2: second}
}

func TestActivationBits(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	one := func(f func(m Math, dst, x []float32)) func(Math, []float32, []float32, []float32) {
		return func(m Math, dst, x, _ []float32) { f(m, dst, x) }
	}
	for name, f := range map[string]struct {
		fast  func(m Math, dst, x, d []float32)
		naive map[uint32]naive
	}{
		"Gelu":     {one(Math.Gelu), both(naiveGelu, naiveGelu2)},
		"GeluGrad": {Math.GeluGrad, both(naiveGeluGrad, naiveGeluGrad2)},
		"Silu":     {one(Math.Silu), both(naiveSilu, naiveSilu2)},
		"SiluGrad": {Math.SiluGrad, both(naiveSiluGrad, naiveSiluGrad2)},
	} {
		for kind, value := range kerneltest.Values {
			for _, n := range []int{1, 7, 8, 70, activationTile, 2*activationTile + 9} {
				x, d := make([]float32, n), make([]float32, n)
				for i := range x {
					x[i], d[i] = value(r), value(r)
				}
				for v, naive := range f.naive {
					for _, p := range kernel.Paths() {
						inPlace := append([]float32{}, x...)
						f.fast(Math{p, v}, inPlace, inPlace, d)
						for i := range x {
							if want := naive(x[i], d[i]); !kerneltest.Same(inPlace[i], want) {
								t.Fatalf("%s of %s, version %d, %s: %x and %x give %x, want %x", name, kind, v, p, x[i], d[i],
									inPlace[i], want)
							}
						}
					}
				}
			}
		}
	}
}

// TestActivationGradients compares with differences.
func TestActivationGradients(t *testing.T) {
	for _, c := range []struct{ f, grad func(x, d float32) float32 }{{naiveGelu, naiveGeluGrad},
		{naiveSilu, naiveSiluGrad}, {naiveGelu2, naiveGeluGrad2},
		{naiveSilu2, naiveSiluGrad2}} {
		for x := float32(-6); x < 6; x += 0.37 {
			const h = 1. / 128
			want := float64(c.f(x+h, 0)-c.f(x-h, 0)) / (2 * h)
			if got := float64(c.grad(x, 1)); math.Abs(got-want) > 1e-4 {
				t.Errorf("at %v the gradient is %v, want %v", x, got, want)
			}
		}
	}
}
