package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/detmath"
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

func TestActivationBits(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	one := func(f func(p Path, dst, x []float32)) func(Path, []float32, []float32, []float32) {
		return func(p Path, dst, x, _ []float32) { f(p, dst, x) }
	}
	for name, f := range map[string]struct {
		fast  func(p Path, dst, x, d []float32)
		naive func(x, d float32) float32
	}{
		"Gelu": {one(Path.Gelu), naiveGelu}, "GeluGrad": {Path.GeluGrad, naiveGeluGrad},
		"Silu": {one(Path.Silu), naiveSilu}, "SiluGrad": {Path.SiluGrad, naiveSiluGrad},
	} {
		for kind, value := range kerneltest.Values {
			for _, n := range []int{1, 7, 8, 70, activationTile, 2*activationTile + 9} {
				x, d := make([]float32, n), make([]float32, n)
				for i := range x {
					x[i], d[i] = value(r), value(r)
				}
				for _, p := range Paths() {
					inPlace := append([]float32{}, x...)
					f.fast(p, inPlace, inPlace, d)
					for i := range x {
						if want := f.naive(x[i], d[i]); !kerneltest.Same(inPlace[i], want) {
							t.Fatalf("%s of %s, %s: %x and %x give %x, want %x", name, kind, p, x[i], d[i], inPlace[i], want)
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
		{naiveSilu, naiveSiluGrad}} {
		for x := float32(-6); x < 6; x += 0.37 {
			const h = 1. / 128
			want := float64(c.f(x+h, 0)-c.f(x-h, 0)) / (2 * h)
			if got := float64(c.grad(x, 1)); math.Abs(got-want) > 1e-4 {
				t.Errorf("at %v the gradient is %v, want %v", x, got, want)
			}
		}
	}
}
