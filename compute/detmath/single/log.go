package single

import "math"

const (
	sqrtHalf = 0x3f3504f3 // bits of sqrt(1/2)
	mantissa = 1<<23 - 1
)

// split returns n and f with x = 2^n * (1+f) and sqrt(1/2) <= 1+f < sqrt(2), for positive finite x.
func split(x float32) (n, f float32) {
	if x < 0x1p-126 {
		x *= 0x1p23
		n = -23
	}
	u := math.Float32bits(x) + (one32 - sqrtHalf)
	return n + float32(int32(u>>23)-127), math.Float32frombits(u&mantissa+sqrtHalf) - 1
}

// Log returns the natural logarithm of x: -Inf for ±0, NaN for x < 0, +Inf for +Inf, NaN for NaN. It is off by at most
// 0.89 ulp.
func Log(x float32) float32 {
	if !(x > 0 && x <= math.MaxFloat32) {
		switch {
		case x == 0:
			return math.Float32frombits(minusInf)
		case x > 0:
			return x
		}
		return math.Float32frombits(nan32)
	}
	n, f := split(x)
	z := float32(f * f)
	q := float32(float32(f*z)*horner9(f, &logRest)) - float32(0.5*z) + float32(n*ln2Low)
	a := float32(n * ln2High) // exact; 0, or more than |f|
	t := a + f
	d := (a - t) + f
	return t + (d + q)
}

// Rsqrt returns 1/sqrt(x), as the square root of 1/x, off by at most 0.85 ulp: ±Inf for ±0, 0 for +Inf, NaN for x < 0.
// Where 1/x could leave the normal range, x is first multiplied by 2^-64 or 2^64.
func Rsqrt(x float32) float32 {
	a, back := x, float32(1)
	if x > 0x1p64 {
		a, back = x*0x1p-64, 0x1p-32
	} else if x < 0x1p-64 {
		a, back = x*0x1p64, 0x1p32
	}
	y := float32(math.Sqrt(float64(1/a))) * back
	switch {
	case x == 0:
		return 1 / x
	case !(x > 0):
		return math.Float32frombits(nan32)
	}
	return y
}
