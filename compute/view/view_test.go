package view

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// offsets finds the elements of a view coordinate by coordinate.
func offsets(v View) []int {
	at := []int{v.Offset}
	for d, n := range v.Dims {
		var next []int
		for _, a := range at {
			for i := range n {
				next = append(next, a+i*v.Strides[d])
			}
		}
		at = next
	}
	return at
}

func TestMovementsPickTheElements(t *testing.T) {
	v := Dense([]int{2, 3})
	for _, c := range []struct {
		name string
		view View
		want []int
	}{
		{"dense", v, []int{0, 1, 2, 3, 4, 5}},
		{"axes", v.Axes([]int64{1, 0}), []int{0, 3, 1, 4, 2, 5}},
		{"one axis", v.Axes([]int64{0}), []int{0, 3}},
		{"broadcast", Dense([]int{1, 2}).Broadcast([]int{2, 3}, []int64{1, 0}), []int{0, 0, 0, 1, 1, 1}},
		{"slice", v.Slice([]int{1, 2}, []int64{1, 0}, []int64{1, 2}), []int{3, 5}},
		{"reverse", v.Reverse([]int64{1}), []int{2, 1, 0, 5, 4, 3}},
		{"windows", Dense([]int{5}).Windows([]int{2, 2}, []int64{2}, []int64{1}), []int{0, 1, 2, 3}},
		{"dilated", Dense([]int{5}).Windows([]int{3, 2}, []int64{1}, []int64{2}), []int{0, 2, 1, 3, 2, 4}},
	} {
		if got := c.view.Offsets(0, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s: elements %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRegroupingKeepsTheElements merges, reshapes and joins dimensions of random views, if strides can.
func TestRegroupingKeepsTheElements(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		dims := make([]int, r.IntN(5))
		for i := range dims {
			dims[i] = 1 + r.IntN(4)
		}
		perm := make([]int64, len(dims))
		for i, a := range r.Perm(len(dims)) {
			perm[i] = int64(a)
		}
		v := Dense(dims).Axes(perm)
		if k := r.IntN(4); k < len(dims) {
			v = v.Reverse([]int64{int64(k)})
		}
		want := offsets(v)
		if got := offsets(v.Axes(perm).Axes(Inverse(perm))); !slices.Equal(got, want) {
			t.Fatalf("%v: transposed and back %v, want %v", v, got, want)
		}
		if got := offsets(v.Merged()); !slices.Equal(got, want) {
			t.Fatalf("%v: merged %v, want %v", v, got, want)
		}
		flat, ok := v.Reshape([]int{len(want)})
		if ok != (len(v.Merged().Dims) <= 1) || ok && !slices.Equal(offsets(flat), want) {
			t.Fatalf("%v: as one list %v, %v", v, flat, ok)
		}
		if n, stride, ok := v.Line(Others(len(dims))); ok && (n != len(want) || n > 1 && stride != want[1]-want[0]) {
			t.Fatalf("%v: a line of %d with stride %d, want %v", v, n, stride, want)
		}
		if v.Contiguous() != slices.IsSorted(want) && v.Offset == 0 {
			t.Fatalf("%v: contiguous %v, elements %v", v, v.Contiguous(), want)
		}
	}
}
