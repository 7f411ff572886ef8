package kernel

import "math"

// The halves hold float32 in 16 bits: Float16 is IEEE-754 binary16, BFloat16 the first half of a binary32. To a half,
// numbers are rounded to nearest, ties to even, to infinity beyond the largest one, and every NaN becomes one NaN. From
// a half every number is exact, and a NaN keeps its sign and payload.

// ToFloat16 rounds to binary16.
func ToFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b>>16) & 0x8000
	b &^= 1 << 31
	switch {
	case b > 0x7f800000:
		return 0x7e00
	case b >= 0x477ff000: // 65520 lies half-way between 65504 and infinity
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: a multiple of 2^-24, which is the last place of numbers from 0.5 on
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

// FromFloat16 widens binary16.
func FromFloat16(h uint16) float32 {
	sign, b := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case b >= 0x7c00:
		return math.Float32frombits(sign | 0x7f800000 | b&0x3ff<<13)
	case b < 0x400:
		return math.Float32frombits(sign | math.Float32bits(float32(b)*0x1p-24))
	}
	return math.Float32frombits(sign | (b<<13 + 0x38000000))
}

// ToBFloat16 rounds to the 8 bits of precision of bfloat16.
func ToBFloat16(x float32) uint16 {
	if x != x {
		return 0x7fc0
	}
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FromBFloat16 widens bfloat16.
func FromBFloat16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ByFloat converts by way of float32: first to it, then from it.
func ByFloat[D, S any](first func(dst []float32, x []S), then func(dst []D, x []float32)) func(dst []D, x []S) {
	return func(dst []D, x []S) {
		var between [256]float32
		for x = x[:len(dst)]; len(dst) > 0; {
			n := min(len(dst), len(between))
			first(between[:n], x[:n])
			then(dst[:n], between[:n])
			dst, x = dst[n:], x[n:]
		}
	}
}
