package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/view"
)

// TestAddTo adds the windows of 3 elements at every second of 7: elements 2 and 4 belong to two windows.
func TestAddTo(t *testing.T) {
	corners := view.View{Dims: []int{3, 3}, Strides: []int{2, 1}}
	dst := make([]float32, 7)
	AddTo(dst, &corners, []float32{1, 2, 3, 10, 20, 30}, 0)
	AddTo(dst, &corners, []float32{100, 200, 300}, 6)
	if want := []float32{1, 2, 13, 20, 130, 200, 300}; !slices.Equal(dst, want) {
		t.Errorf("got %v, want %v", dst, want)
	}
}

func TestFirstMax(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	minusZero := float32(math.Copysign(0, -1))
	for _, tc := range []struct {
		row  []float32
		want int
	}{
		{[]float32{1, 3, 2, 3}, 1}, {[]float32{minusZero, 0, -1, 0}, 0}, {[]float32{-inf, -inf, -inf, -inf}, 0},
		{[]float32{inf, nan, 1, nan}, 1}, {[]float32{nan, inf, nan, 0}, 0}, {[]float32{-3, -2, -1, -1}, 2},
	} {
		got := []uint8{7, 7, 7, 7}
		FirstMax(got, tc.row, 4)
		want := make([]uint8, 4)
		want[tc.want] = 1
		if !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", tc.row, got, want)
		}
	}
}
