package codec

import (
	"math"

	"github.com/starling-network/starling/compute/tensor"
)

const (
	levels = 256 // of Int8
	// sigmas is the total width of the quantiser in standard deviations: elements beyond 3 of them on either side share
	// the outermost codes, whose codebook entries are the means of what they hold.
	sigmas = 6
)

// codebook is Int8, the uniform 8-bit quantiser of the INTELLECT-1 run (Jaghouar et al. 2024, section 3).
type codebook struct{ fixed }

func (codebook) size(s tensor.Shape) int { return 4*levels + s.Elements() }

func (codebook) encode(b []byte, x *tensor.Tensor) error {
	book := quantise(b[4*levels:], x.F32(), levels)
	putFloats(b, book)
	return nil
}

func (codebook) decode(x *tensor.Tensor, b []byte) error {
	var book [levels]float32
	getFloats(book[:], b)
	if err := finite(book[:]); err != nil {
		return err
	}
	dst := x.F32()
	for i, c := range b[4*levels:] {
		dst[i] = book[c]
	}
	return nil
}

// quantise writes the code of every element and returns the book: codes are round((x-mean)/scale)+levels/2 clamped to
// the levels, scale is 6 standard deviations over their number, and the book holds the mean of the elements of every
// code. All statistics are float64, elements taken in order.
func quantise(codes []byte, x []float32, levels int) []float32 {
	mean, scale := statistics(x, levels)
	middle, last := float64(levels/2), float64(levels-1)
	var sum [256]float64
	var count [256]int
	for i, v := range x {
		q := middle
		if scale > 0 {
			q += math.RoundToEven((float64(v) - mean) / scale)
		}
		c := byte(max(0, min(last, q)))
		codes[i] = c
		sum[c] += float64(v)
		count[c]++
	}
	book := make([]float32, levels)
	for c := range book {
		if count[c] > 0 {
			book[c] = float32(sum[c] / float64(count[c]))
		}
	}
	return book
}

// statistics returns the mean and the width of one code; the width is 0 when all elements are equal or there is only
// one.
func statistics(x []float32, levels int) (mean, scale float64) {
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	if len(x) < 2 {
		return mean, 0
	}
	var squares float64
	for _, v := range x {
		d := float64(v) - mean
		squares += float64(d * d)
	}
	return mean, sigmas * math.Sqrt(squares/float64(len(x)-1)) / float64(levels)
}
