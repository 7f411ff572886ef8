package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
	"github.com/starling-network/starling/compute/philox"
)

// functions are those of one operand, an element at a time and on slices.
var functions = []struct {
	name string
	f    func(float32) float32
	to   func(dst, src []float32)
}{
	{"exp", detmath.Exp, ExpTo}, {"log", detmath.Log, LogTo}, {"tanh", detmath.Tanh, TanhTo},
	{"logistic", detmath.Logistic, LogisticTo}, {"erf", detmath.Erf, ErfTo}, {"rsqrt", detmath.Rsqrt, RsqrtTo},
}

func TestSlices(t *testing.T) {
	defer Select("")
	var src []float32
	kerneltest.Sweep(func(x float32) { src = append(src, x) })
	dst, want := make([]float32, len(src)), make([]float32, len(src))
	for _, u := range functions {
		for i, x := range src {
			want[i] = u.f(x)
		}
		for _, p := range Paths() {
			if err := Select(p.String()); err != nil {
				t.Fatal(err)
			}
			u.to(dst, src)
			for i, x := range src {
				if got, want := math.Float32bits(dst[i]), math.Float32bits(want[i]); got != want {
					t.Fatalf("%s: %sTo gives %#x for %v, the scalar function %#x", p, u.name, got, x, want)
				}
			}
			for n := range 71 {
				from := 5000 + n*97
				part := append([]float32{}, src[from:from+n+1]...)
				u.to(part[:n], part[:n])
				if !kerneltest.Same(part[n], src[from+n]) {
					t.Errorf("%s: %sTo of %d elements writes more", p, u.name, n)
				}
				if !slices.EqualFunc(part[:n], want[from:from+n], kerneltest.Same) {
					t.Errorf("%s: %sTo of %d elements in place is wrong", p, u.name, n)
				}
			}
		}
	}
}

func TestSqrtTo(t *testing.T) {
	kerneltest.Sweep(func(x float32) {
		y, want := []float32{x}, math.Sqrt(float64(x))
		if SqrtTo(y, y); !kerneltest.Same(y[0], float32(want)) {
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
	for _, u := range functions {
		b.Run(u.name, func(b *testing.B) {
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
