// Package view is the arithmetic of strided views: which elements of a list a tensor's elements are, after dimensions
// were permuted, repeated, cut, reversed or regrouped. It knows no element types and moves nothing: package kernel
// copies through views, plans and parts of operators are made of them.
package view

import "slices"

// View addresses elements of a list by up to 8 coordinates: the element at (i, j, ...) is at Offset + i*Strides[0] +
// j*Strides[1] + ... . Strides may be 0 (repeated) or negative (reversed). Methods return new views; none changes the
// lists of the view that it is called on.
type View struct {
	Dims, Strides []int
	Offset        int
}

// Dense is the view of all elements of a list in row-major order.
func Dense(dims []int) View { return View{Dims: dims, Strides: Strides(dims)} }

// Strides are those of Dense.
func Strides(dims []int) []int {
	strides := make([]int, len(dims))
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		strides[i] = n
		n *= dims[i]
	}
	return strides
}

// Elements is the number of elements of a tensor with these dimensions.
func Elements(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Pick returns the elements of list at the given axes.
func Pick(list []int, axes []int64) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = list[a]
	}
	return out
}

// Others returns the axes of a tensor of some rank that are in none of the lists, ascending.
func Others(rank int, lists ...[]int64) []int64 {
	var out []int64
	for i := range int64(rank) {
		if !slices.ContainsFunc(lists, func(axes []int64) bool { return slices.Contains(axes, i) }) {
			out = append(out, i)
		}
	}
	return out
}

// Inverse returns the permutation that undoes perm.
func Inverse(perm []int64) []int64 {
	out := make([]int64, len(perm))
	for i, a := range perm {
		out[a] = int64(i)
	}
	return out
}

// Axes is the view of some axes, in their order, the others at 0. Of all axes it is a transposition: axes[i] becomes
// dimension i.
func (v View) Axes(axes []int64) View {
	v.Dims, v.Strides = Pick(v.Dims, axes), Pick(v.Strides, axes)
	return v
}

// Broadcast repeats elements to dims; axes[i] is the dimension of the result that dimension i becomes.
func (v View) Broadcast(dims []int, axes []int64) View {
	strides := make([]int, len(dims))
	for i, a := range axes {
		if v.Dims[i] != 1 {
			strides[a] = v.Strides[i]
		}
	}
	v.Dims, v.Strides = dims, strides
	return v
}

// Slice begins at starts and takes dims[i] elements of dimension i, strides[i] apart.
func (v View) Slice(dims []int, starts, strides []int64) View {
	v.Strides = slices.Clone(v.Strides)
	for i := range dims {
		v.Offset += int(starts[i]) * v.Strides[i]
		v.Strides[i] *= int(strides[i])
	}
	v.Dims = dims
	return v
}

// Reverse reverses the order along the axes.
func (v View) Reverse(axes []int64) View {
	v.Strides = slices.Clone(v.Strides)
	for _, a := range axes {
		v.Offset += (v.Dims[a] - 1) * v.Strides[a]
		v.Strides[a] = -v.Strides[a]
	}
	return v
}

// Windows is the view of all windows, by strides and dilations, one of each a dimension. dims are the numbers of
// windows, then their sizes.
func (v View) Windows(dims []int, strides, dilations []int64) View {
	rank := len(v.Dims)
	out := make([]int, 2*rank)
	for i, s := range v.Strides {
		out[i] = s * int(strides[i])
		out[rank+i] = s * int(dilations[i])
	}
	v.Dims, v.Strides = dims, out
	return v
}

// Reshape gives the elements other dimensions, if strides can express them.
func (v View) Reshape(dims []int) (View, bool) {
	m := v.Merged()
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
			return View{}, false
		}
	}
	return View{Dims: dims, Strides: strides, Offset: v.Offset}, true
}

// Merged returns the same elements in the same order with as few dimensions as possible.
func (v View) Merged() View {
	out := View{Offset: v.Offset}
	for i, d := range v.Dims {
		if d == 1 {
			continue
		}
		if k := len(out.Dims) - 1; k >= 0 && out.Strides[k] == v.Strides[i]*d {
			out.Dims[k] *= d
			out.Strides[k] = v.Strides[i]
			continue
		}
		out.Dims = append(out.Dims, d)
		out.Strides = append(out.Strides, v.Strides[i])
	}
	return out
}

// Contiguous reports whether the elements follow each other, from Offset on.
func (v View) Contiguous() bool {
	m := v.Merged()
	return len(m.Dims) == 0 || len(m.Dims) == 1 && m.Strides[0] == 1
}

// Ascending reports whether no stride is negative.
func (v View) Ascending() bool {
	for i, s := range v.Strides {
		if s < 0 && v.Dims[i] > 1 {
			return false
		}
	}
	return true
}

// Line merges the dimensions at the given axes, in their order, into one of n elements, if one stride that is not
// negative walks them all in row-major order.
func (v View) Line(axes []int64) (n, stride int, ok bool) {
	m := v.Axes(axes).Merged()
	switch {
	case len(m.Dims) == 0:
		return 1, 1, true
	case len(m.Dims) == 1 && m.Strides[0] >= 0:
		return m.Dims[0], m.Strides[0], true
	}
	return 0, 0, false
}

// Period is the number of elements after which a merged view repeats itself, 0 if it does not.
func (v View) Period() int {
	if len(v.Dims) == 0 {
		return 1
	}
	if v.Strides[0] != 0 {
		return 0
	}
	return Elements(v.Dims[1:])
}

// Offsets returns where the elements lo up to hi are, in row-major order.
func (v View) Offsets(lo, hi int) []int {
	out := make([]int, hi-lo)
	for i := range out {
		at, rest := v.Offset, lo+i
		for d := len(v.Dims) - 1; d >= 0; d-- {
			at += rest % v.Dims[d] * v.Strides[d]
			rest /= v.Dims[d]
		}
		out[i] = at
	}
	return out
}

// Middle sees dims as [outer, n, inner] with the axes in n, if they are neighbours.
func Middle(dims []int, axes []int64) (outer, n, inner int, ok bool) {
	size := [3]int{1, 1, 1}
	part := 0
	for i, d := range dims {
		inside := slices.Contains(axes, int64(i))
		if d == 1 {
			continue
		}
		if inside != (part == 1) {
			part++
		}
		if part > 2 {
			return 0, 0, 0, false
		}
		size[part] *= d
	}
	return size[0], size[1], size[2], true
}
