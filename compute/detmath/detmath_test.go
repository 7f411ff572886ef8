package detmath

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/kernel/kerneltest"
)

var unary = []struct {
	name   string
	f      func(float32) float32
	oracle func(float64) float64
}{
	{"exp", Exp, math.Exp},
	{"log", Log, math.Log},
	{"tanh", Tanh, math.Tanh},
	{"logistic", Logistic, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	{"erf", Erf, math.Erf},
	{"sin", Sin, math.Sin},
	{"cos", Cos, math.Cos},
	{"rsqrt", Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }},
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
	exp := max(math.Ilogb(want), -126)
	return math.Abs(float64(got)-want) / math.Ldexp(1, exp-23)
}

func TestUnaryAccuracy(t *testing.T) {
	for _, u := range unary {
		worst, at := 0., float32(0)
		kerneltest.Sweep(func(x float32) {
			got, want := u.f(x), u.oracle(float64(x))
			if e := ulps(got, want); e > worst {
				worst, at = e, x
			}
			if got == 0 && math.Signbit(float64(got)) != math.Signbit(want) {
				t.Errorf("%s(%v) = %v, want %v", u.name, x, got, want)
			}
			if got != got && math.Float32bits(got) != nan32 {
				t.Errorf("%s(%v) is a NaN with bits %#x", u.name, x, math.Float32bits(got))
			}
		})
		if worst > 0.51 {
			t.Errorf("%s(%v) = %v is off by %.3f ulp of %v", u.name, at, u.f(at), worst, u.oracle(float64(at)))
		}
		t.Logf("%s: at most %.8f ulp", u.name, worst)
	}
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
		{"rsqrt", Rsqrt, zero, -inf}, {"rsqrt", Rsqrt, 0, inf},
		{"rsqrt", Rsqrt, inf, 0}, {"rsqrt", Rsqrt, -1, nan},
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

func TestPow(t *testing.T) {
	check := func(x, y float32) {
		got, want := Pow(x, y), math.Pow(float64(x), float64(y))
		if e := ulps(got, want); e > 0.51 || got == 0 && math.Signbit(float64(got)) != math.Signbit(want) {
			t.Errorf("Pow(%v, %v) = %v, want %v", x, y, got, want)
		}
	}
	for _, x := range kerneltest.Special {
		for _, y := range kerneltest.Special {
			check(x, y)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200000 {
		check(math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()))
		check(float32(r.ExpFloat64()), float32(r.NormFloat64()*10))
		check(float32(r.NormFloat64()), float32(r.IntN(41)-20))
	}
}

// hardAngles are angles next to multiples of pi/2 and huge ones, with exact results rounded (computed with 1400 bits).
var hardAngles = []struct{ x, sin, cos float64 }{
	{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53, -0x1.0000000000000p+0},
	{0x1.921fb54442d18p+0, 0x1.0000000000000p+0, 0x1.1a62633145c07p-54},
	{0x1.7f7f10a07f45ep+21, 0x1.0c9fb1535c027p-33, -0x1.0000000000000p+0},
	{0x1.cc31ebbd6d004p+19, 0x1.0000000000000p+0, -0x1.a52850fda13b2p-37},
	{0x1.0000000000000p+20, 0x1.526ccb2fc8656p-2, 0x1.e33ada92fe2aep-1},
	{0x1.fffff00000000p+19, -0x1.4cb305757fa66p-3, 0x1.f932ec65b1d71p-1},
	{0x1.6ac5b262ca1ffp+849, 0x1.0000000000000p+0, -0x1.14ae72e6ba22fp-61},
	{0x1.0f0cf064dd592p+73, -0x1.b453ab76bf397p-1, 0x1.0be2cef01c8f4p-1},
	{0x1.fffffffffffffp+1023, 0x1.452fc98b34e97p-8, -0x1.fffe62ecfab75p-1},
	{0x1.0000000000000p+1000, -0x1.460b8ae1c886ep-3, 0x1.f9785160c8815p-1},
	{0x1.000000c000000p+25, -0x1.22ca76cc016c4p-2, 0x1.eaebf7f2c648cp-1},
}

func TestFloat64Accuracy(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	relative := func(name string, x, got, want float64) {
		if got == want || got != got && want != want {
			return
		}
		if e := math.Abs(got - want); !(e < 1e-15*math.Abs(want)) && e > 0x1p-1074 {
			t.Errorf("%s(%v) = %v, want %v: off by %.2g", name, x, got, want, e)
		}
	}
	// math.Log of amd64 is wrong for subnormals, math.Exp near its overflow, math.Sin near multiples of pi/2.
	log := func(x float64) float64 {
		if x > 0 && x < 0x1p-1022 {
			return math.Log(x*0x1p60) - 60*math.Ln2
		}
		return math.Log(x)
	}
	for i := range 300000 {
		x := (r.Float64() - 0.5) * 1418
		relative("exp", x, Exp64(x), math.Exp(x))
		relative("exp", x/1000, Exp64(x/1000), math.Exp(x/1000))
		bits := math.Abs(math.Float64frombits(r.Uint64()))
		relative("log", bits, Log64(bits), log(bits))
		near := 1 + (r.Float64()-0.5)/float64(i+1)
		relative("log", near, Log64(near), math.Log(near))
		for _, x := range []float64{x, x * 1e-3, x * 0x1p30, bits, -bits} {
			if want := math.Sin(x); math.Abs(want) > 0.2 {
				relative("sin", x, Sin64(x), want)
			}
			if want := math.Cos(x); math.Abs(want) > 0.2 {
				relative("cos", x, Cos64(x), want)
			}
		}
	}
	for _, c := range hardAngles {
		relative("sin", c.x, Sin64(c.x), c.sin)
		relative("cos", c.x, Cos64(c.x), c.cos)
	}
	for _, x := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 0x1p-1074, -1, 1e308, 709,
		709.79, -745, -746} {
		relative("exp", x, Exp64(x), math.Exp(x))
		relative("log", x, Log64(x), log(x))
		if math.Abs(x) < 1 || !(math.Abs(x) <= math.MaxFloat64) {
			relative("sin", x, Sin64(x), math.Sin(x))
			relative("cos", x, Cos64(x), math.Cos(x))
		}
	}
	if !math.Signbit(Sin64(math.Copysign(0, -1))) {
		t.Error("Sin64(-0) is +0")
	}
}
