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
	q := quantiser{n: len(x), levels: levels}
	for pass := range countPass + 1 {
		q.take(pass, x)
		q.end(pass)
	}
	q.codes(codes, x)
	return q.book(levels)
}

// The passes of a quantiser over its elements.
const (
	meanPass   = iota // their sum
	squarePass        // the squares of what is left of them without the mean
	countPass         // number and sum of the elements of each code
	codePass          // the codes
)

// quantiser is quantise with its elements given a piece at a time, in order, all of them once a pass.
type quantiser struct {
	n, levels   int
	mean, scale float64 // while their pass is under way, sums
	sum         [256]float64
	count       [256]uint64
}

// take adds elements to one of the first three passes.
func (q *quantiser) take(pass int, x []float32) {
	switch pass {
	case meanPass:
		for _, v := range x {
			q.mean += float64(v)
		}
	case squarePass:
		for _, v := range x {
			d := float64(v) - q.mean
			q.scale += float64(d * d)
		}
	case countPass:
		for _, v := range x {
			c := q.code(v)
			q.sum[c] += float64(v)
			q.count[c]++
		}
	}
}

// end turns the sums of a pass into what the next one needs.
func (q *quantiser) end(pass int) {
	switch pass {
	case meanPass:
		q.mean /= float64(q.n)
	case squarePass:
		if q.n < 2 {
			q.scale = 0
		} else {
			q.scale = sigmas * math.Sqrt(q.scale/float64(q.n-1)) / float64(q.levels)
		}
	}
}

func (q *quantiser) code(v float32) byte {
	c := float64(q.levels / 2)
	if q.scale > 0 {
		c += math.RoundToEven((float64(v) - q.mean) / q.scale)
	}
	if !(c > 0) { // also of what is no number: statistics may come from a stranger
		return 0
	}
	return byte(min(float64(q.levels-1), c))
}

func (q *quantiser) codes(dst []byte, x []float32) {
	for i, v := range x {
		dst[i] = q.code(v)
	}
}

func (q *quantiser) book(levels int) []float32 {
	book := make([]float32, levels)
	for c := range book {
		if q.count[c] > 0 {
			book[c] = float32(q.sum[c] / float64(q.count[c]))
		}
	}
	return book
}
