package elementary

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
	"github.com/starling-network/starling/compute/philox"
)

// versions are all versions of the numerics.
var versions = []uint32{kernel.Version1, kernel.Version2}

// A function is one of one operand and of one version, an element at a time and on slices.
type function struct {
	name string
	f    func(float32) float32
	to   func(dst, src []float32)
}

func functions(m Math) []function {
	s := m.Scalars()
	return []function{
		{"exp", s.Exp, m.Exp}, {"log", s.Log, m.Log}, {"tanh", s.Tanh, m.Tanh}, {"logistic", s.Logistic, m.Logistic},
		{"erf", s.Erf, m.Erf}, {"rsqrt", s.Rsqrt, m.Rsqrt}, {"sin", s.Sin, m.Sin}, {"cos", s.Cos, m.Cos},
	}
}

func TestSlices(t *testing.T) {
	var src []float32
	kerneltest.Sweep(func(x float32) { src = append(src, x) })
	want := make([]float32, len(src))
	for _, v := range versions {
		for k, u := range functions(Math{Version: v}) {
			for i, x := range src {
				want[i] = u.f(x)
			}
			for _, p := range kernel.Paths() {
				checkSlices(t, fmt.Sprintf("version %d, %s", v, p), functions(Math{p, v})[k], src, want)
			}
		}
	}
}

func checkSlices(t *testing.T, name string, u function, src, want []float32) {
	dst := make([]float32, len(src))
	u.to(dst, src)
	for i, x := range src {
		if got, want := math.Float32bits(dst[i]), math.Float32bits(want[i]); got != want {
			t.Fatalf("%s: %s gives %#x for %v (%#x), the scalar function %#x", name, u.name, got, x, math.Float32bits(x), want)
		}
	}
	for n := range 71 {
		from := 5000 + n*97
		part := append([]float32{}, src[from:from+n+1]...)
		u.to(part[:n], part[:n])
		if !kerneltest.Same(part[n], src[from+n]) {
			t.Errorf("%s: %s of %d elements writes more", name, u.name, n)
		}
		if !slices.EqualFunc(part[:n], want[from:from+n], kerneltest.Same) {
			t.Errorf("%s: %s of %d elements in place is wrong", name, u.name, n)
		}
	}
}

func TestSqrtTo(t *testing.T) {
	kerneltest.Sweep(func(x float32) {
		y, want := []float32{x}, math.Sqrt(float64(x))
		if kernel.SqrtTo(y, y); !kerneltest.Same(y[0], float32(want)) {
			t.Errorf("the square root of %v is %v, want %v", x, y[0], want)
		}
	})
}

func BenchmarkMath(b *testing.B) {
	src, dst := make([]float32, 4096), make([]float32, 4096)
	philox.NormalTo(src, 1, 1)
	positive := make([]float32, 4096)
	for i, x := range src {
		positive[i] = x * x
	}
	for _, v := range versions {
		for _, u := range benched(Math{Version: v}) {
			b.Run(fmt.Sprintf("%s/version %d", u.name, v), func(b *testing.B) {
				in := src
				if u.name == "log" {
					in = positive
				}
				for b.Loop() {
					u.to(dst, in)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/element")
			})
		}
	}
}

// benched are the functions, and the activations.
func benched(m Math) []function {
	with := func(f func(dst, x, d []float32)) func(dst, x []float32) {
		return func(dst, x []float32) { f(dst, x, x) }
	}
	return append(functions(m), function{"gelu", nil, m.Gelu}, function{"geluGrad", nil, with(m.GeluGrad)},
		function{"silu", nil, m.Silu}, function{"siluGrad", nil, with(m.SiluGrad)})
}
