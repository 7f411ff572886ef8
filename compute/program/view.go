package program

import (
	"slices"

	"github.com/starling-network/starling/compute/kernel"
)

// A loc says where the elements of a value are: in a store, read through a view that counts in elements. Operators that
// only move elements make locs, not copies.
type loc struct {
	store int
	kernel.View
}

// dense is the loc of all elements of a store, in order.
func dense(store int, dims []int) loc {
	return loc{store: store, View: kernel.View{Dims: dims, Strides: denseStrides(dims)}}
}

func denseStrides(dims []int) []int {
	strides := make([]int, len(dims))
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		strides[i] = n
		n *= dims[i]
	}
	return strides
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// merged returns the same elements in the same order with as few dimensions as possible.
func (l loc) merged() loc {
	out := loc{store: l.store, View: kernel.View{Offset: l.Offset}}
	for i, d := range l.Dims {
		if d == 1 {
			continue
		}
		if k := len(out.Dims) - 1; k >= 0 && out.Strides[k] == l.Strides[i]*d {
			out.Dims[k] *= d
			out.Strides[k] = l.Strides[i]
			continue
		}
		out.Dims = append(out.Dims, d)
		out.Strides = append(out.Strides, l.Strides[i])
	}
	return out
}

// contiguous reports whether the elements follow each other in the store, from Offset on.
func (l loc) contiguous() bool {
	m := l.merged()
	return len(m.Dims) == 0 || len(m.Dims) == 1 && m.Strides[0] == 1
}

func (l loc) transpose(perm []int64) loc {
	l.Dims, l.Strides = pick(l.Dims, perm), pick(l.Strides, perm)
	return l
}

func (l loc) broadcast(dims []int, axes []int64) loc {
	strides := make([]int, len(dims))
	for i, a := range axes {
		if l.Dims[i] != 1 {
			strides[a] = l.Strides[i]
		}
	}
	l.Dims, l.Strides = dims, strides
	return l
}

func (l loc) slice(dims []int, starts, strides []int64) loc {
	l.Strides = slices.Clone(l.Strides)
	for i := range dims {
		l.Offset += int(starts[i]) * l.Strides[i]
		l.Strides[i] *= int(strides[i])
	}
	l.Dims = dims
	return l
}

func (l loc) reverse(axes []int64) loc {
	l.Strides = slices.Clone(l.Strides)
	for _, a := range axes {
		l.Offset += (l.Dims[a] - 1) * l.Strides[a]
		l.Strides[a] = -l.Strides[a]
	}
	return l
}

// reshape gives the elements other dimensions, if strides can express them.
func (l loc) reshape(dims []int) (loc, bool) {
	m := l.merged()
	strides := make([]int, len(dims))
	d := len(dims) - 1
	for i := len(m.Dims) - 1; i >= 0; i-- {
		n := 1 // elements of run i that dimensions d+1, ... take
		for n < m.Dims[i] {
			for dims[d] == 1 {
				d--
			}
			strides[d] = m.Strides[i] * n
			n *= dims[d]
			d--
		}
		if n != m.Dims[i] {
			return loc{}, false
		}
	}
	return loc{store: l.store, View: kernel.View{Dims: dims, Strides: strides, Offset: l.Offset}}, true
}
