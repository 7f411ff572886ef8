package kernel

import "github.com/starling-network/starling/compute/view"

// Element is a type of elements that views move, one of each size.
type Element interface {
	uint8 | uint16 | uint32 | int64
}

// walk calls f for consecutive runs of the elements lo, lo+1, ..., lo+n-1 of the view in row-major order: a run of k
// elements starts at src and has steps of stride.
func walk(v *view.View, lo, n int, f func(at, src, k, stride int)) {
	var coordinate [8]int
	last := len(v.Dims) - 1
	if last < 0 {
		f(0, v.Offset, n, 0)
		return
	}
	at := v.Offset
	for d, rest := last, lo; d >= 0; d-- {
		coordinate[d] = rest % v.Dims[d]
		rest /= v.Dims[d]
		at += coordinate[d] * v.Strides[d]
	}
	for done := 0; done < n; {
		k := min(v.Dims[last]-coordinate[last], n-done)
		f(done, at, k, v.Strides[last])
		done += k
		at += k * v.Strides[last]
		coordinate[last] += k
		for d := last; d > 0 && coordinate[d] == v.Dims[d]; d-- {
			at += v.Strides[d-1] - v.Dims[d]*v.Strides[d]
			coordinate[d] = 0
			coordinate[d-1]++
		}
	}
}

// Load copies the elements lo, lo+1, ... of a view of src, in row-major order, to dst.
func Load[T Element](dst, src []T, v *view.View, lo int) {
	walk(v, lo, len(dst), func(at, from, k, stride int) {
		out := dst[at : at+k]
		switch stride {
		case 1:
			copy(out, src[from:from+k])
		case 0:
			x := src[from]
			for i := range out {
				out[i] = x
			}
		default:
			for i := range out {
				out[i] = src[from]
				from += stride
			}
		}
	})
}

// Store copies src to the elements lo, lo+1, ... of a view of dst, in row-major order.
func Store[T Element](dst []T, v *view.View, src []T, lo int) {
	walk(v, lo, len(src), func(at, to, k, stride int) {
		in := src[at : at+k]
		if stride == 1 {
			copy(dst[to:to+k], in)
			return
		}
		for _, x := range in {
			dst[to] = x
			to += stride
		}
	})
}

// Fill sets every element to x.
func Fill[T Element](dst []T, x T) {
	for i := range dst {
		dst[i] = x
	}
}

// Iota gives element i the value (lo+i)/inner modulo dim: its coordinate along a dimension of dim elements that is
// followed by inner elements.
func Iota[T Number](dst []T, lo, inner, dim int) {
	for i := range dst {
		dst[i] = T((lo + i) / inner % dim)
	}
}
