package detmath

import (
	"math"
	"math/bits"
)

// Taylor coefficients, the highest power first.
var (
	expSeries = [...]float64{ // (e^r - 1 - r) / r^2
		1. / 87178291200, 1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
		1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2,
	}
	logSeries = [...]float64{ // (2*atanh(s) - 2s) / s^3, in s^2
		2. / 21, 2. / 19, 2. / 17, 2. / 15, 2. / 13, 2. / 11, 2. / 9, 2. / 7, 2. / 5, 2. / 3,
	}
	sinSeries = [...]float64{ // (sin(r) - r) / r^3, in r^2
		1. / 355687428096000, -1. / 1307674368000, 1. / 6227020800, -1. / 39916800, 1. / 362880, -1. / 5040,
		1. / 120, -1. / 6,
	}
	cosSeries = [...]float64{ // (cos(r) - 1 + r^2/2) / r^4, in r^2
		-1. / 6402373705728000, 1. / 20922789888000, -1. / 87178291200, 1. / 479001600, -1. / 3628800, 1. / 40320,
		-1. / 720, 1. / 24,
	}
)

// horner returns the polynomial with the given coefficients, the highest power first, at x.
func horner(x float64, coefficients []float64) float64 {
	p := 0.
	for _, c := range coefficients {
		p = c + float64(x*p)
	}
	return p
}

// Exp64 returns e^x, good to 1e-15: +Inf above 709.79, 0 below -745.14 and for -Inf, NaN for NaN.
func Exp64(x float64) float64 {
	if !(x < 710 && x > -746) {
		switch {
		case x != x:
			return math.Float64frombits(nan64)
		case x > 0:
			return math.Inf(1)
		}
		return 0
	}
	n := float64(x*log2E) + roundMagic - roundMagic
	r := x - float64(n*ln2Hi) - float64(n*ln2Lo)
	p := horner(r, expSeries[:])
	y := 1 + (r + float64(float64(r*r)*p))
	half := int(n) / 2 // 2^n itself may be out of range
	return float64(y*pow2(half)) * pow2(int(n)-half)
}

// Log64 returns the natural logarithm of x, good to 1e-15: -Inf for ±0, NaN for x < 0, +Inf for +Inf, NaN for NaN.
func Log64(x float64) float64 {
	if !(x > 0 && x <= math.MaxFloat64) {
		switch {
		case x == 0:
			return math.Inf(-1)
		case x > 0:
			return x
		}
		return math.Float64frombits(nan64)
	}
	shift := 0.
	if x < 0x1p-1022 {
		x *= 0x1p54
		shift = 54
	}
	n, s := splitLog(x)
	n -= shift
	z := float64(s * s)
	p := horner(z, logSeries[:])
	tail := float64(float64(s*z)*p) + float64(n*ln2Lo)
	return float64(n*ln2Hi) + (float64(2*s) + tail)
}

// Sin64 returns the sine of x radians, good to 1e-15: -0 for -0, NaN for ±Inf and NaN.
func Sin64(x float64) float64 {
	q, r, ok := quadrant(math.Abs(x))
	if !ok {
		return math.Float64frombits(nan64)
	}
	y := sinCos(q, r)
	if math.Signbit(x) {
		return -y
	}
	return y
}

// Cos64 returns the cosine of x radians, good to 1e-15: NaN for ±Inf and NaN.
func Cos64(x float64) float64 {
	q, r, ok := quadrant(math.Abs(x))
	if !ok {
		return math.Float64frombits(nan64)
	}
	return sinCos(q+1, r)
}

// sinCos returns sin(q*pi/2 + r) for |r| <= pi/4.
func sinCos(q uint64, r float64) float64 {
	z := float64(r * r)
	var y float64
	if q&1 == 0 {
		y = r + float64(float64(r*z)*horner(z, sinSeries[:]))
	} else {
		y = 1 + (float64(float64(z*z)*horner(z, cosSeries[:])) - float64(0.5*z))
	}
	if q&2 != 0 {
		return -y
	}
	return y
}

// quadrant returns q modulo 4 and r with x = q*pi/2 + r and |r| <= pi/4 or very little more, for x >= 0.
// It is false for Inf and NaN.
func quadrant(x float64) (q uint64, r float64, ok bool) {
	const (
		// pi/2 in three parts. n*halfPi1 and n*halfPi2 are exact for n < 2^20.
		halfPi1 = 0x1.921fb544p+00
		halfPi2 = 0x1.0b4611a6p-34
		halfPi3 = 0x1.3198a2e037073p-69
		twoOfPi = 0x1.45f306dc9c883p-01 // 2/pi
	)
	if x < 1<<20 {
		n := float64(x*twoOfPi) + roundMagic - roundMagic
		return uint64(n), x - float64(n*halfPi1) - float64(n*halfPi2) - float64(n*halfPi3), true
	}
	if !(x <= math.MaxFloat64) {
		return 0, 0, false
	}
	q, f := mulTwoOfPi(x)
	return q, float64(f * (math.Pi / 2)), true
}

// mulTwoOfPi returns n modulo 4 and f with x * 2/pi = n + f and |f| <= 1/2, for finite x >= 2^20: a product of the
// mantissa with the 192 bits of 2/pi that matter (Payne and Hanek, Radian reduction for trigonometric functions, 1983).
func mulTwoOfPi(x float64) (n uint64, f float64) {
	u := math.Float64bits(x)
	mantissa := u&(1<<52-1) | 1<<52
	// x = mantissa * 2^e. The bits of 2/pi worth 4*2^-e and more contribute multiples of 4 and are skipped; 64 zero
	// bits stand before the table's first.
	e := int(u>>52) - 1075
	skip := uint(e - 2 + 64)
	w, shift := twoOfPiBits[skip/64:], skip%64
	h0, l0 := bits.Mul64(mantissa, w[2]<<shift|w[3]>>(64-shift))
	h1, l1 := bits.Mul64(mantissa, w[1]<<shift|w[2]>>(64-shift))
	mid, carry := bits.Add64(l1, h0, 0)
	top := mantissa*(w[0]<<shift|w[1]>>(64-shift)) + h1 + carry
	// top:mid:l0 / 2^190 is x * 2/pi modulo 4.
	n = top >> 62
	hi, lo := top<<2|mid>>62, mid<<2|l0>>62
	negative := hi>>63 != 0
	if negative {
		n++
		hi, lo = ^hi, ^lo
	}
	zeros := bits.LeadingZeros64(hi) // below 64: no float64 is that close to a multiple of pi/2
	f = float64(float64((hi<<zeros|lo>>(64-zeros))>>11) * pow2(-53-zeros))
	if negative {
		f = -f
	}
	return n, f
}
