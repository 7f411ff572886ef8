package single

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
)

var (
	long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
		"measure the errors of one argument of 127, as .ci/run does")
	every = flag.Bool("every", false, "measure the errors of every argument, which takes half an hour")
)

// unary are the functions of one number, with the largest errors that their comments state.
var unary = []struct {
	name   string
	f      func(float32) float32
	oracle func(float64) float64
	ulp    float64
}{
	{"Exp", Exp, detmath.Exp64, 0.86},
	{"Logistic", Logistic, func(x float64) float64 { return 1 / (1 + detmath.Exp64(-x)) }, 2.41},
	{"Tanh", Tanh, math.Tanh, 1.29},
	{"Log", Log, detmath.Log64, 0.89},
	{"Rsqrt", Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, 0.85},
	{"Erf", Erf, math.Erf, 0.96},
	{"Sin", Sin, detmath.Sin64, 0.84},
	{"Cos", Cos, detmath.Cos64, 0.83},
}

// ulps returns the distance of got from want in units in the last place of want rounded to float32; 0 for equal special
// values.
func ulps(got float32, want float64) float64 {
	if w := float32(want); math.IsInf(float64(w), 0) || got != got || w != w {
		if kerneltest.Same(got, w) {
			return 0
		}
		return math.Inf(1)
	}
	exp := max(int(math.Float64bits(want)>>52&0x7ff)-1023, -126)
	return math.Abs(float64(got)-want) * math.Float64frombits(uint64(1023+23-exp)<<52) // which is exact
}

// worst is the argument with the largest error of a function, and the error.
type worst struct {
	at  float32
	ulp float64
}

func (w *worst) try(x float32, ulp float64) {
	if ulp > w.ulp {
		*w = worst{x, ulp}
	}
}

// among returns the worst of one float32 of each, evenly spread over their bit patterns.
func among(each uint64, f func(float32) float32, oracle func(float64) float64) (all worst) {
	const parts = 4
	var found [parts]worst
	var group sync.WaitGroup
	for p := range uint64(parts) {
		group.Go(func() {
			for u := p << 30; u < (p+1)<<30; u += each {
				x := math.Float32frombits(uint32(u))
				found[p].try(x, ulps(f(x), oracle(float64(x))))
			}
		})
	}
	group.Wait()
	for _, w := range found {
		all.try(w.at, w.ulp)
	}
	return all
}

// TestArguments holds each function to the error that its comment states, on a million arguments; on more with -long,
// and on all with -every.
func TestArguments(t *testing.T) {
	for _, u := range unary {
		var w worst
		kerneltest.Sweep(func(x float32) {
			got, want := u.f(x), u.oracle(float64(x))
			w.try(x, ulps(got, want))
			if got == 0 && math.Signbit(float64(got)) != math.Signbit(want) {
				t.Errorf("%s(%v) = %v, want %v", u.name, x, got, want)
			}
			if got != got && math.Float32bits(got) != nan32 {
				t.Errorf("%s(%v) is a NaN with bits %#x", u.name, x, math.Float32bits(got))
			}
		})
		if *long {
			w = among(127, u.f, u.oracle)
		}
		if *every {
			w = among(1, u.f, u.oracle)
		}
		if !(w.ulp <= u.ulp) {
			t.Errorf("%s(%v) = %v is off by %.3f ulp of %v, more than %v", u.name, w.at, u.f(w.at), w.ulp,
				u.oracle(float64(w.at)), u.ulp)
		}
		t.Logf("%s: at most %.4f ulp, at %v", u.name, w.ulp, w.at)
	}
}

// powUlp is the largest error that the comment of Pow states.
const powUlp = 0.82

func TestPow(t *testing.T) {
	var most float64
	check := func(x, y float32) {
		got, want := Pow(x, y), math.Pow(float64(x), float64(y))
		e := ulps(got, want)
		if most = max(most, e); e > powUlp || got == 0 && math.Signbit(float64(got)) != math.Signbit(want) {
			t.Errorf("Pow(%v, %v) = %v, want %v: off by %.3f ulp", x, y, got, want, e)
		}
	}
	for _, x := range kerneltest.Special {
		for _, y := range kerneltest.Special {
			check(x, y)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	tries := 200_000
	if *long {
		tries = 1_000_000
	}
	if *every {
		tries = 100_000_000
	}
	for range tries {
		check(math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()))
		check(float32(r.ExpFloat64()), float32(r.NormFloat64()*10))
		check(float32(r.NormFloat64()), float32(r.IntN(41)-20))
		x := float32(math.Exp(r.NormFloat64() * 10)) // results over the whole range
		check(x, float32((r.Float64()-0.5)*200/math.Log(float64(x))))
		x = float32(1 + r.NormFloat64()*1e-3)
		check(x, float32((r.Float64()-0.5)*200/math.Log(float64(x))))
	}
	t.Logf("at most %.4f ulp", most)
}

func TestSpecialValues(t *testing.T) {
	inf, nan, zero := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name    string
		f       func(float32) float32
		x, want float32
	}{
		{"exp", Exp, inf, inf}, {"exp", Exp, -inf, 0}, {"exp", Exp, 88.72284, inf}, {"exp", Exp, -104, 0},
		{"exp", Exp, zero, 1},
		{"log", Log, 0, -inf}, {"log", Log, zero, -inf}, {"log", Log, -1, nan}, {"log", Log, -inf, nan},
		{"log", Log, inf, inf}, {"log", Log, 1, 0},
		{"tanh", Tanh, inf, 1}, {"tanh", Tanh, -inf, -1}, {"tanh", Tanh, zero, zero}, {"tanh", Tanh, 0x1p-149, 0x1p-149},
		{"logistic", Logistic, inf, 1}, {"logistic", Logistic, -inf, 0}, {"logistic", Logistic, zero, 0.5},
		{"erf", Erf, inf, 1}, {"erf", Erf, -inf, -1}, {"erf", Erf, zero, zero},
		{"sin", Sin, inf, nan}, {"sin", Sin, zero, zero}, {"cos", Cos, -inf, nan}, {"cos", Cos, zero, 1},
		{"rsqrt", Rsqrt, zero, -inf}, {"rsqrt", Rsqrt, 0, inf}, {"rsqrt", Rsqrt, inf, 0}, {"rsqrt", Rsqrt, -1, nan},
		{"rsqrt", Rsqrt, -1e30, nan},
	} {
		if got := c.f(c.x); !kerneltest.Same(got, c.want) {
			t.Errorf("%s(%v) = %v, want %v", c.name, c.x, got, c.want)
		}
	}
	for _, u := range unary {
		if got := math.Float32bits(u.f(math.Float32frombits(0xffc00001))); got != nan32 {
			t.Errorf("%s(NaN) has bits %#x", u.name, got)
		}
	}
}
