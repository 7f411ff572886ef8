package single

import "math"

const (
	nan32    = 0x7fc00000
	inf32    = 0x7f800000
	one32    = 0x3f800000
	sign32   = 1 << 31
	minusInf = sign32 | inf32

	log2E = 0x1.715476p+00 // 1/ln 2
	// ln 2 = ln2High + ln2Low; n*ln2High is exact for |n| < 2^8.
	ln2High = 0x1.62e4p-01
	ln2Low  = 0x1.7f7d1cp-20

	roundMagic = 0x1.8p23 // x + roundMagic - roundMagic rounds |x| < 2^22 to an integer, ties to even

	// Exp is 0 from expLow down and infinite from expHigh up.
	expLow, expHigh = -104, 89
)

// pow2 returns 2^n for -126 <= n <= 127.
func pow2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// reduced returns y and n with exp(x) = 2^n * y and 0.7 < y < 1.42, for expLow <= x <= expHigh. d is what rounding
// takes from 1 + r.
func reduced(x float32) (y, n float32) {
	n = float32(x*log2E) + roundMagic - roundMagic
	r := x - float32(n*ln2High) - float32(n*ln2Low)
	p := horner5(r, &expRest)
	q := float32(float32(r*r) * p)
	t := 1 + r
	d := (1 - t) + r
	return t + (d + q), n
}

// scaled returns y * 2^n, rounded once, for |n| <= 252.
func scaled(y, n float32) float32 {
	if n > -125 && n < 127 { // one step gives the same
		return float32(y * pow2(int32(n)))
	}
	half := int32(n) >> 1
	return float32(float32(y*pow2(half)) * pow2(int32(n)-half))
}

// Exp returns e^x: +Inf above 88.72284, 0 for -Inf, NaN for NaN. It is off by at most 0.86 ulp.
func Exp(x float32) float32 {
	if !(x <= expHigh && x >= expLow) {
		switch {
		case x != x:
			return math.Float32frombits(nan32)
		case x > 0:
			return math.Float32frombits(inf32)
		}
		return 0
	}
	return scaled(reduced(x))
}

// Logistic returns 1/(1 + e^-x): 1 for +Inf, 0 for -Inf, NaN for NaN. It is off by
// at most 2.41 ulp. With E = e^-|x| it is E/(1+E) below 0, and 1 less
// that from 0 on.
func Logistic(x float32) float32 {
	if x != x {
		return math.Float32frombits(nan32)
	}
	e := float32(0)
	if a := math.Float32frombits(math.Float32bits(x) | sign32); a >= expLow { // -|x|
		e = scaled(reduced(a))
	}
	q := e / (1 + e)
	if x < 0 {
		return q
	}
	return 1 - q
}

// Tanh returns the hyperbolic tangent of x: ±1 for ±Inf, -0 for -0, NaN for NaN. It is off by at most 1.29 ulp. It is a
// + a^3*P(a^2) for a = |x| below tanhNear, and 1 - 2/(e^2a + 1) from there on.
func Tanh(x float32) float32 {
	b := math.Float32bits(x)
	a := math.Float32frombits(b &^ sign32)
	t := float32(1)
	switch {
	case a < tanhNear:
		z := float32(a * a)
		p := horner7(z, &tanhRest)
		t = a + float32(float32(a*z)*p)
	case a < tanhHigh:
		e := scaled(reduced(a + a))
		t = 1 - 2/(e+1)
	case a != a:
		return math.Float32frombits(nan32)
	}
	return math.Float32frombits(b&sign32 | math.Float32bits(t))
}

// Tanh is 1 from tanhHigh on.
const tanhNear, tanhHigh = 0.9, 10
