package kernel

// Integers of 8 bits stand for float32 by a scale that neighbours share: symmetric quantisation to a 127th of the
// largest magnitude, in the form that ggml calls Q8_0 (there for blocks of 32 elements). The caller chooses the scale,
// and so the block: the largest |x| of a block or of a row, divided by 127.

// Quantize is x * (1/scale), each operation rounded, to the nearest integer, halves away from zero, and within -127 to
// 127.
// NaN gives 0. A scale that is not at least 2^-126, whose reciprocal would not be finite, stands for zeros: all give 0.
func Quantize(x, scale float32) int8 {
	if !(scale >= 0x1p-126) {
		return 0
	}
	q := float64(x * (1 / scale))
	switch {
	case q != q:
		return 0
	case q < 0:
		return int8(max(q, -127) - 0.5) // the sum is exact, and then cut off toward zero
	}
	return int8(min(q, 127) + 0.5)
}

// Dequantize is the number that Quantize stands for: code * scale, rounded once.
func Dequantize(code int8, scale float32) float32 { return float32(code) * scale }

// QuantizeTo applies Quantize to every element and its scale.
func QuantizeTo(dst []int8, x, scale []float32) {
	x, scale = x[:len(dst)], scale[:len(dst)]
	for i := range dst {
		dst[i] = Quantize(x[i], scale[i])
	}
}

// DequantizeTo applies Dequantize to every code and its scale.
func DequantizeTo(dst []float32, codes []int8, scale []float32) {
	codes, scale = codes[:len(dst)], scale[:len(dst)]
	for i := range dst {
		dst[i] = Dequantize(codes[i], scale[i])
	}
}
