package single

import (
	"math"
	"math/bits"
)

// Sin returns the sine of x radians: -0 for -0, NaN for ±Inf and NaN. It is off by at most 0.84 ulp.
func Sin(x float32) float32 {
	q, high, low, ok := quadrant(x)
	if !ok {
		return math.Float32frombits(nan32)
	}
	return math.Float32frombits(math.Float32bits(sinCos(q, high, low)) ^ math.Float32bits(x)&sign32)
}

// Cos returns the cosine of x radians: NaN for ±Inf and NaN. It is off by at most 0.83 ulp.
func Cos(x float32) float32 {
	q, high, low, ok := quadrant(x)
	if !ok {
		return math.Float32frombits(nan32)
	}
	return sinCos(q+1, high, low)
}

// sinCos returns sin(q*pi/2 + high + low) for |high| <= pi/4 and a low that is the rest of its rounding.
func sinCos(q uint32, high, low float32) float32 {
	z := float32(high * high)
	var y float32
	if q&1 == 0 {
		y = high + (float32(float32(high*z)*horner4(z, &sinRest)) + (low - float32(float32(0.5*z)*low)))
	} else {
		h := float32(0.5 * z)
		t := 1 - h
		d := (1 - t) - h
		y = t + (d + (float32(float32(z*z)*horner4(z, &cosRest)) - float32(high*low)))
	}
	if q&2 != 0 {
		return -y
	}
	return y
}

// quadrant returns q modulo 4, and high + low with |x| = q*pi/2 + high + low, |high| <= pi/4. It is false for Inf and
// NaN. From pi/4 on it is a product of the mantissa with the 96 bits of 2/pi that matter (Payne and Hanek, Radian
// reduction for trigonometric functions, 1983).
func quadrant(x float32) (q uint32, high, low float32, ok bool) {
	const quarterPi, halfPi = 0x3f490fdb, 0xc90fdaa2 // bits of pi/4; pi/2 * 2^31
	u := math.Float32bits(x) &^ sign32
	switch {
	case u < quarterPi:
		return 0, math.Float32frombits(u), 0, true
	case u >= inf32:
		return 0, 0, 0, false
	}
	m := u&mantissa | 1<<23
	// |x| = m * 2^e. The bits of 2/pi worth 4*2^-e and more contribute multiples of 4 and are skipped; 32 zero bits stand
	// before the table's first.
	skip := u>>23 - 150 + 30
	w, shift := twoOfPiBits[skip/32:], skip%32
	h2, l2 := bits.Mul32(m, w[2]<<shift|w[3]>>(32-shift))
	h1, l1 := bits.Mul32(m, w[1]<<shift|w[2]>>(32-shift))
	middle, carry := bits.Add32(l1, h2, 0)
	top := m*(w[0]<<shift|w[1]>>(32-shift)) + h1 + carry
	// top:middle:l2 / 2^94 is |x| * 2/pi modulo 4.
	q = top >> 30
	f, g := top<<2|middle>>30, middle<<2|l2>>30
	negative := f>>31 != 0
	if negative { // the fraction is more than a half
		q++
		f, g = ^f, ^g
	}
	zeros := uint32(bits.LeadingZeros32(f)) // below 32: no float32 is that close to a multiple of pi/2
	product, _ := bits.Mul32(f<<zeros|g>>(32-zeros), halfPi)
	scale := pow2(-31 - int32(zeros))
	if negative {
		scale = -scale
	}
	return q, float32(product&^0xff) * scale, float32(product&0xff) * scale, true
}
