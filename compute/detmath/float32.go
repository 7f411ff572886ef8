package detmath

import "math"

// The functions of float32 below are formulas over float64 good to about 1e-11, rounded once. Their polynomials are
// Taylor series after range reduction, long enough for that, so each coefficient can be read off its definition; a
// series for float64 results is longer. Sums are grouped in pairs (Estrin) to keep the dependency chains short: the
// grouping is part of the specification.

const (
	nan32 = 0x7fc00000
	nan64 = 0x7ff8000000000001

	log2E = 0x1.71547652b82fep+00 // 1/ln 2
	ln2   = 0x1.62e42fefa39efp-01
	// ln 2 = ln2Hi + ln2Lo; n*ln2Hi is exact for |n| < 2^20.
	ln2Hi = 0x1.62e42feep-01
	ln2Lo = 0x1.a39ef35793c76p-33

	roundMagic = 0x1.8p52 // x + roundMagic - roundMagic rounds |x| < 2^51 to an integer, ties to even
)

// pow2 returns 2^n for -1022 <= n <= 1023.
func pow2(n int) float64 { return math.Float64frombits(uint64(n+1023) << 52) }

// expm1 returns y and scale = 2^n with exp(x) = scale*(1 + y) and |y| < 0.42, for |x| < 700 and good to 1e-12.
func expm1(x float64) (y, scale float64) {
	n := float64(x*log2E) + roundMagic - roundMagic
	r := x - float64(n*ln2)
	r2 := float64(r * r)
	r4 := float64(r2 * r2)
	q0 := 1 + float64(r*(1./2))
	q1 := 1./6 + float64(r*(1./24))
	q2 := 1./120 + float64(r*(1./720))
	q3 := 1./5040 + float64(r*(1./40320))
	q4 := 1./362880 + float64(r*(1./3628800))
	lo := q0 + float64(r2*q1)
	hi := q2 + float64(r2*q3) + float64(r4*q4)
	return float64(r * (lo + float64(r4*hi))), pow2(int(n))
}

// Exp returns e^x: +Inf above 88.72284, 0 for -Inf, NaN for NaN.
func Exp(x float32) float32 {
	if !(x < 100 && x > -110) {
		switch {
		case x != x:
			return math.Float32frombits(nan32)
		case x > 0:
			return math.Float32frombits(0x7f800000)
		}
		return 0
	}
	y, scale := expm1(float64(x))
	return float32(float64(scale*y) + scale)
}

// Tanh returns the hyperbolic tangent of x: ±1 for ±Inf, -0 for -0, NaN for NaN.
func Tanh(x float32) float32 {
	const sign = 1 << 31
	b := math.Float32bits(x)
	a := math.Float32frombits(b &^ sign)
	if !(a < 10) {
		if a != a {
			return math.Float32frombits(nan32)
		}
		return math.Float32frombits(b&sign | 0x3f800000)
	}
	y, scale := expm1(2 * float64(a))
	u := float64(scale*y) + (scale - 1) // e^2a - 1, without cancellation
	return math.Float32frombits(b&sign | math.Float32bits(float32(u/(u+2))))
}

// Logistic returns 1/(1 + e^-x): 1 for +Inf, 0 for -Inf, NaN for NaN.
func Logistic(x float32) float32 {
	if !(x < 110 && x > -110) {
		switch {
		case x != x:
			return math.Float32frombits(nan32)
		case x > 0:
			return 1
		}
		return 0
	}
	y, scale := expm1(-float64(x))
	return float32(1 / (1 + (float64(scale*y) + scale)))
}

// splitLog returns n and s with x = 2^n * m, s = (m-1)/(m+1) and sqrt(1/2) <= m < sqrt(2), for normal positive x.
// Then log(x) = n*ln2 + 2*atanh(s), and |s| < 0.1716.
func splitLog(x float64) (n, s float64) {
	const sqrtHalf = 0x3fe6a09e667f3bcd
	const mantissa = 1<<52 - 1
	u := math.Float64bits(x) + (0x3ff0000000000000 - sqrtHalf)
	f := math.Float64frombits(u&mantissa+sqrtHalf) - 1
	return float64(int(u>>52) - 1023), f / (2 + f)
}

// Log returns the natural logarithm of x: -Inf for ±0, NaN for x < 0, +Inf for +Inf, NaN for NaN.
func Log(x float32) float32 {
	if !(x > 0 && x <= math.MaxFloat32) {
		switch {
		case x == 0:
			return math.Float32frombits(0xff800000)
		case x > 0:
			return x
		}
		return math.Float32frombits(nan32)
	}
	n, s := splitLog(float64(x))
	z := float64(s * s)
	z2 := float64(z * z)
	q0 := 2 + float64(z*(2./3))
	q1 := 2./5 + float64(z*(2./7))
	q2 := 2./9 + float64(z*(2./11))
	q3 := 2./13 + float64(z*(2./15))
	q := q0 + float64(z2*(q1+float64(z2*(q2+float64(z2*q3)))))
	return float32(float64(n*ln2) + float64(s*q))
}

// Erf returns the error function of x: ±1 for ±Inf, -0 for -0, NaN for NaN. On each interval of length 1/2 of [0, 4)
// it is |x| times the polynomial of erfTable in the distance to the middle of the interval.
func Erf(x float32) float32 {
	const sign = 1 << 31
	b := math.Float32bits(x)
	a := math.Float32frombits(b &^ sign)
	if !(a < 4) {
		if a != a {
			return math.Float32frombits(nan32)
		}
		return math.Float32frombits(b&sign | 0x3f800000)
	}
	d := float64(a)
	i := int(a * 2)
	c := &erfTable[i&7]
	t := d - (float64(float64(i)*0.5) + 0.25)
	t2 := float64(t * t)
	t4 := float64(t2 * t2)
	q0 := c[0] + float64(t*c[1])
	q1 := c[2] + float64(t*c[3])
	q2 := c[4] + float64(t*c[5])
	q3 := c[6] + float64(t*c[7])
	q4 := c[8] + float64(t*c[9])
	lo := q0 + float64(t2*q1)
	hi := q2 + float64(t2*q3) + float64(t4*q4)
	return math.Float32frombits(b&sign | math.Float32bits(float32(d*(lo+float64(t4*hi)))))
}

// Sin returns the sine of x radians: -0 for -0, NaN for ±Inf and NaN.
func Sin(x float32) float32 { return canonical(float32(Sin64(float64(x)))) }

// Cos returns the cosine of x radians: NaN for ±Inf and NaN.
func Cos(x float32) float32 { return canonical(float32(Cos64(float64(x)))) }

// Rsqrt returns 1/sqrt(x) with two roundings to float64 and one to float32: ±Inf for ±0, 0 for +Inf, NaN for x < 0.
func Rsqrt(x float32) float32 { return canonical(float32(1 / math.Sqrt(float64(x)))) }

// Pow returns x^y with the special values of C99: 1 if y is ±0 or x is 1, else NaN if either is NaN or if x < 0 is
// finite and y finite but no integer; for x = ±0 or ±Inf the limit, negative if x is and y is an odd integer; for
// y = ±Inf 1 if |x| = 1, else the limit.
func Pow(x, y float32) float32 {
	a := math.Abs(float64(x))
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return math.Float32frombits(nan32)
	case x < 0 && a <= math.MaxFloat32 && !integer(y):
		return math.Float32frombits(nan32)
	}
	t := 0.
	if a != 1 {
		t = float64(float64(y) * Log64(a))
	}
	var r float32
	switch {
	case t >= 100:
		r = math.Float32frombits(0x7f800000)
	case t > -110:
		e, scale := expm1(t)
		r = float32(float64(scale*e) + scale)
	}
	if math.Signbit(float64(x)) && integer(y) && !integer(y/2) {
		return -r
	}
	return r
}

// integer reports whether y is an integer; ±Inf counts as one.
func integer(y float32) bool { return math.Trunc(float64(y)) == float64(y) }

// canonical returns x, and the canonical NaN for every NaN.
func canonical(x float32) float32 {
	if x != x {
		return math.Float32frombits(nan32)
	}
	return x
}
