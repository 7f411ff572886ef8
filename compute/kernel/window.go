package kernel

import "github.com/starling-network/starling/compute/view"

// AddTo adds src, in row-major order of a view of dst, to the elements lo, lo+1, ... of the view. An element that the
// view shows several times is added to several times, in that order.
func AddTo(dst []float32, v *view.View, src []float32, lo int) {
	walk(v, lo, len(src), func(at, to, k, stride int) {
		for _, x := range src[at : at+k] {
			dst[to] += x
			to += stride
		}
	})
}

// FirstMax sets one byte of each row of n elements to 1, all others to 0: that of the first of the largest elements, or
// of the first NaN. Zeros are equal.
func FirstMax(dst []uint8, x []float32, n int) {
	clear(dst)
	for row := 0; row < len(x); row += n {
		best := row
		for i := row + 1; i < row+n && x[best] == x[best]; i++ {
			if x[i] > x[best] || x[i] != x[i] {
				best = i
			}
		}
		dst[best] = 1
	}
}
