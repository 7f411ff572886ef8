package safetensors

import "math"

// fromF16 widens IEEE-754 binary16, which has 5 bits of exponent with bias 15 and 10 of fraction. Every value is exact;
// a NaN keeps its sign and payload.
func fromF16(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0: // zero or subnormal: fraction * 2^-24
		magnitude := float32(fraction) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(magnitude))
	case 31: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// toF16 is the inverse of fromF16; false for a value that binary16 does not have.
func toF16(x float32) (uint16, bool) {
	b := math.Float32bits(x)
	sign, exponent, fraction := uint16(b>>16&0x8000), int(b>>23&255), b&(1<<23-1)
	switch {
	case exponent == 255:
		return sign | 31<<10 | uint16(fraction>>13), fraction&(1<<13-1) == 0
	case exponent >= 127-14 && exponent <= 127+15:
		return sign | uint16(exponent-127+15)<<10 | uint16(fraction>>13), fraction&(1<<13-1) == 0
	case b<<1 == 0:
		return sign, true
	}
	// A subnormal is a whole number, below 2^10, of 2^-24.
	units := math.Float32frombits(b&^(1<<31)) * 0x1p24
	n := uint16(min(units, 1<<10))
	return sign | n, float32(n) == units && n < 1<<10
}

// toBF16 takes the first half of a binary32; false if the rest is not zero.
func toBF16(x float32) (uint16, bool) {
	b := math.Float32bits(x)
	return uint16(b >> 16), b&0xffff == 0
}
