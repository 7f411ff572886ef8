// Package quantiser is the uniform quantiser of the INTELLECT-1 run (Jaghouar et al. 2024, section 3): a code for every
// element, and a book with the mean of the elements of every code. The elements may be given a part at a time, with a
// state between two parts that is as fixed as the codes.
package quantiser

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrState is returned for a state between two parts of a payload that is not one.
var ErrState = errors.New("codec: this is no state between two parts of a payload")

// sigmas is the total width of the quantiser in standard deviations: elements beyond 3 of them on either side share
// the outermost codes, whose entries in the book are the means of their elements.
const sigmas = 6

// Passes is how many passes over the elements come before the one that writes the codes.
const Passes = codePass

// Quantise writes the code of every element and returns the book: codes are round((x-mean)/scale)+levels/2 clamped to
// the levels, of which there are at most 256, scale is 6 standard deviations over their number, and the book holds the
// mean of the elements of every code. All statistics are float64, elements taken in order.
func Quantise(codes []byte, x []float32, levels int) []float32 {
	q := New(len(x), levels)
	for pass := range Passes {
		q.take(pass, x)
		q.end(pass)
	}
	q.Codes(codes, x)
	return q.book()
}

// New returns the quantiser of n elements.
func New(n, levels int) *Quantiser { return &Quantiser{n: n, levels: levels} }

// The passes of a quantiser over its elements.
const (
	meanPass   = iota // their sum
	squarePass        // the squares of the elements less the mean
	countPass         // number and sum of the elements of each code
	codePass          // the codes
)

// Quantiser is Quantise with its elements given a piece at a time, in order, all of them once a pass.
type Quantiser struct {
	n, levels   int
	mean, scale float64 // while their pass is under way, sums
	sum         [256]float64
	count       [256]uint64
}

// take adds elements to one of the first three passes.
func (q *Quantiser) take(pass int, x []float32) {
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
func (q *Quantiser) end(pass int) {
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

func (q *Quantiser) code(v float32) byte {
	c := float64(q.levels / 2)
	if q.scale > 0 {
		c += math.RoundToEven((float64(v) - q.mean) / q.scale)
	}
	if !(c > 0) { // also for NaN: statistics may come from another party
		return 0
	}
	return byte(min(float64(q.levels-1), c))
}

// Codes writes the codes of elements, after the Passes.
func (q *Quantiser) Codes(dst []byte, x []float32) {
	for i, v := range x {
		dst[i] = q.code(v)
	}
}

func (q *Quantiser) book() []float32 {
	book := make([]float32, q.levels)
	for c := range book {
		if q.count[c] > 0 {
			book[c] = float32(q.sum[c] / float64(q.count[c]))
		}
	}
	return book
}

// kept is the state of a quantiser within a pass.
func (q *Quantiser) kept(pass int, book []float32) []any {
	switch pass {
	case meanPass:
		return []any{&q.mean}
	case squarePass:
		return []any{&q.mean, &q.scale}
	case countPass:
		return []any{&q.mean, &q.scale, &q.sum, &q.count}
	}
	return []any{&q.mean, &q.scale, book}
}

func (q *Quantiser) save(pass int, book []float32) []byte {
	var b bytes.Buffer
	for _, v := range q.kept(pass, book) {
		_ = binary.Write(&b, binary.LittleEndian, v) // values of fixed size into memory
	}
	return b.Bytes()
}

// Load reads the state before a part of a pass, which is empty before the first of all; after the Passes it fills book.
func (q *Quantiser) Load(pass int, first bool, state []byte, book []float32) error {
	want := 0
	if !first {
		want = len(q.save(pass, book))
	}
	if len(state) != want {
		return fmt.Errorf("%w: %d bytes of statistics, wanted %d", ErrState, len(state), want)
	}
	if first {
		return nil
	}
	r := bytes.NewReader(state)
	for _, v := range q.kept(pass, book) {
		if err := binary.Read(r, binary.LittleEndian, v); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	return nil
}

// Pass takes elements to one of the Passes, and returns the state after them: after the last elements of a pass, that
// for the next one.
func (q *Quantiser) Pass(pass int, last bool, x, book []float32) []byte {
	q.take(pass, x)
	if last {
		q.end(pass)
		pass++
		book = q.book()
	}
	return q.save(pass, book)
}
