package programtest

import (
	"math"
	"sort"

	"github.com/starling-network/starling/compute/tensor"
)

func naiveConvert(x, out naive, k int) {
	d := out.shape.DType
	if from := x.shape.DType; from != d && (half(from) || half(d)) {
		naiveConvertHalf(x, out, k)
		return
	}
	switch {
	case d == tensor.Bool:
		out.i[k] = naiveTruth(x.i[k] != 0 || x.f[k] != 0)
	case !x.float() || d == tensor.Float32:
		out.i[k], out.f[k] = x.i[k], float32(x.i[k])
		if x.float() {
			out.f[k] = x.f[k]
		}
	default:
		limits := map[tensor.DType][2]float64{tensor.Int8: {-128, 127}, tensor.Int32: {-1 << 31, 1<<31 - 1},
			tensor.Int64: {-1 << 63, 1<<63 - 1},
			tensor.Uint8: {0, 255}, tensor.Uint32: {0, 1<<32 - 1}}[d]
		switch f := float64(x.f[k]); {
		case f != f:
		case f >= 1<<63:
			out.i[k] = math.MaxInt64
			if d != tensor.Int64 {
				out.i[k] = int64(limits[1])
			}
		default:
			out.i[k] = int64(max(limits[0], min(limits[1], math.Trunc(f))))
		}
	}
}

// naiveQuantize counts the halves between zero and the product.
func naiveQuantize(x, scale float32) int64 {
	if scale != scale || scale < 0x1p-126 || x != x {
		return 0
	}
	inverse := 1 / scale
	product := float32(x * inverse)
	code := int64(0)
	for code < 127 && math.Abs(float64(product)) >= float64(code)+0.5 {
		code++
	}
	if product < 0 {
		return -code
	}
	return code
}

// naiveConvertHalf converts between a half and another type.
func naiveConvertHalf(x, out naive, k int) {
	between := naiveOf(tensor.Make(tensor.Float32, x.shape.Dims...))
	if half(x.shape.DType) {
		between.f[k] = float32(wide(x.shape.DType, uint16(x.i[k])))
	} else {
		naiveConvert(x, between, k)
	}
	if d := out.shape.DType; half(d) {
		out.i[k] = int64(narrowed(d, between.f[k]))
	} else {
		naiveConvert(between, out, k)
	}
}

// halfForm is the number of bits of the fraction of a half, and the exponent of its smallest normal number.
func halfForm(d tensor.DType) (fraction, least int) {
	if d == tensor.Float16 {
		return 10, -14
	}
	return 7, -126
}

// wide is the number that the bits of a half stand for.
func wide(d tensor.DType, h uint16) float64 {
	fraction, least := halfForm(d)
	exponent, f := int(h&0x7fff)>>fraction, float64(h&(1<<fraction-1))
	sign := math.Copysign(1, -float64(h>>15)+0.5)
	switch {
	case exponent == 0x7fff>>fraction && f != 0:
		return math.NaN()
	case exponent == 0x7fff>>fraction:
		return math.Inf(int(sign))
	case exponent == 0:
		return sign * math.Ldexp(f, least-fraction)
	}
	return sign * math.Ldexp(f+math.Ldexp(1, fraction), exponent-1+least-fraction)
}

// narrowed is the half nearest to a number: of all halves that are not NaN, with infinity where the next number would
// be.
func narrowed(d tensor.DType, x float32) uint16 {
	fraction, _ := halfForm(d)
	infinite := uint16(0x7fff>>fraction) << fraction
	sign := uint16(math.Float32bits(x)>>16) & 0x8000
	if x != x {
		return infinite | 1<<(fraction-1)
	}
	size := math.Abs(float64(x))
	value := func(h uint16) float64 {
		if h == infinite {
			return 2*wide(d, infinite-1) - wide(d, infinite-2) // extrapolated, as if there were larger exponents
		}
		return wide(d, h)
	}
	h := uint16(sort.Search(int(infinite), func(h int) bool { return value(uint16(h)) >= size }))
	if below := size - value(max(h, 1)-1); h > 0 && (below < value(h)-size || below == value(h)-size && h%2 == 1) {
		h--
	}
	return sign | h
}
