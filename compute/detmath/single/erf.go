package single

import "math"

// Erf returns the error function of x: ±1 for ±Inf, -0 for -0, NaN for NaN. It is off by at most 0.96 ulp. Below 1/2 it
// is a + a*P(a^2) for a = |x|; on each interval of length 1/2 of [1/2, 4) it is that of the middle and a polynomial in
// the distance to it.
func Erf(x float32) float32 {
	b := math.Float32bits(x)
	a := math.Float32frombits(b &^ sign32)
	var y float32
	switch {
	case a != a:
		return math.Float32frombits(nan32)
	case a < 0.5:
		y = a + float32(a*horner6(float32(a*a), &erfNear))
	case a < 4:
		i := int32(a * 2)
		c := &erfTable[i-1]
		t := a - (float32(float32(i)*0.5) + 0.25)
		y = c.middle + (float32(t*horner8(t, &c.slope)) + c.rest)
	default:
		y = 1
	}
	return math.Float32frombits(b&sign32 | math.Float32bits(y))
}
