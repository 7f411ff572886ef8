package aggregate

import (
	"fmt"
	"math/bits"

	"github.com/starling-network/starling/compute/kernel"
)

// block is how many coordinates are combined at a time: few enough for the rows of them to stay in cache.
const block = 1024

// blocks calls f for every part of dst, block coordinates at a time, with its parameter and its place in that.
func (dst parts) blocks(f func(dst []float32, parameter, lo int)) {
	for i, d := range dst {
		for lo := 0; lo < len(d); lo += block {
			f(d[lo:min(lo+block, len(d))], i, lo)
		}
	}
}

// at returns the n elements of parameter i from lo on.
func (p parts) at(i, lo, n int) []float32 { return p[i][lo : lo+n] }

// matrix is scratch memory for one block of rows, row-major.
type matrix []float32

func (m matrix) row(j, n int) []float32 { return m[j*block : j*block+n] }

// sum makes dst the sum of rows lo to hi, in the order of all sums of kernel: copies of a number whose number is a
// power of two add up to it exactly.
func (m matrix) sum(dst []float32, lo, hi int) {
	var p kernel.Path
	p.SumColumns(dst, m[lo*block:], hi-lo, block)
}

// scale makes dst w*x, each product rounded.
func scale(dst, x []float32, w float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = w * x[i]
	}
}

// Average is the mean by weight: the sum of the products with the weights, times the rounded reciprocal of the sum of
// the weights, those of this round's updates and no others.
type Average struct{}

func (Average) combine(dst parts, rows []row) error {
	products := make(matrix, len(rows)*block)
	var total float64
	for _, r := range rows {
		total += r.weight
	}
	dst.blocks(func(dst []float32, i, lo int) {
		for j, r := range rows {
			scale(products.row(j, len(dst)), r.at(i, lo, len(dst)), float32(r.weight))
		}
		products.sum(dst, 0, len(rows))
		scale(dst, dst, 1/float32(total))
	})
	return nil
}

// ContributorMean is the mean, by weight, of the elements that are not zero, and zero where all are: an element that a
// sparse update leaves out does not count as a vote for zero (the aggregation of SparseLoCo's and DeMo's code; their
// papers divide by the number of workers). Where only one update has an element, a hostile one alone decides it: put
// the rule behind NormClip.
type ContributorMean struct{}

func (ContributorMean) combine(dst parts, rows []row) error {
	var p kernel.Path
	products, weights := make(matrix, len(rows)*block), make(matrix, len(rows)*block)
	var total [block]float32
	dst.blocks(func(dst []float32, i, lo int) {
		n := len(dst)
		for j, r := range rows {
			x, w := r.at(i, lo, n), weights.row(j, n)
			scale(products.row(j, n), x, float32(r.weight))
			for k, v := range x {
				w[k] = 0
				if v != 0 {
					w[k] = float32(r.weight)
				}
			}
		}
		products.sum(dst, 0, len(rows))
		weights.sum(total[:n], 0, len(rows))
		for k, t := range total[:n] {
			if t == 0 {
				total[k] = 1
			}
		}
		p.Div(dst, dst, total[:n])
	})
	return nil
}

// Trim is the trimmed mean (Yin et al. 2018, definition 2): the mean of every coordinate without its largest and its
// smallest values, Share of them at each end, rounded down to whole updates; at least one or two in the middle remain.
// The remaining values count alike, and are added in ascending order as kernel sums. If no value is cut off it is
// Average.
type Trim struct{ Share float64 }

func (t Trim) combine(dst parts, rows []row) error {
	if !(t.Share >= 0 && t.Share <= 0.5) {
		return fmt.Errorf("aggregate: a share of %v cannot be cut off at both ends", t.Share)
	}
	if cut := min(int(t.Share*float64(len(rows))), (len(rows)-1)/2); cut > 0 {
		trimmed(dst, rows, cut)
		return nil
	}
	return Average{}.combine(dst, rows)
}

// CoordinateMedian is the median of every coordinate (Yin et al. 2018, definition 1): the mean of the middle two if
// there is no middle one. All updates count alike.
type CoordinateMedian struct{}

func (CoordinateMedian) combine(dst parts, rows []row) error {
	trimmed(dst, rows, (len(rows)-1)/2)
	return nil
}

// trimmed sorts the rows of a block against each other, whole vectors at a time.
func trimmed(dst parts, rows []row, cut int) {
	var p kernel.Path
	pairs := network(len(rows))
	sorted := make(matrix, len(rows)*block)
	var low [block]float32
	dst.blocks(func(dst []float32, i, lo int) {
		n := len(dst)
		for j, r := range rows {
			copy(sorted.row(j, n), r.at(i, lo, n))
		}
		for _, pair := range pairs {
			a, b := sorted.row(pair[0], n), sorted.row(pair[1], n)
			p.Min(low[:n], a, b)
			p.Max(b, a, b)
			copy(a, low[:n])
		}
		sorted.sum(dst, cut, len(rows)-cut)
		scale(dst, dst, 1/float32(len(rows)-2*cut))
	})
}

// network returns the pairs whose comparison in order, smaller one first, sorts n values: Batcher's merge exchange
// (Knuth, The Art of Computer Programming, volume 3, algorithm 5.2.2M).
func network(n int) (pairs [][2]int) {
	if n < 2 {
		return nil
	}
	top := 1 << (bits.Len(uint(n-1)) - 1)
	for p := top; p > 0; p /= 2 {
		for q, r, d := top, 0, p; ; q, r, d = q/2, p, q-p {
			for i := range n - d {
				if i&p == r {
					pairs = append(pairs, [2]int{i, i + d})
				}
			}
			if q == p {
				break
			}
		}
	}
	return pairs
}
